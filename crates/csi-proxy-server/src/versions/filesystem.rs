//! The versions of the group `filesystem`.

use super::table;

table! { filesystem [
    v1beta2 {},
    v1 {},
    v2alpha1 {
        rmdir_contents(RmdirContentsRequest { path }) -> RmdirContentsResponse {
            let at = call.path("path", &path)?;
            call.host().filesystem().rmdir_contents(at, call.deadline)?;
            RmdirContentsResponse {}
        }
    }
] filesystem_server::Filesystem, call {
    path_exists(PathExistsRequest { path }) -> PathExistsResponse {
        let at = call.path("path", &path)?;
        PathExistsResponse { exists: call.host().filesystem().path_exists(at, call.deadline)? }
    }
    mkdir(MkdirRequest { path }) -> MkdirResponse {
        let at = call.path("path", &path)?;
        call.host().filesystem().mkdir(at, call.deadline)?;
        MkdirResponse {}
    }
    rmdir(RmdirRequest { path, force }) -> RmdirResponse {
        let at = call.path("path", &path)?;
        call.host().filesystem().rmdir(at, force, call.deadline)?;
        RmdirResponse {}
    }
    create_symlink(CreateSymlinkRequest { source_path, target_path }) -> CreateSymlinkResponse {
        let source = call.path("source_path", &source_path)?;
        let at = call.path("target_path", &target_path)?;
        call.host().filesystem().create_symlink(source, at, call.deadline)?;
        CreateSymlinkResponse {}
    }
    is_symlink(IsSymlinkRequest { path }) -> IsSymlinkResponse {
        let at = call.path("path", &path)?;
        IsSymlinkResponse { is_symlink: call.host().filesystem().is_symlink(at, call.deadline)? }
    }
}}

// The context of a path is ignored, and `error` stays empty: errors are gRPC statuses.
table! { filesystem [v1alpha1 {}, v1beta1 {}] filesystem_server::Filesystem, call {
    path_exists(PathExistsRequest { path, context: _ }) -> PathExistsResponse {
        let at = call.path("path", &path)?;
        PathExistsResponse {
            error: String::new(),
            exists: call.host().filesystem().path_exists(at, call.deadline)?,
        }
    }
    mkdir(MkdirRequest { path, context: _ }) -> MkdirResponse {
        let at = call.path("path", &path)?;
        call.host().filesystem().mkdir(at, call.deadline)?;
        MkdirResponse { error: String::new() }
    }
    rmdir(RmdirRequest { path, context: _, force }) -> RmdirResponse {
        let at = call.path("path", &path)?;
        call.host().filesystem().rmdir(at, force, call.deadline)?;
        RmdirResponse { error: String::new() }
    }
    link_path(LinkPathRequest { source_path, target_path }) -> LinkPathResponse {
        let source = call.path("source_path", &source_path)?;
        let at = call.path("target_path", &target_path)?;
        call.host().filesystem().create_symlink(source, at, call.deadline)?;
        LinkPathResponse { error: String::new() }
    }
    is_mount_point(IsMountPointRequest { path }) -> IsMountPointResponse {
        let at = call.path("path", &path)?;
        IsMountPointResponse {
            error: String::new(),
            is_mount_point: call.host().filesystem().is_symlink(at, call.deadline)?,
        }
    }
}}
