//! The simulated node as WMI: a COM face in this process.
//!
//! [`Face::register`] makes `CoCreateInstance(WbemLocator)` of this process answer an object
//! of this module. A client of WMI that runs here, the library's own
//! [`csi_proxy::windows::Cim`] above all, then reaches the simulated node without knowing.
//!
//! It is no kinder than WMI: a path is answered only when it is selected, numbers of 64 bits
//! travel as text, the SMB namespace takes calls with packet privacy only, and with
//! `WBEM_FLAG_RETURN_IMMEDIATELY` a wrong query fails at its first row.

#![expect(unsafe_code, reason = "COM objects are written and registered here")]

mod blanket;
mod enumerator;
mod locator;
mod object;
mod services;
mod variant;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use csi_proxy::cim::Cim;
use csi_proxy::port::{PortError, SystemCode};
use windows::Win32::System::Com::{
    CLSCTX_INPROC_SERVER, CoIncrementMTAUsage, CoRegisterClassObject, CoRevokeClassObject,
    IClassFactory, REGCLS_MULTIPLEUSE,
};
use windows::Win32::System::Wmi::WbemLocator;
use windows::core::{BSTR, Error, HRESULT};

use locator::Factory;

/// The face, for as long as this is held. A process has one at a time.
#[derive(Debug)]
pub struct Face {
    shared: Arc<Shared>,
    cookie: u32,
}

/// How often a face was called.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FaceCounts {
    /// `IWbemLocator::ConnectServer`
    pub connects: u64,
    /// `IWbemServices::ExecQuery`
    pub queries: u64,
    /// `IWbemServices::ExecMethod`
    pub methods: u64,
    /// `IWbemServices::GetObject`
    pub objects: u64,
}

impl Face {
    /// Shows a port, that of a [`crate::Process`] for instance, to all WMI clients of this
    /// process. [`csi_proxy::windows::Cim`] beside the same process's port to the operating
    /// system is a host whose both halves are one model.
    ///
    /// Errors are those of `CoRegisterClassObject`.
    pub fn register(cim: Arc<dyn Cim>) -> Result<Self, Error> {
        let shared = Arc::new(Shared::new(cim));
        let factory: IClassFactory = Factory::new(Arc::clone(&shared)).into();
        // SAFETY: no preconditions. The apartment stays for as long as the process.
        unsafe { CoIncrementMTAUsage() }?;
        // SAFETY: the class id is a constant; COM takes its own reference to the factory.
        let cookie = unsafe {
            CoRegisterClassObject(
                &WbemLocator,
                &factory,
                CLSCTX_INPROC_SERVER,
                REGCLS_MULTIPLEUSE,
            )
        }?;
        Ok(Self { shared, cookie })
    }

    /// How often it was called.
    pub fn counts(&self) -> FaceCounts {
        let counts = &self.shared.counts;
        FaceCounts {
            connects: counts.connects.load(Ordering::Relaxed),
            queries: counts.queries.load(Ordering::Relaxed),
            methods: counts.methods.load(Ordering::Relaxed),
            objects: counts.objects.load(Ordering::Relaxed),
        }
    }
}

impl Drop for Face {
    fn drop(&mut self) {
        // SAFETY: the cookie is of a registration that is revoked here only.
        let _ = unsafe { CoRevokeClassObject(self.cookie) };
    }
}

/// The class object of a port, for a DLL that COM asks for it.
pub fn class_object(cim: Arc<dyn Cim>) -> IClassFactory {
    Factory::new(Arc::new(Shared::new(cim))).into()
}

/// What all objects of a face have in common.
struct Shared {
    cim: Arc<dyn Cim>,
    counts: Counters,
}

impl Shared {
    fn new(cim: Arc<dyn Cim>) -> Self {
        Self {
            cim,
            counts: Counters::default(),
        }
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}

#[derive(Default)]
struct Counters {
    connects: AtomicU64,
    queries: AtomicU64,
    methods: AtomicU64,
    objects: AtomicU64,
}

/// WMI's own errors.
///
/// Source: <https://learn.microsoft.com/windows/win32/wmisdk/wmi-error-constants>
const WBEM_E_NOT_FOUND: u32 = 0x8004_1002;
const WBEM_E_ACCESS_DENIED: u32 = 0x8004_1003;
const WBEM_E_TYPE_MISMATCH: u32 = 0x8004_1005;
const WBEM_E_NOT_SUPPORTED: u32 = 0x8004_100C;
const WBEM_E_INVALID_NAMESPACE: u32 = 0x8004_100E;
const WBEM_E_INVALID_CLASS: u32 = 0x8004_1010;
const WBEM_E_INVALID_OPERATION: u32 = 0x8004_1016;
const WBEM_E_INVALID_QUERY: u32 = 0x8004_1017;
const WBEM_E_INVALID_QUERY_TYPE: u32 = 0x8004_1018;
const WBEM_E_ILLEGAL_OPERATION: u32 = 0x8004_101E;
const WBEM_E_INVALID_METHOD: u32 = 0x8004_102E;
/// What RPC says of a service that is not there, and of one that went during the call.
const RPC_S_SERVER_UNAVAILABLE: u32 = 0x8007_06BA;
const RPC_S_CALL_FAILED: u32 = 0x8007_06BE;

/// A string of a client, up to its first NUL: a BSTR has a length, but clients print into one
/// that is longer than the text, as Wine's wmic does. That WMI reads no further is assumed.
fn text_of(client: &BSTR) -> String {
    let units: &[u16] = client;
    let end = units.iter().position(|unit| *unit == 0);
    String::from_utf16_lossy(&units[..end.unwrap_or(units.len())])
}

fn error(code: u32) -> Error {
    Error::from_hresult(HRESULT(code.cast_signed()))
}

fn not_supported<T>() -> Result<T, Error> {
    Err(error(WBEM_E_NOT_SUPPORTED))
}

/// An error of the node as a client of WMI sees it.
fn from_port(port: &PortError) -> Error {
    match port {
        PortError::System {
            code: SystemCode::HResult(code),
            ..
        } => error(*code),
        PortError::System {
            code: SystemCode::Win32(code),
            ..
        } => Error::from_hresult(HRESULT::from_win32(*code)),
        PortError::Unavailable { .. } => error(RPC_S_SERVER_UNAVAILABLE),
        // The provider has no deadline; what is left is an answer that does not come.
        PortError::OutcomeUnknown { .. }
        | PortError::DeadlineExceeded { .. }
        | PortError::Outside { .. } => error(RPC_S_CALL_FAILED),
    }
}
