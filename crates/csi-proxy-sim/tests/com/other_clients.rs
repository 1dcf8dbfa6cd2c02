//! What clients other than the library's own do.

#![expect(unsafe_code, reason = "calls of COM")]

use csi_proxy_sim::SimNode;
use csi_proxy_sim::storage::SimDisk;
use windows::Win32::System::Com::{CLSCTX_INPROC_SERVER, CoCreateInstance};
use windows::Win32::System::Variant::{VARIANT, VT_I4};
use windows::Win32::System::Wmi::{
    IEnumWbemClassObject, IWbemClassObject, IWbemLocator, IWbemServices, WBEM_FLAG_FORWARD_ONLY,
    WBEM_FLAG_RETURN_IMMEDIATELY, WBEM_GENERIC_FLAG_TYPE, WBEM_INFINITE, WbemLocator,
};
use windows::core::{BSTR, HRESULT, Result, w};

use crate::{GIB, Reached};

/// `WBEM_E_INVALID_OPERATION`
const INVALID_OPERATION: HRESULT = HRESULT(0x8004_1016_u32.cast_signed());

fn reached() -> Reached {
    let disks = [1, 2].map(|number| SimDisk::raw(number * GIB));
    let builder = disks
        .into_iter()
        .fold(SimNode::builder(), |node, disk| node.disk(disk));
    Reached::new(builder.build())
}

fn connect(namespace: &BSTR) -> Result<IWbemServices> {
    let none = BSTR::new();
    // SAFETY: the face keeps the apartment of this process.
    let locator: IWbemLocator =
        unsafe { CoCreateInstance(&WbemLocator, None, CLSCTX_INPROC_SERVER) }?;
    // SAFETY: all arguments live as long as the call.
    unsafe { locator.ConnectServer(namespace, &none, &none, &none, 0, &none, None) }
}

fn query(wql: &BSTR, flags: WBEM_GENERIC_FLAG_TYPE) -> Result<IEnumWbemClassObject> {
    let services = connect(&r"ROOT\Microsoft\Windows\Storage".into())?;
    // SAFETY: all arguments live as long as the call.
    unsafe { services.ExecQuery(&"WQL".into(), wql, flags, None) }
}

/// The numbers of the disks that are left of a query.
fn numbers(rows: &IEnumWbemClassObject) -> Vec<i32> {
    std::iter::from_fn(|| next(rows)).collect()
}

fn next(rows: &IEnumWbemClassObject) -> Option<i32> {
    let mut row: [Option<IWbemClassObject>; 1] = [None];
    let mut count = 0;
    // SAFETY: a place for one object, and one for their number.
    unsafe { rows.Next(WBEM_INFINITE, &mut row, &raw mut count) }
        .ok()
        .unwrap();
    let [row] = row;
    let mut value = VARIANT::default();
    // SAFETY: the name ends in NUL, and the value holds nothing.
    unsafe { row?.Get(w!("Number"), 0, &raw mut value, None, None) }.unwrap();
    // SAFETY: every VARIANT has a tag.
    let inner = unsafe { &value.Anonymous.Anonymous };
    assert_eq!(inner.vt, VT_I4);
    // SAFETY: as the tag says.
    Some(unsafe { inner.Anonymous.lVal })
}

#[test]
fn an_enumerator_starts_again_and_its_copy_stands_where_it_stood() {
    let _reached = reached();
    let rows = query(
        &"SELECT Number FROM MSFT_Disk".into(),
        WBEM_FLAG_RETURN_IMMEDIATELY,
    )
    .unwrap();
    assert_eq!(next(&rows), Some(0));
    // SAFETY: no preconditions.
    let copy = unsafe { rows.Clone() }.unwrap();
    assert_eq!(numbers(&rows), [1, 2]);
    // SAFETY: no preconditions.
    unsafe { rows.Reset() }.unwrap();
    assert_eq!(numbers(&rows), [0, 1, 2]);
    assert_eq!(numbers(&copy), [1, 2]);
}

#[test]
fn one_that_is_forward_only_does_neither() {
    let _reached = reached();
    let flags = WBEM_FLAG_FORWARD_ONLY | WBEM_FLAG_RETURN_IMMEDIATELY;
    let rows = query(&"SELECT Number FROM MSFT_Disk".into(), flags).unwrap();
    // SAFETY: no preconditions.
    let reset = unsafe { rows.Reset() }.unwrap_err();
    // SAFETY: no preconditions.
    let copy = unsafe { rows.Clone() }.unwrap_err();
    assert_eq!([reset.code(), copy.code()], [INVALID_OPERATION; 2]);
    assert_eq!(numbers(&rows), [0, 1, 2]);
}

/// Wine's wmic does so.
#[test]
fn a_string_that_is_longer_than_its_text_is_read_to_its_nul() {
    let _reached = reached();
    let wql = "SELECT Number FROM MSFT_Disk WHERE Number = 1\0\0\0".into();
    let rows = query(&wql, WBEM_FLAG_RETURN_IMMEDIATELY).unwrap();
    assert_eq!(numbers(&rows), [1]);
    assert!(connect(&"ROOT\\CIMV2\0\0".into()).is_ok());
}
