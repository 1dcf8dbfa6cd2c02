//! The operations of the group filesystem, in a directory of the self-test.

use csi_proxy::filesystem::LinkTarget;
use csi_proxy::os::{At, Bytes, ReadFile, WriteFile};
use csi_proxy::{ErrorKind, Host, HostPath};

use super::area::{Area, told};
use super::checks::{Check, refused, soon};
use crate::failure::Result;
use crate::life::{expect, join};

/// The checks in their order.
pub(super) const CHECKS: [Check<Files>; 9] = [
    Check("filesystem mkdir", Files::mkdir),
    Check("filesystem path-exists", Files::path_exists),
    Check("filesystem path-valid", Files::path_valid),
    Check("filesystem create-symlink", Files::create_symlink),
    Check("filesystem is-symlink", Files::is_symlink),
    Check("filesystem outside", Files::outside),
    Check("filesystem rmdir", Files::rmdir),
    Check("filesystem rmdir-contents", Files::rmdir_contents),
    Check("filesystem rmdir-force", Files::rmdir_force),
];

/// `root\data\file.txt` is what must survive, and `root\links` holds links to it.
pub(super) struct Files {
    host: Host,
    root: HostPath,
    data: HostPath,
    file: HostPath,
    links: HostPath,
    link: HostPath,
    dead: HostPath,
}

const CONTENTS: &[u8] = b"kept";

impl Files {
    pub(super) fn new(area: &Area) -> Result<Self> {
        let root = join(&area.folder, &["files"])?;
        let (data, links) = (join(&root, &["data"])?, join(&root, &["links"])?);
        Ok(Self {
            host: area.host.clone(),
            file: join(&data, &["file.txt"])?,
            link: join(&links, &["link"])?,
            dead: join(&links, &["dead"])?,
            root,
            data,
            links,
        })
    }

    fn mkdir(&mut self) -> Result<String> {
        let (files, deadline) = (self.host.filesystem(), soon(&self.host));
        for directory in [&self.data, &self.links, &self.data] {
            files.mkdir(directory, deadline)?;
        }
        let write = WriteFile {
            at: At::path(&self.file),
            contents: Bytes(CONTENTS.to_vec()),
        };
        let written = self.host.os().write_file(&write, deadline);
        told(&format!("write {}", self.file), written)?;
        let in_the_way = files.mkdir(&self.file, deadline);
        refused(
            "a directory where a file is",
            in_the_way,
            ErrorKind::AlreadyExists,
        )?;
        Ok("made with its parents; again is success, a file in the way is refused".to_owned())
    }

    fn path_exists(&mut self) -> Result<String> {
        for (path, there) in [(&self.data, true), (&self.file, true), (&self.link, false)] {
            let found = self.host.filesystem().path_exists(path, soon(&self.host))?;
            let wrong = format!("is said to be there: {found}");
            expect(path.as_str(), found == there, &wrong)?;
        }
        Ok("a directory and a file are there, a missing path is not".to_owned())
    }

    fn path_valid(&mut self) -> Result<String> {
        for (path, valid) in [(&self.data, true), (&self.link, false)] {
            let found = self.host.filesystem().path_valid(path, soon(&self.host))?;
            expect(
                path.as_str(),
                found == valid,
                &format!("is said to be valid: {found}"),
            )?;
        }
        Ok("a directory can be opened, a missing path cannot".to_owned())
    }

    fn create_symlink(&mut self) -> Result<String> {
        let (files, deadline) = (self.host.filesystem(), soon(&self.host));
        let to = |path: &HostPath| LinkTarget::Path(At::path(path));
        files.create_symlink(to(&self.data), &self.link, deadline)?;
        files.create_symlink(to(&self.data), &self.link, deadline)?;
        let gone = join(&self.root, &["gone"])?;
        files.create_symlink(to(&gone), &self.dead, deadline)?;
        let other = files.create_symlink(to(&self.root), &self.link, deadline);
        refused("a second link at the path", other, ErrorKind::AlreadyExists)?;
        let through = join(&self.link, &["file.txt"])?;
        let found = files.path_exists(&through, deadline)?;
        expect(through.as_str(), found, "is not there through the link")?;
        Ok("made; again is success, another target is refused".to_owned())
    }

    fn is_symlink(&mut self) -> Result<String> {
        let (files, deadline) = (self.host.filesystem(), soon(&self.host));
        for (path, link) in [(&self.link, true), (&self.dead, false), (&self.data, false)] {
            let found = files.is_symlink(path, deadline)?;
            let wrong = format!("is said to be a link that leads somewhere: {found}");
            expect(path.as_str(), found == link, &wrong)?;
        }
        let there = files.path_exists(&self.dead, deadline)?;
        expect(
            self.dead.as_str(),
            there,
            "is not there, though a dead link is something",
        )?;
        let missing = files.is_symlink(&join(&self.links, &["missing"])?, deadline);
        refused("a missing path", missing, ErrorKind::NotFound)?;
        Ok("a link leads somewhere, a dead link and a directory do not".to_owned())
    }

    /// A root holds though a link below it leads outside.
    fn outside(&mut self) -> Result<String> {
        let made = At::within(&join(&self.link, &["made"])?, &self.links);
        let answer = self.host.filesystem().mkdir(made, soon(&self.host));
        refused(
            "a directory outside the root",
            answer,
            ErrorKind::PermissionDenied,
        )?;
        let made = join(&self.data, &["made"])?;
        let found = self
            .host
            .filesystem()
            .path_exists(&made, soon(&self.host))?;
        expect(made.as_str(), !found, "was made outside the root")?;
        Ok("a link that leads outside the root is not followed".to_owned())
    }

    fn rmdir(&mut self) -> Result<String> {
        let (files, deadline) = (self.host.filesystem(), soon(&self.host));
        let full = files.rmdir(&self.data, false, deadline);
        refused(
            "a directory that is not empty",
            full,
            ErrorKind::FailedPrecondition,
        )?;
        let empty = join(&self.root, &["empty"])?;
        files.mkdir(&empty, deadline)?;
        files.rmdir(&empty, false, deadline)?;
        expect(
            empty.as_str(),
            !files.path_exists(&empty, deadline)?,
            "is still there",
        )?;
        files.rmdir(&empty, false, deadline)?;
        Ok("an empty one goes, again is success; a full one stays".to_owned())
    }

    fn rmdir_contents(&mut self) -> Result<String> {
        let (files, deadline) = (self.host.filesystem(), soon(&self.host));
        files.rmdir_contents(&self.links, deadline)?;
        for (path, there) in [
            (&self.links, true),
            (&self.link, false),
            (&self.dead, false),
        ] {
            let found = files.path_exists(path, deadline)?;
            expect(
                path.as_str(),
                found == there,
                &format!("is said to be there: {found}"),
            )?;
        }
        self.must_be_kept()?;
        Ok("the links are gone, what they led to is not".to_owned())
    }

    fn rmdir_force(&mut self) -> Result<String> {
        let (files, deadline) = (self.host.filesystem(), soon(&self.host));
        let to_data = LinkTarget::Path(At::path(&self.data));
        files.create_symlink(to_data, &self.link, deadline)?;
        files.mkdir(&join(&self.links, &["a", "b"])?, deadline)?;
        files.rmdir(&self.links, true, deadline)?;
        let found = files.path_exists(&self.links, deadline)?;
        expect(self.links.as_str(), !found, "is still there")?;
        self.must_be_kept()?;
        Ok("a tree goes with the links in it, what they led to does not".to_owned())
    }

    fn must_be_kept(&self) -> Result<()> {
        let read = ReadFile {
            at: At::path(&self.file),
            limit: 1024,
        };
        let contents = self.host.os().read_file(&read, soon(&self.host));
        let contents = told(&format!("read {}", self.file), contents)?;
        expect(
            self.file.as_str(),
            contents.0 == CONTENTS,
            "is not as it was written",
        )
    }
}
