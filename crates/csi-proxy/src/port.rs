//! What the two ports share: their errors, and the plain form of every call.
//!
//! A port is a trait whose methods take one request and a [`Deadline`]. The `port!` macro
//! writes the trait together with an enum of its requests and one of its answers, so that a
//! call can be recorded, replayed, made to fail or carried to another process in one place,
//! by whoever implements [`Transport`].

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::cim::{Argument, CimAnswer, CimCall};
use crate::clock::{Clock, Deadline};
use crate::os::{
    DevicesAnswer, DevicesCall, FilesAnswer, FilesCall, LocksAnswer, LocksCall, MountPointsAnswer,
    MountPointsCall, VirtualDisksAnswer, VirtualDisksCall,
};
use crate::secret::Secret;

/// What a port answers.
pub type PortResult<T> = Result<T, PortError>;

/// Why a port did not answer what it was asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum PortError {
    /// Windows refused the call.
    #[error("{api} answered {code}: {message}")]
    System {
        /// The Windows function or the WMI call.
        api: String,
        /// Its error code.
        code: SystemCode,
        /// What Windows says about it.
        message: String,
    },
    /// The object that was opened lies outside the root that the caller named.
    #[error("{path} leads outside {root}")]
    Outside {
        /// The path as it was asked for.
        path: String,
        /// The root it had to lie in.
        root: String,
    },
    /// The deadline passed before there was an answer.
    #[error("no answer before the deadline")]
    DeadlineExceeded {
        /// Set when the call could not be called back: its effect may still come.
        running: Option<CallId>,
    },
    /// The answer was lost on the way: the call may or may not have taken effect. The
    /// caller observes again; it never repeats the call blindly.
    #[error("the answer of {api} was lost; its outcome is unknown")]
    OutcomeUnknown {
        /// The Windows function or the WMI call.
        api: String,
    },
    /// The port takes no calls at present.
    #[error("the node does not take calls: {reason}")]
    Unavailable {
        /// Why not.
        reason: String,
    },
}

/// An error code in the family that the failed call uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum SystemCode {
    /// A code of `GetLastError`.
    Win32(u32),
    /// An HRESULT of COM, WMI's `WBEM_E_…` among them.
    HResult(u32),
}

impl fmt::Display for SystemCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Win32(code) => write!(f, "Win32 error {code}"),
            Self::HResult(code) => write!(f, "HRESULT {code:#010x}"),
        }
    }
}

/// A call that went on after its caller stopped waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct CallId(pub u64);

/// Writes a port: the trait, the enum of its requests, the enum of its answers, and the
/// implementation over a [`Transport`].
macro_rules! port {
    (
        $(#[$trait_doc:meta])*
        pub trait $trait:ident, $call:ident, $answer:ident {
            $(
                $(#[$method_doc:meta])*
                $variant:ident: fn $method:ident($request:ty) -> $reply:ty;
            )+
        }
    ) => {
        $(#[$trait_doc])*
        pub trait $trait: Send + Sync {
            $(
                $(#[$method_doc])*
                fn $method(
                    &self,
                    request: &$request,
                    deadline: $crate::clock::Deadline,
                ) -> $crate::port::PortResult<$reply>;
            )+
        }

        #[doc = concat!("A call of [`", stringify!($trait), "`] as plain data.")]
        #[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum $call {
            $(
                #[doc = concat!("[`", stringify!($trait), "::", stringify!($method), "`]")]
                $variant($request),
            )+
        }

        #[doc = concat!("An answer of [`", stringify!($trait), "`] as plain data.")]
        #[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum $answer {
            $(
                #[doc = concat!("[`", stringify!($trait), "::", stringify!($method), "`]")]
                $variant($reply),
            )+
        }

        impl $call {
            /// The names of all methods.
            pub const METHODS: &[&str] = &[$(stringify!($method)),+];

            /// The name of the method.
            pub fn method(&self) -> &'static str {
                match self {
                    $(Self::$variant(_) => stringify!($method),)+
                }
            }

            /// Makes the call.
            pub fn perform(
                &self,
                port: &(impl $trait + ?Sized),
                deadline: $crate::clock::Deadline,
            ) -> $crate::port::PortResult<$answer> {
                match self {
                    $(Self::$variant(request) => {
                        port.$method(request, deadline).map($answer::$variant)
                    })+
                }
            }
        }

        impl<T: $crate::port::Transport> $trait for $crate::port::Carried<T> {
            $(
                fn $method(
                    &self,
                    request: &$request,
                    deadline: $crate::clock::Deadline,
                ) -> $crate::port::PortResult<$reply> {
                    let call = $crate::port::Call::from($call::$variant(request.clone()));
                    match self.0.carry(&call, deadline)? {
                        $crate::port::Answer::$trait($answer::$variant(reply)) => Ok(reply),
                        _ => Err($crate::port::wrong_answer(&call)),
                    }
                }
            )+
        }

        impl From<$call> for $crate::port::Call {
            fn from(call: $call) -> Self {
                Self::$trait(call)
            }
        }
    };
}
pub(crate) use port;

/// Any call on either port.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Call {
    /// A call on [`crate::cim::Cim`].
    Cim(CimCall),
    /// A call on [`crate::os::Files`].
    Files(FilesCall),
    /// A call on [`crate::os::MountPoints`].
    MountPoints(MountPointsCall),
    /// A call on [`crate::os::Devices`].
    Devices(DevicesCall),
    /// A call on [`crate::os::VirtualDisks`].
    VirtualDisks(VirtualDisksCall),
    /// A call on [`crate::os::Locks`].
    Locks(LocksCall),
}

/// The answer to a [`Call`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// An answer of [`crate::cim::Cim`].
    Cim(CimAnswer),
    /// An answer of [`crate::os::Files`].
    Files(FilesAnswer),
    /// An answer of [`crate::os::MountPoints`].
    MountPoints(MountPointsAnswer),
    /// An answer of [`crate::os::Devices`].
    Devices(DevicesAnswer),
    /// An answer of [`crate::os::VirtualDisks`].
    VirtualDisks(VirtualDisksAnswer),
    /// An answer of [`crate::os::Locks`].
    Locks(LocksAnswer),
}

impl Call {
    /// The operation in one word, as faults, counters and records name it:
    /// `MSFT_Volume.Format` for a method, `query MSFT_Disk` and
    /// `associators MSFT_Volume` for reading, the method's name (`create_link`) for the
    /// calls of the operating system.
    pub fn operation(&self) -> String {
        match self {
            Self::Cim(CimCall::Query(query)) => format!("query {}", query.class),
            Self::Cim(CimCall::Associators(request)) => {
                format!("associators {}", request.result_class)
            }
            Self::Cim(CimCall::Invoke(invoke)) => {
                format!("{}.{}", invoke.target.class(), invoke.method)
            }
            Self::Cim(call) => call.method().to_owned(),
            Self::Files(call) => call.method().to_owned(),
            Self::MountPoints(call) => call.method().to_owned(),
            Self::Devices(call) => call.method().to_owned(),
            Self::VirtualDisks(call) => call.method().to_owned(),
            Self::Locks(call) => call.method().to_owned(),
        }
    }

    /// The same without secrets: `hide` answers the text that stands in the place of each
    /// secret argument, whose name it is told.
    #[must_use]
    pub fn redacted(&self, mut hide: impl FnMut(&str, &Secret) -> String) -> Self {
        let mut call = self.clone();
        let mut redact = |name: &str, argument: &mut Argument| {
            if let Argument::Secret { secret } = argument {
                *argument = Argument::Text(hide(name, secret));
            }
        };
        match &mut call {
            Self::Cim(CimCall::Invoke(invoke)) => {
                for (name, argument) in &mut invoke.arguments {
                    redact(name, argument);
                }
            }
            Self::Cim(CimCall::Query(query)) => {
                for condition in &mut query.conditions {
                    redact(&condition.property, &mut condition.value);
                }
            }
            _ => {}
        }
        call
    }

    /// Makes the call on the ports of a node.
    pub fn perform(
        &self,
        cim: &(impl crate::cim::Cim + ?Sized),
        os: &(impl crate::os::Os + ?Sized),
        deadline: Deadline,
    ) -> PortResult<Answer> {
        match self {
            Self::Cim(call) => call.perform(cim, deadline).map(Answer::Cim),
            Self::Files(call) => call.perform(os, deadline).map(Answer::Files),
            Self::MountPoints(call) => call.perform(os, deadline).map(Answer::MountPoints),
            Self::Devices(call) => call.perform(os, deadline).map(Answer::Devices),
            Self::VirtualDisks(call) => call.perform(os, deadline).map(Answer::VirtualDisks),
            Self::Locks(call) => call.perform(os, deadline).map(Answer::Locks),
        }
    }
}

/// Takes a call to whoever answers it.
pub trait Transport: Send + Sync {
    /// Carries the call there and the answer back.
    fn carry(&self, call: &Call, deadline: Deadline) -> PortResult<Answer>;

    /// The clock that deadlines are measured by.
    fn clock(&self) -> &dyn Clock;
}

/// Both ports over a [`Transport`].
#[derive(Debug)]
pub struct Carried<T>(pub T);

impl<T: Transport> Clock for Carried<T> {
    fn now(&self) -> crate::clock::Moment {
        self.0.clock().now()
    }

    fn sleep_until(&self, moment: crate::clock::Moment) {
        self.0.clock().sleep_until(moment);
    }
}

impl<T: Transport> crate::os::Os for Carried<T> {}

pub(crate) fn wrong_answer(call: &Call) -> PortError {
    PortError::Unavailable {
        reason: format!("the answer to {} is of another kind", call.operation()),
    }
}
