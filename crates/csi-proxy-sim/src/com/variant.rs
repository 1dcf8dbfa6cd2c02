//! Values as VARIANTs, as WMI sends and takes them.
//!
//! Source: <https://learn.microsoft.com/windows/win32/wmisdk/numbers>: 64-bit integers are
//! text, those of 16 and 32 bits without a sign are `VT_I4`.

use csi_proxy::cim::Value;
use windows::Win32::System::Com::SAFEARRAY;
use windows::Win32::System::Ole::{SafeArrayCreateVector, SafeArrayDestroy, SafeArrayPutElement};
use windows::Win32::System::Variant::{
    VARENUM, VARIANT, VT_ARRAY, VT_BOOL, VT_BSTR, VT_EMPTY, VT_I2, VT_I4, VT_NULL, VT_UI1,
};
use windows::core::{BSTR, Result};

use super::{WBEM_E_TYPE_MISMATCH, error};
use crate::wmi::{Base, CimType};

/// A value as its type is sent.
pub(super) fn to_variant(cim_type: CimType, value: &Value) -> Result<VARIANT> {
    match value {
        Value::Null => Ok(null()),
        Value::Array(values) => array(cim_type.base, values),
        value => scalar(cim_type.base, value),
    }
}

/// A VARIANT without a value.
pub(super) fn null() -> VARIANT {
    let mut variant = VARIANT::default();
    // SAFETY: an empty VARIANT holds nothing that its tag would have to describe.
    unsafe { (*variant.Anonymous.Anonymous).vt = VT_NULL };
    variant
}

fn scalar(base: Base, value: &Value) -> Result<VARIANT> {
    let mismatch = || error(WBEM_E_TYPE_MISMATCH);
    Ok(match (base, value) {
        (Base::Text, Value::Text(text)) => VARIANT::from(BSTR::from(text.as_str())),
        (Base::Boolean, Value::Boolean(value)) => VARIANT::from(*value),
        (Base::U64, Value::Text(digits)) => VARIANT::from(BSTR::from(digits.as_str())),
        (Base::U64, Value::Integer(number)) => {
            VARIANT::from(BSTR::from(number.to_string().as_str()))
        }
        (Base::Char16, Value::Integer(number)) => {
            let unit = u16::try_from(*number).map_err(|_| mismatch())?;
            VARIANT::from(unit.cast_signed())
        }
        (Base::U16 | Base::U32, Value::Integer(number)) => {
            let number = u32::try_from(*number).map_err(|_| mismatch())?;
            VARIANT::from(number.cast_signed())
        }
        _ => return Err(mismatch()),
    })
}

fn array(base: Base, values: &[Value]) -> Result<VARIANT> {
    let element = match base {
        Base::Text | Base::U64 => VT_BSTR,
        Base::Boolean => VT_BOOL,
        Base::Char16 => VT_I2,
        Base::U16 | Base::U32 => VT_I4,
    };
    let array = SafeArray::new(element, values.len())?;
    for (at, value) in values.iter().enumerate() {
        array.put(at, &scalar(base, value)?)?;
    }
    let mut variant = VARIANT::default();
    // SAFETY: an empty VARIANT holds nothing; from here on it owns the array that its tag
    // describes.
    let inner = unsafe { &mut *variant.Anonymous.Anonymous };
    inner.vt = VARENUM(VT_ARRAY.0 | element.0);
    inner.Anonymous.parray = array.into_raw();
    Ok(variant)
}

/// The names of properties as an array of strings, which the caller destroys.
pub(super) fn names(names: &[String]) -> Result<*mut SAFEARRAY> {
    let array = SafeArray::new(VT_BSTR, names.len())?;
    for (at, name) in names.iter().enumerate() {
        array.put(at, &VARIANT::from(BSTR::from(name.as_str())))?;
    }
    Ok(array.into_raw())
}

/// An array of one dimension that starts at 0.
struct SafeArray(*mut SAFEARRAY);

impl SafeArray {
    fn new(element: VARENUM, length: usize) -> Result<Self> {
        let length = u32::try_from(length).map_err(|_| error(WBEM_E_TYPE_MISMATCH))?;
        // SAFETY: no preconditions; null is out of memory.
        let array = unsafe { SafeArrayCreateVector(element, 0, length) };
        match array.is_null() {
            true => Err(windows::Win32::Foundation::E_OUTOFMEMORY.into()),
            false => Ok(Self(array)),
        }
    }

    /// Copies the value of a VARIANT of the element's type.
    fn put(&self, at: usize, value: &VARIANT) -> Result<()> {
        let at = i32::try_from(at).map_err(|_| error(WBEM_E_TYPE_MISMATCH))?;
        // SAFETY: every VARIANT has a tag, which says which member is valid.
        let inner = unsafe { &value.Anonymous.Anonymous };
        let element: *const core::ffi::c_void = match inner.vt {
            VT_BSTR => {
                // SAFETY: as the tag says. A string is put by itself.
                let text = unsafe { &inner.Anonymous.bstrVal };
                text.as_ptr().cast()
            }
            // Other values by where they are.
            _ => (&raw const inner.Anonymous).cast(),
        };
        // SAFETY: the array is of the value's type, and copies it.
        unsafe { SafeArrayPutElement(self.0, &raw const at, element) }
    }

    fn into_raw(self) -> *mut SAFEARRAY {
        let array = self.0;
        std::mem::forget(self);
        array
    }
}

impl Drop for SafeArray {
    fn drop(&mut self) {
        // SAFETY: the array is this one's alone.
        let _ = unsafe { SafeArrayDestroy(self.0) };
    }
}

/// What a client put into a property of that type.
pub(super) fn from_variant(cim_type: CimType, variant: &VARIANT) -> Result<Value> {
    let mismatch = || error(WBEM_E_TYPE_MISMATCH);
    // SAFETY: the tag says which member is valid.
    let inner = unsafe { &variant.Anonymous.Anonymous };
    let members = &inner.Anonymous;
    let value = match inner.vt {
        VT_NULL | VT_EMPTY => return Ok(Value::Null),
        // SAFETY: as the tag says.
        VT_BSTR => Value::Text(unsafe { &*members.bstrVal }.to_string()),
        // SAFETY: as the tag says.
        VT_BOOL => unsafe { members.boolVal }.as_bool().into(),
        // SAFETY: as the tag says. The bits of a number without a sign.
        VT_I4 => unsafe { members.lVal }.cast_unsigned().into(),
        // SAFETY: as the tag says. The bits of a number without a sign.
        VT_I2 => unsafe { members.iVal }.cast_unsigned().into(),
        // SAFETY: as the tag says.
        VT_UI1 => unsafe { members.bVal }.into(),
        _ => return Err(mismatch()),
    };
    match (cim_type.base, &value) {
        _ if cim_type.array => Err(mismatch()),
        (Base::Text, Value::Text(_)) | (Base::Boolean, Value::Boolean(_)) => Ok(value),
        (Base::U64, Value::Text(digits)) => {
            let number: u64 = digits.parse().map_err(|_| mismatch())?;
            Ok(number.into())
        }
        (Base::U16 | Base::Char16, Value::Integer(number)) if u16::try_from(*number).is_ok() => {
            Ok(value)
        }
        (Base::U32, Value::Integer(_)) => Ok(value),
        _ => Err(mismatch()),
    }
}
