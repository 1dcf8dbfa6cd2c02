//! `IClientSecurity`: what `CoSetProxyBlanket` talks to.

use std::sync::atomic::{AtomicU32, Ordering};

use windows::Win32::System::Com::{RPC_C_AUTHN_LEVEL, RPC_C_AUTHN_LEVEL_PKT_PRIVACY};

/// The authentication level of a proxy.
#[derive(Debug, Default)]
pub(super) struct Blanket(AtomicU32);

impl Blanket {
    pub(super) fn is_private(&self) -> bool {
        self.0.load(Ordering::Relaxed) == RPC_C_AUTHN_LEVEL_PKT_PRIVACY.0
    }

    pub(super) fn set(&self, level: RPC_C_AUTHN_LEVEL) {
        self.0.store(level.0, Ordering::Relaxed);
    }
}

/// Writes `IClientSecurity` for an object that has a `blanket`.
macro_rules! client_security {
    ($type:ty) => {
        impl windows::Win32::System::Com::IClientSecurity_Impl for $type {
            fn QueryBlanket(
                &self,
                _: windows::core::Ref<'_, windows::core::IUnknown>,
                _: *mut u32,
                _: *mut u32,
                _: *mut *mut u16,
                _: *mut windows::Win32::System::Com::RPC_C_AUTHN_LEVEL,
                _: *mut windows::Win32::System::Com::RPC_C_IMP_LEVEL,
                _: *mut *mut core::ffi::c_void,
                _: *mut u32,
            ) -> windows::core::Result<()> {
                $crate::com::not_supported()
            }

            fn SetBlanket(
                &self,
                _: windows::core::Ref<'_, windows::core::IUnknown>,
                _: u32,
                _: u32,
                _: &windows::core::PCWSTR,
                level: windows::Win32::System::Com::RPC_C_AUTHN_LEVEL,
                _: windows::Win32::System::Com::RPC_C_IMP_LEVEL,
                _: *const core::ffi::c_void,
                _: &windows::Win32::System::Com::EOLE_AUTHENTICATION_CAPABILITIES,
            ) -> windows::core::Result<()> {
                self.blanket.set(level);
                Ok(())
            }

            fn CopyProxy(
                &self,
                _: windows::core::Ref<'_, windows::core::IUnknown>,
            ) -> windows::core::Result<windows::core::IUnknown> {
                $crate::com::not_supported()
            }
        }
    };
}
pub(super) use client_security;
