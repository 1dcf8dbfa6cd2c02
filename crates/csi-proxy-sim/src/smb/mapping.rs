//! The class `MSFT_SmbGlobalMapping`.
//!
//! It has no page of its own; the properties and the values of `Status` are those of
//! <https://learn.microsoft.com/previous-versions/windows/desktop/smb/msft-smbmapping>, the
//! parameters those of
//! <https://learn.microsoft.com/powershell/module/smbshare/new-smbglobalmapping>. Failures
//! are reported as "Windows System Error" with the number, which through WMI is an HRESULT.

use csi_proxy::cim::{Namespace, Value};
use csi_proxy::port::{PortError, PortResult};
use serde::{Deserialize, Serialize};

use super::{Login, Smb, credential};
use crate::cim::{Class, Hint, Method, MethodCall, Reply, Row, done};
use crate::fs::upcase;
use crate::password::Password;
use crate::state::State;
use crate::win32::{
    ERROR_ALREADY_ASSIGNED, ERROR_BAD_NET_NAME, ERROR_INVALID_PARAMETER, ERROR_NOT_SUPPORTED,
    ERROR_OPEN_FILES, ERROR_SESSION_CREDENTIAL_CONFLICT, hresult_from_win32,
};

/// `MSFT_SmbGlobalMapping.Status`.
const OK: u32 = 0;
const DISCONNECTED: u32 = 2;

pub(crate) const CLASSES: &[Class] = &[Class {
    namespace: Namespace::Smb,
    name: "MSFT_SmbGlobalMapping",
    properties: &[
        "LocalPath",
        "RemotePath",
        "RequireIntegrity",
        "RequirePrivacy",
        "Status",
        "UseWriteThrough",
    ],
    rows,
    methods: &[
        Method {
            name: "Create",
            is_static: true,
            parameters: &[
                "LocalPath",
                "RemotePath",
                "Credential",
                "Persistent",
                "RequireIntegrity",
                "RequirePrivacy",
                "UseWriteThrough",
            ],
            run: create,
        },
        Method {
            name: "Remove",
            is_static: false,
            parameters: &["Force"],
            run: remove,
        },
    ],
}];

/// A global mapping of the node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mapping {
    /// `RemotePath`, as it was asked for.
    pub remote_path: String,
    /// `LocalPath`: a drive such as `G:`.
    pub local_path: Option<String>,
    /// The account, in upper case; nothing is the node's own.
    pub user: Option<String>,
    /// The password that it was made with.
    pub password: Option<Password>,
    /// `RequireIntegrity`.
    pub require_integrity: bool,
    /// `RequirePrivacy`.
    pub require_privacy: bool,
    /// Whether it is made again after a reboot.
    pub persistent: bool,
    /// It is disconnected for good.
    #[serde(default)]
    pub broken: bool,
}

impl Mapping {
    /// Server and share.
    pub(super) fn names(&self) -> Option<(&str, &str)> {
        share_of(&self.remote_path)
    }

    pub(super) fn leads_to(&self, server: &str, share: &str) -> bool {
        let is = |one: &str, other: &str| upcase(one) == upcase(other);
        self.names()
            .is_some_and(|names| is(names.0, server) && is(names.1, share))
    }

    pub(super) fn login(&self) -> Option<Login<'_>> {
        Some(Login {
            user: self.user.as_deref()?,
            password: self.password.as_ref()?,
        })
    }
}

/// Server and share of `\\server\share`, with or without a `\` at its end.
pub(crate) fn share_of(remote_path: &str) -> Option<(&str, &str)> {
    let rest = remote_path.strip_prefix(r"\\")?;
    let (server, share) = rest.trim_end_matches('\\').split_once('\\')?;
    let named = !server.is_empty() && !share.is_empty() && !share.contains('\\');
    (named && !rest.contains('/')).then_some((server, share))
}

impl Smb {
    /// Windows notices that a server is away, not that it would refuse the password now.
    fn status(&self, mapping: &Mapping) -> u32 {
        let server = mapping
            .names()
            .and_then(|(server, _)| self.servers.get(&upcase(server)));
        match server {
            Some(server) if server.online && !mapping.broken => OK,
            _ => DISCONNECTED,
        }
    }
}

fn rows(state: &State, _: &Hint<'_>) -> Vec<Row> {
    let smb = &state.smb;
    let row = |mapping: &Mapping| Row {
        key: key(mapping),
        properties: vec![
            ("LocalPath", mapping.local_path.clone().into()),
            ("RemotePath", mapping.remote_path.as_str().into()),
            ("RequireIntegrity", mapping.require_integrity.into()),
            ("RequirePrivacy", mapping.require_privacy.into()),
            ("Status", smb.status(mapping).into()),
            ("UseWriteThrough", Value::Boolean(false)),
        ],
    };
    smb.mappings.iter().map(row).collect()
}

/// Both paths are keys of the class.
fn key(mapping: &Mapping) -> String {
    let local = mapping.local_path.as_deref().unwrap_or_default();
    upcase(&format!("{local}|{}", mapping.remote_path))
}

fn create(call: &mut MethodCall<'_>) -> PortResult<Reply> {
    let mapping = wanted(call)?;
    let refused = |code| Err(refusal(&call.api, code));
    let Some((server, share)) = mapping.names() else {
        // A path that names no share.
        return refused(ERROR_BAD_NET_NAME);
    };
    let smb = &call.state.smb;
    if smb.mapping(server, share).is_some() {
        return refused(ERROR_ALREADY_ASSIGNED);
    }
    if smb.conflicts(server, &mapping) {
        return refused(ERROR_SESSION_CREDENTIAL_CONFLICT);
    }
    if let Err(code) = smb.connect(server, share, mapping.login()) {
        return refused(code);
    }
    // Assumed.
    let encrypts = smb
        .servers
        .get(&upcase(server))
        .is_some_and(|server| server.encrypts);
    if mapping.require_privacy && !encrypts {
        return refused(ERROR_NOT_SUPPORTED);
    }
    call.state.smb.mappings.push(mapping);
    done(0)
}

/// The mapping that the parameters ask for.
fn wanted(call: &MethodCall<'_>) -> PortResult<Mapping> {
    let invalid = || refusal(&call.api, ERROR_INVALID_PARAMETER);
    let remote_path = call.text("RemotePath")?.ok_or_else(invalid)?;
    let credential = match call.text("Credential")? {
        Some(text) => Some(credential::parse(&text).ok_or_else(invalid)?),
        None => None,
    };
    let (user, password) = credential.unzip();
    Ok(Mapping {
        remote_path,
        local_path: call.text("LocalPath")?,
        user: user.map(|user| upcase(&user)),
        password: password.map(Password::from),
        require_integrity: call.boolean("RequireIntegrity")?.unwrap_or(false),
        require_privacy: call.boolean("RequirePrivacy")?.unwrap_or(false),
        // Assumed: Microsoft's own examples ask for it where they want it.
        persistent: call.boolean("Persistent")?.unwrap_or(false),
        broken: false,
    })
}

impl Smb {
    /// "Multiple connections to a server or shared resource by the same user, using more
    /// than one user name, are not allowed."
    fn conflicts(&self, server: &str, wanted: &Mapping) -> bool {
        self.mappings.iter().any(|mapping| {
            let names = mapping.names();
            let same = names.is_some_and(|(name, _)| upcase(name) == upcase(server));
            same && mapping.user != wanted.user
        })
    }
}

fn remove(call: &mut MethodCall<'_>) -> PortResult<Reply> {
    let force = call.boolean("Force")?.unwrap_or(false);
    let wanted = call.key;
    let mappings = call.state.smb.mappings.iter();
    let names = mappings.filter(|mapping| key(mapping) == wanted);
    let mut names = names.filter_map(Mapping::names);
    let in_use =
        names.any(|(server, share)| crate::fs::share_has_open_files(call.state, server, share));
    if in_use && !force {
        return Err(refusal(&call.api, ERROR_OPEN_FILES));
    }
    let mappings = &mut call.state.smb.mappings;
    mappings.retain(|mapping| key(mapping) != wanted);
    done(0)
}

fn refusal(api: &str, code: u32) -> PortError {
    hresult_from_win32(api, code)
}
