//! The class object and `IWbemLocator`.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use windows::Win32::Foundation::{CLASS_E_NOAGGREGATION, E_POINTER};
use windows::Win32::System::Com::{IClassFactory, IClassFactory_Impl};
use windows::Win32::System::Wmi::{IWbemContext, IWbemLocator, IWbemLocator_Impl, IWbemServices};
use windows::core::{BOOL, BSTR, GUID, IUnknown, Interface, Ref, Result, implement};

use super::services::Services;
use super::{Shared, WBEM_E_INVALID_NAMESPACE, error, text_of};
use crate::wmi;

/// Makes locators.
#[implement(IClassFactory)]
pub(super) struct Factory {
    shared: Arc<Shared>,
}

impl Factory {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }
}

impl IClassFactory_Impl for Factory_Impl {
    fn CreateInstance(
        &self,
        outer: Ref<'_, IUnknown>,
        interface: *const GUID,
        object: *mut *mut core::ffi::c_void,
    ) -> Result<()> {
        if object.is_null() || interface.is_null() {
            return Err(E_POINTER.into());
        }
        if outer.is_some() {
            return Err(CLASS_E_NOAGGREGATION.into());
        }
        let shared = Arc::clone(&self.shared);
        let locator: IWbemLocator = Locator { shared }.into();
        // SAFETY: both pointers are the caller's and not null.
        unsafe { locator.query(interface, object) }.ok()
    }

    fn LockServer(&self, _: BOOL) -> Result<()> {
        Ok(())
    }
}

#[implement(IWbemLocator)]
struct Locator {
    shared: Arc<Shared>,
}

impl IWbemLocator_Impl for Locator_Impl {
    fn ConnectServer(
        &self,
        resource: &BSTR,
        _: &BSTR,
        _: &BSTR,
        _: &BSTR,
        _: i32,
        _: &BSTR,
        _: Ref<'_, IWbemContext>,
    ) -> Result<IWbemServices> {
        let counts = &self.shared.counts;
        counts.connects.fetch_add(1, Ordering::Relaxed);
        match wmi::namespace_in(&text_of(resource)) {
            Some(namespace) => Ok(Services::new(Arc::clone(&self.shared), namespace).into()),
            None => Err(error(WBEM_E_INVALID_NAMESPACE)),
        }
    }
}
