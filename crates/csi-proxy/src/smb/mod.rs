//! Shares: the global mappings through which every process of the node reaches them.
//!
//! What changes a share's mapping holds the lock of the share, over all processes; who finds
//! it taken waits for up to 10 s, then it is [`ErrorKind::Aborted`].
//!
//! Source: `MSFT_SmbGlobalMapping`, which has the properties of `MSFT_SmbMapping`,
//! <https://learn.microsoft.com/previous-versions/windows/desktop/smb/msft-smbmapping>.

mod credentials;
mod share;

use crate::cim::{Invoke, Namespace, ObjectPath, Query};
use crate::clock::Deadline;
use crate::error::{Code, ErrorKind, Result};
use crate::filesystem::check_root;
use crate::host::Host;
use crate::lock::Lock;
use crate::operation::Operation;
use crate::os::{At, Reach};

pub use credentials::Credentials;
pub use share::SharePath;

const CLASS: &str = "MSFT_SmbGlobalMapping";

/// The group; made by [`Host::smb`].
#[derive(Clone, Copy)]
pub struct Smb<'a> {
    host: &'a Host,
}

/// `MSFT_SmbMapping.Status`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MappingStatus {
    /// Connected (0).
    Ok,
    /// Paused (1).
    Paused,
    /// Disconnected (2).
    Disconnected,
    /// A network error (3).
    NetworkError,
    /// Connecting (4).
    Connecting,
    /// Connecting again (5).
    Reconnecting,
    /// Not available (6).
    Unavailable,
    /// A status that is not documented.
    Other(u32),
}

/// What has to happen so that a share is mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Plan {
    Keep,
    Create,
    Replace,
}

/// A mapping as it was observed.
struct Mapping {
    path: ObjectPath,
    status: MappingStatus,
}

impl Host {
    /// Shares.
    pub fn smb(&self) -> Smb<'_> {
        Smb { host: self }
    }
}

impl Smb<'_> {
    /// Maps the share of `remote` for all processes, and makes `local_path`, if given, a
    /// directory link to `remote`. A mapping that is there and works is kept, whoever made
    /// it; one that does not is removed and made again.
    ///
    /// # Errors
    /// [`ErrorKind::Unauthenticated`] when the server refuses the credentials,
    /// [`ErrorKind::NotFound`] when it has no such share, [`ErrorKind::Unavailable`] when it
    /// cannot be reached; [`ErrorKind::FailedPrecondition`] when it is in use with another
    /// user's credentials; [`ErrorKind::AlreadyExists`] when something else is at
    /// `local_path`.
    pub fn new_global_mapping(
        &self,
        remote: &SharePath,
        credentials: Option<&Credentials>,
        local_path: Option<&At>,
        require_privacy: bool,
        deadline: Deadline,
    ) -> Result<()> {
        let operation = self.operation("smb new global mapping", deadline);
        // Nothing is mapped for a link that may not be made.
        if let Some(at) = local_path {
            check_root(&operation, at)?;
        }
        let lock = Lock::of_share(&operation, remote.share())?;
        let operation = operation.under(&lock);
        let mappings = find(&operation, remote)?;
        let plan = match mappings.is_empty() {
            true => Plan::Create,
            false if is_alive(&operation, remote, &mappings)? => Plan::Keep,
            false => Plan::Replace,
        };
        carry_out(
            &operation,
            plan,
            remote,
            credentials,
            require_privacy,
            &mappings,
        )?;
        match local_path {
            Some(at) => self
                .host
                .filesystem()
                .create_symlink(remote, at.clone(), deadline),
            None => Ok(()),
        }
    }

    /// Removes the mapping of the share, also while it is in use. No mapping is success.
    pub fn remove_global_mapping(&self, remote: &SharePath, deadline: Deadline) -> Result<()> {
        let operation = self.operation("smb remove global mapping", deadline);
        let lock = Lock::of_share(&operation, remote.share())?;
        let operation = operation.under(&lock);
        let mappings = find(&operation, remote)?;
        remove(&operation, remote, &mappings)
    }

    /// The status of the share's mapping; nothing when it is not mapped.
    pub fn status(&self, remote: &SharePath, deadline: Deadline) -> Result<Option<MappingStatus>> {
        let operation = self.operation("smb status", deadline);
        let mappings = find(&operation, remote)?;
        Ok(mappings.first().map(|mapping| mapping.status))
    }

    /// Maps the share for one more volume. `users` are the users (nothing for none) of all
    /// volumes that use the share on this node or are about to, as the caller counts them.
    ///
    /// While the share is in use, its mapping serves one user: another is refused, and a
    /// mapping that works is kept. A dead one is made again with the volume's own
    /// credentials, and so is one that nobody uses, since nobody knows whose it is.
    ///
    /// # Errors
    /// [`ErrorKind::FailedPrecondition`] when the share is in use with another user; the
    /// others as of [`Smb::new_global_mapping`].
    pub fn acquire_global_mapping(
        &self,
        remote: &SharePath,
        credentials: Option<&Credentials>,
        require_privacy: bool,
        users: &[Option<String>],
        deadline: Deadline,
    ) -> Result<()> {
        let operation = self.operation("smb acquire global mapping", deadline);
        if let Some(user) = users.iter().find(|user| !is_same_user(credentials, user)) {
            let detail = format!(
                "the share is in use by a volume of {}, and one mapping serves one user; it can \
                 be mapped for {} when no volume uses it any more",
                shown(user.as_deref()),
                shown(credentials.map(Credentials::username)),
            );
            return Err(operation.error(ErrorKind::FailedPrecondition, remote.share(), detail));
        }
        let lock = Lock::of_share(&operation, remote.share())?;
        let operation = operation.under(&lock);
        let mappings = find(&operation, remote)?;
        let plan = match mappings.is_empty() {
            true => Plan::Create,
            false if users.is_empty() => Plan::Replace,
            false if is_alive(&operation, remote, &mappings)? => Plan::Keep,
            false => Plan::Replace,
        };
        carry_out(
            &operation,
            plan,
            remote,
            credentials,
            require_privacy,
            &mappings,
        )
    }

    /// Gives the share's mapping up for one volume: it stays while `others` volumes use it,
    /// and is removed with the last. Answers whether it is gone.
    pub fn release_global_mapping(
        &self,
        remote: &SharePath,
        others: usize,
        deadline: Deadline,
    ) -> Result<bool> {
        if others > 0 {
            return Ok(false);
        }
        let operation = self.operation("smb release global mapping", deadline);
        let lock = Lock::of_share(&operation, remote.share())?;
        let operation = operation.under(&lock);
        let mappings = find(&operation, remote)?;
        remove(&operation, remote, &mappings).map(|()| true)
    }

    fn operation(&self, name: &'static str, deadline: Deadline) -> Operation<'_> {
        Operation::new(self.host, name, deadline)
    }
}

impl From<u32> for MappingStatus {
    fn from(number: u32) -> Self {
        match number {
            0 => Self::Ok,
            1 => Self::Paused,
            2 => Self::Disconnected,
            3 => Self::NetworkError,
            4 => Self::Connecting,
            5 => Self::Reconnecting,
            6 => Self::Unavailable,
            other => Self::Other(other),
        }
    }
}

/// All mappings of the share: Windows can have one for each local name.
fn find(operation: &Operation<'_>, remote: &SharePath) -> Result<Vec<Mapping>> {
    let query = Query::new(Namespace::Smb, CLASS, &["RemotePath", "Status"])
        .with("RemotePath", remote.share());
    operation
        .query(&query)?
        .iter()
        .map(|row| {
            Ok(Mapping {
                path: row.path().clone(),
                status: row.u32("Status")?.into(),
            })
        })
        .collect()
}

/// Whether the share answers through its mapping. That a user may not open the root of the
/// share does not mean that the mapping is dead.
fn is_alive(operation: &Operation<'_>, remote: &SharePath, mappings: &[Mapping]) -> Result<bool> {
    let request = Reach {
        target: format!(r"{}\", remote.share()),
    };
    if let Err(error) = operation.os().reach(&request, operation.deadline()) {
        let error = operation.port_error(remote.share(), error);
        return match (error.code(), error.kind()) {
            (Some(Code::System(_)), ErrorKind::PermissionDenied) => Ok(true),
            (Some(Code::System(_)), _) => Ok(false),
            _ => Err(error),
        };
    }
    let is_ok = |mapping: &Mapping| mapping.status == MappingStatus::Ok;
    // Opening the share connects a mapping that was idle.
    Ok(mappings.iter().any(is_ok) || find(operation, remote)?.iter().any(is_ok))
}

fn carry_out(
    operation: &Operation<'_>,
    plan: Plan,
    remote: &SharePath,
    credentials: Option<&Credentials>,
    require_privacy: bool,
    mappings: &[Mapping],
) -> Result<()> {
    match plan {
        Plan::Keep => return Ok(()),
        Plan::Replace => remove(operation, remote, mappings)?,
        Plan::Create => {}
    }
    let mut create = Invoke::on_class(Namespace::Smb, CLASS, "Create")
        .with("RemotePath", remote.share())
        .with("RequirePrivacy", require_privacy);
    if let Some(credentials) = credentials {
        create = create.with("Credential", credentials.parameter());
    }
    operation.invoke(remote.share(), &create).map(|_| ())
}

fn remove(operation: &Operation<'_>, remote: &SharePath, mappings: &[Mapping]) -> Result<()> {
    for mapping in mappings {
        let remove = Invoke::on(Namespace::Smb, CLASS, &mapping.path, "Remove").with("Force", true);
        match operation.invoke(remote.share(), &remove) {
            Ok(_) => {}
            // It went in the meantime.
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn is_same_user(credentials: Option<&Credentials>, user: &Option<String>) -> bool {
    match (credentials, user) {
        (Some(credentials), Some(user)) => credentials.is_user(user),
        (None, None) => true,
        _ => false,
    }
}

fn shown(user: Option<&str>) -> String {
    match user {
        Some(user) => format!("user {user:?}"),
        None => "no user".to_owned(),
    }
}
