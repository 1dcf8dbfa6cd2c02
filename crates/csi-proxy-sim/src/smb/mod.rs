//! SMB servers with their shares, and the node's global mappings.

mod credential;
mod mapping;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::Builder;
use crate::fs::{drop_share, make_share, upcase};
use crate::password::Password;
use crate::state::State;
use crate::win32::{
    ERROR_ACCESS_DENIED, ERROR_BAD_NET_NAME, ERROR_BAD_NETPATH, ERROR_LOGON_FAILURE,
    ERROR_NETNAME_DELETED,
};

pub(crate) use credential::parse as parse_credential;
pub use mapping::Mapping;
pub(crate) use mapping::{CLASSES, share_of};

/// SMB servers that the node can reach, and its mappings.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Smb {
    /// By their name in upper case.
    pub servers: BTreeMap<String, Server>,
    /// The node's global mappings, in the order in which they were made.
    pub mappings: Vec<Mapping>,
}

/// An SMB server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Server {
    /// Whether the node can reach it.
    #[serde(default = "yes")]
    pub online: bool,
    /// Whether it can encrypt, as a mapping with `RequirePrivacy` needs.
    #[serde(default = "yes")]
    pub encrypts: bool,
    /// Its accounts (`user` or `DOMAIN\user`) in upper case, with their passwords.
    #[serde(default)]
    pub accounts: BTreeMap<String, Password>,
    /// Its shares by their name in upper case.
    #[serde(default)]
    pub shares: BTreeMap<String, Share>,
}

/// A share of a server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Share {
    /// Its size in bytes.
    #[serde(with = "crate::size")]
    pub size: u64,
    /// Whether everybody may use it without an account.
    #[serde(default)]
    pub open: bool,
    /// The accounts that may read and write, in upper case.
    #[serde(default)]
    pub writers: BTreeSet<String>,
    /// The accounts that may only read, in upper case.
    #[serde(default)]
    pub readers: BTreeSet<String>,
}

fn yes() -> bool {
    true
}

impl Default for Server {
    fn default() -> Self {
        Self::new()
    }
}

impl Server {
    /// A server that is online and can encrypt, without accounts and shares.
    pub fn new() -> Self {
        Self {
            online: true,
            encrypts: true,
            accounts: BTreeMap::new(),
            shares: BTreeMap::new(),
        }
    }

    /// Adds an account (`user` or `DOMAIN\user`), or gives it another password.
    #[must_use]
    pub fn account(mut self, user: &str, password: &str) -> Self {
        self.set_password(user, password);
        self
    }

    /// Adds a share.
    #[must_use]
    pub fn share(mut self, name: &str, share: Share) -> Self {
        self.shares.insert(upcase(name), share);
        self
    }

    /// What is written by hand spells names in any case.
    fn with_names_in_upper_case(self) -> Self {
        let names = |users: BTreeSet<String>| users.iter().map(|user| upcase(user)).collect();
        let share = |(name, share): (String, Share)| {
            let share = Share {
                writers: names(share.writers),
                readers: names(share.readers),
                ..share
            };
            (upcase(&name), share)
        };
        let accounts = self.accounts.into_iter();
        Self {
            accounts: accounts.map(|(user, is)| (upcase(&user), is)).collect(),
            shares: self.shares.into_iter().map(share).collect(),
            online: self.online,
            encrypts: self.encrypts,
        }
    }

    /// Gives an account another password. Sessions that were made with the old one answer
    /// logon failures from now on.
    pub fn set_password(&mut self, user: &str, password: impl Into<Password>) {
        self.accounts.insert(upcase(user), password.into());
    }
}

impl Share {
    /// A share of that many bytes which nobody may use yet.
    pub fn new(size: u64) -> Self {
        Self {
            size,
            open: false,
            writers: BTreeSet::new(),
            readers: BTreeSet::new(),
        }
    }

    /// A share of that many bytes which everybody may write, without an account.
    pub fn open(size: u64) -> Self {
        Self {
            open: true,
            ..Self::new(size)
        }
    }

    /// Lets an account read and write.
    #[must_use]
    pub fn writer(mut self, user: &str) -> Self {
        self.writers.insert(upcase(user));
        self
    }

    /// Lets an account read.
    #[must_use]
    pub fn reader(mut self, user: &str) -> Self {
        self.readers.insert(upcase(user));
        self
    }

    fn access(&self, user: Option<&str>) -> Option<ShareAccess> {
        let is_among = |users: &BTreeSet<String>| user.is_some_and(|user| users.contains(user));
        match () {
            () if self.open || is_among(&self.writers) => Some(ShareAccess::ReadWrite),
            () if is_among(&self.readers) => Some(ShareAccess::ReadOnly),
            () => None,
        }
    }
}

/// How a share can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ShareAccess {
    /// Its files can be changed.
    ReadWrite,
    /// They can only be read.
    ReadOnly,
}

/// Who opens a share.
struct Login<'a> {
    user: &'a str,
    password: &'a Password,
}

impl Smb {
    /// Whether a share can be opened with the node's present mappings, and written; else the
    /// code that opening it answers.
    pub(crate) fn access(&self, server: &str, share: &str) -> Result<ShareAccess, u32> {
        let mapping = self.mapping(server, share);
        if mapping.is_some_and(|mapping| mapping.broken) {
            return Err(ERROR_NETNAME_DELETED);
        }
        self.connect(server, share, mapping.and_then(Mapping::login))
            .map_err(|code| match code {
                // The connection was there before the share went.
                ERROR_BAD_NET_NAME if mapping.is_some() => ERROR_NETNAME_DELETED,
                code => code,
            })
    }

    /// What a server answers to whoever wants to use a share; without a login it is the
    /// node's own account, which no server knows.
    ///
    /// Source: "System Error Codes",
    /// <https://learn.microsoft.com/windows/win32/debug/system-error-codes>
    fn connect(
        &self,
        server: &str,
        share: &str,
        login: Option<Login<'_>>,
    ) -> Result<ShareAccess, u32> {
        let server = self.servers.get(&upcase(server));
        let server = server
            .filter(|server| server.online)
            .ok_or(ERROR_BAD_NETPATH)?;
        let known = login
            .as_ref()
            .is_none_or(|login| server.accounts.get(login.user) == Some(login.password));
        if !known {
            return Err(ERROR_LOGON_FAILURE);
        }
        let share = server.shares.get(&upcase(share));
        let share = share.ok_or(ERROR_BAD_NET_NAME)?;
        let user = login.map(|login| login.user);
        match (share.access(user), user) {
            (Some(access), _) => Ok(access),
            (None, Some(_)) => Err(ERROR_ACCESS_DENIED),
            // Assumed: servers do not let guests in.
            (None, None) => Err(ERROR_LOGON_FAILURE),
        }
    }

    /// Server and share behind a drive that a mapping has as its local path.
    pub(crate) fn share_of_drive(&self, letter: char) -> Option<(&str, &str)> {
        let drive = format!("{letter}:");
        let is_drive = |path: &str| path.trim_end_matches('\\').eq_ignore_ascii_case(&drive);
        let mut mappings = self.mappings.iter();
        mappings
            .find(|mapping| mapping.local_path.as_deref().is_some_and(is_drive))?
            .names()
    }

    fn mapping(&self, server: &str, share: &str) -> Option<&Mapping> {
        let mut mappings = self.mappings.iter();
        mappings.find(|mapping| mapping.leads_to(server, share))
    }

    /// The server of that name, without case, to change it.
    pub fn server_mut(&mut self, name: &str) -> Option<&mut Server> {
        self.servers.get_mut(&upcase(name))
    }

    /// Whether the node has a mapping of a share.
    pub fn is_mapped(&self, server: &str, share: &str) -> bool {
        self.mapping(server, share).is_some()
    }

    /// Breaks the mapping of a share: it says that it is disconnected and every access
    /// fails, until it is removed and made anew.
    pub fn break_mapping(&mut self, server: &str, share: &str) {
        for mapping in &mut self.mappings {
            mapping.broken |= mapping.leads_to(server, share);
        }
    }
}

/// Puts a server there, with empty file systems for shares that are new.
pub(crate) fn put_server(state: &mut State, name: &str, server: Server) {
    let server = server.with_names_in_upper_case();
    let before = state.smb.servers.insert(upcase(name), server.clone());
    let before = before.map(|server| server.shares).unwrap_or_default();
    for (share, is) in &server.shares {
        if !before.contains_key(share) {
            make_share(state, name, share, is.size);
        }
    }
    for share in before.keys() {
        if !server.shares.contains_key(share) {
            drop_share(state, name, share);
        }
    }
}

impl Builder {
    /// Puts an SMB server there.
    #[must_use]
    pub fn smb_server(mut self, name: &str, server: Server) -> Self {
        put_server(&mut self.state, name, server);
        self
    }
}

impl State {
    /// Puts an SMB server there, or changes the one of that name. A share that it had before
    /// keeps its files, one that it has no longer loses them.
    pub fn put_smb_server(&mut self, name: &str, server: Server) {
        put_server(self, name, server);
    }
}

/// Mappings that are not persistent end with the node.
pub(crate) fn reboot(state: &mut State) {
    state.smb.mappings.retain(|mapping| mapping.persistent);
    for mapping in &mut state.smb.mappings {
        mapping.broken = false;
    }
}
