//! Values of WMI objects, from and to VARIANTs.

use windows::Win32::System::Variant::VARIANT;
use windows::Win32::System::Wmi::{
    CIM_SINT8, CIM_SINT16, CIM_SINT32, CIM_SINT64, CIM_STRING, CIM_UINT8, CIM_UINT16, CIM_UINT32,
    CIM_UINT64, CIMTYPE_ENUMERATION,
};
use windows::core::{HSTRING, PCWSTR};
use wmi::{IWbemClassWrapper, Variant, WMIError};

use crate::cim::{Argument, Value};

/// A property of an object; nothing when its value is an object.
///
/// The crate's own way is not taken, since it answers an empty array for one that is null.
pub(super) fn get(object: &IWbemClassWrapper, name: &str) -> Result<Option<Value>, WMIError> {
    let (raw, cim_type) = get_raw(object, name)?;
    match Variant::from_variant(&raw)? {
        Variant::Null | Variant::Empty => Ok(Some(Value::Null)),
        variant => Ok(value(variant.convert_into_cim_type(cim_type)?)),
    }
}

/// The declared type of a property.
pub(super) fn cim_type(
    object: &IWbemClassWrapper,
    name: &str,
) -> Result<CIMTYPE_ENUMERATION, WMIError> {
    get_raw(object, name).map(|(_, cim_type)| cim_type)
}

fn get_raw(
    object: &IWbemClassWrapper,
    name: &str,
) -> Result<(VARIANT, CIMTYPE_ENUMERATION), WMIError> {
    let name = HSTRING::from(name);
    let mut value = VARIANT::default();
    let mut cim_type = 0;
    // SAFETY: the name is a string that ends in NUL and lives longer than the call; the two
    // places are writable, and an empty VARIANT holds nothing that would be overwritten.
    unsafe {
        object.inner.Get(
            PCWSTR(name.as_ptr()),
            0,
            &raw mut value,
            Some(&raw mut cim_type),
            None,
        )?;
    }
    Ok((value, CIMTYPE_ENUMERATION(cim_type)))
}

fn value(variant: Variant) -> Option<Value> {
    Some(match variant {
        Variant::Empty | Variant::Null => Value::Null,
        Variant::String(text) => text.into(),
        Variant::Bool(value) => value.into(),
        Variant::I1(value) => i32::from(value).into(),
        Variant::I2(value) => i32::from(value).into(),
        Variant::I4(value) => value.into(),
        Variant::I8(value) => value.into(),
        Variant::UI1(value) => value.into(),
        Variant::UI2(value) => value.into(),
        Variant::UI4(value) => value.into(),
        Variant::UI8(value) => value.into(),
        Variant::R4(value) => value.to_string().into(),
        Variant::R8(value) => value.to_string().into(),
        Variant::Array(values) => Value::Array(values.into_iter().filter_map(value).collect()),
        Variant::Unknown(_) | Variant::Object(_) => return None,
    })
}

/// An argument as a parameter of the given type takes it.
pub(super) fn variant(
    argument: &Argument,
    cim_type: CIMTYPE_ENUMERATION,
) -> Result<Variant, WMIError> {
    match argument {
        Argument::Boolean(value) => Ok(Variant::Bool(*value)),
        Argument::Text(text) => Ok(Variant::String(text.clone())),
        Argument::Secret { secret } => Ok(Variant::String(secret.expose().to_owned())),
        Argument::Integer(number) => {
            integer(*number, cim_type).ok_or_else(|| too_large(*number, cim_type))
        }
    }
}

fn integer(number: u64, cim_type: CIMTYPE_ENUMERATION) -> Option<Variant> {
    Some(match cim_type {
        CIM_UINT8 => Variant::UI1(number.try_into().ok()?),
        CIM_UINT16 => Variant::UI2(number.try_into().ok()?),
        CIM_UINT32 => Variant::UI4(number.try_into().ok()?),
        CIM_UINT64 => Variant::UI8(number),
        CIM_SINT8 => Variant::I1(number.try_into().ok()?),
        CIM_SINT16 => Variant::I2(number.try_into().ok()?),
        CIM_SINT32 => Variant::I4(number.try_into().ok()?),
        CIM_SINT64 => Variant::I8(number.try_into().ok()?),
        CIM_STRING => Variant::String(number.to_string()),
        _ => return None,
    })
}

fn too_large(number: u64, cim_type: CIMTYPE_ENUMERATION) -> WMIError {
    WMIError::ConvertVariantError(format!(
        "{number} does not fit a parameter of the CIM type {}",
        cim_type.0
    ))
}
