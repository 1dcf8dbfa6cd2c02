//! The versions of the group `smb`.

use csi_proxy::os::At;
use csi_proxy::{Credentials, Result, Secret, SharePath};

use super::table;
use crate::call::Call;

table! { smb [v1 {}, v1beta2 {}] smb_server::Smb, call {
    new_smb_global_mapping(NewSmbGlobalMappingRequest {
        remote_path, local_path, username, password
    }) -> NewSmbGlobalMappingResponse {
        map(call, &remote_path, &local_path, &username, Secret::new(password))?;
        NewSmbGlobalMappingResponse {}
    }
    remove_smb_global_mapping(RemoveSmbGlobalMappingRequest { remote_path })
        -> RemoveSmbGlobalMappingResponse {
        let remote = share(call, &remote_path)?;
        call.host().smb().remove_global_mapping(&remote, call.deadline)?;
        RemoveSmbGlobalMappingResponse {}
    }
}}

// `error` stays empty: errors are gRPC statuses.
table! { smb [v1alpha1 {}, v1beta1 {}] smb_server::Smb, call {
    new_smb_global_mapping(NewSmbGlobalMappingRequest {
        remote_path, local_path, username, password
    }) -> NewSmbGlobalMappingResponse {
        map(call, &remote_path, &local_path, &username, Secret::new(password))?;
        NewSmbGlobalMappingResponse { error: String::new() }
    }
    remove_smb_global_mapping(RemoveSmbGlobalMappingRequest { remote_path })
        -> RemoveSmbGlobalMappingResponse {
        let remote = share(call, &remote_path)?;
        call.host().smb().remove_global_mapping(&remote, call.deadline)?;
        RemoveSmbGlobalMappingResponse { error: String::new() }
    }
}}

/// Maps a share; without a user nobody logs on, without a local path there is no link.
fn map(call: &Call<'_>, remote: &str, local: &str, user: &str, password: Secret) -> Result<()> {
    let remote = share(call, remote)?;
    let local = optional_path(call, local)?;
    let credentials = match user {
        "" => None,
        user => Some(
            Credentials::new(user, password)
                .map_err(|error| error.in_field(call.operation(), "username"))?,
        ),
    };
    call.host().smb().new_global_mapping(
        &remote,
        credentials.as_ref(),
        local.as_ref(),
        call.require_privacy(),
        call.deadline,
    )
}

fn optional_path(call: &Call<'_>, local: &str) -> Result<Option<At>> {
    match local {
        "" => Ok(None),
        local => call.path("local_path", local).map(Some),
    }
}

fn share(call: &Call<'_>, remote: &str) -> Result<SharePath> {
    SharePath::new(remote).map_err(|error| error.in_field(call.operation(), "remote_path"))
}
