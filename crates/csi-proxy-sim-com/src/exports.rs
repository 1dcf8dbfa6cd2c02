//! What COM looks for in a DLL.
//!
//! Source: <https://learn.microsoft.com/windows/win32/com/dll-server-responsibilities>. It does
//! not register itself: whether for the machine or for one user is a choice that its user has
//! to make, see `docs/sim-com.md`.

#![expect(unsafe_code, reason = "functions that COM calls by their names")]

use core::ffi::c_void;

use windows::Win32::Foundation::{CLASS_E_CLASSNOTAVAILABLE, E_POINTER, S_FALSE};
use windows::Win32::System::Wmi::WbemLocator;
use windows_core::{GUID, HRESULT, Interface};

use crate::node;

/// Answers the class object of `WbemLocator`, connected to the node.
#[unsafe(no_mangle)]
extern "system" fn DllGetClassObject(
    class: *const GUID,
    interface: *const GUID,
    object: *mut *mut c_void,
) -> HRESULT {
    if object.is_null() {
        return E_POINTER;
    }
    // SAFETY: the caller's place for the object, not null.
    unsafe { object.write(core::ptr::null_mut()) };
    // SAFETY: null or the caller's identifier, which lives as long as the call.
    let class = unsafe { class.as_ref() };
    if class.is_none() || interface.is_null() {
        return E_POINTER;
    }
    if class != Some(&WbemLocator) {
        return CLASS_E_CLASSNOTAVAILABLE;
    }
    match node::class_object() {
        // SAFETY: the identifier and the place are the caller's and not null.
        Ok(factory) => unsafe { factory.query(interface, object) },
        Err(code) => code,
    }
}

/// Never: a thread of the DLL reads the node's answers for as long as the process lives.
#[unsafe(no_mangle)]
extern "system" fn DllCanUnloadNow() -> HRESULT {
    S_FALSE
}
