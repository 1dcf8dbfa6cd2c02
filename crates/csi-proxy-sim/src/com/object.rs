//! `IWbemClassObject`: classes, instances, and the parameters of methods.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use csi_proxy::cim::Value;
use windows::Win32::Foundation::E_POINTER;
use windows::Win32::System::Com::SAFEARRAY;
use windows::Win32::System::Variant::VARIANT;
use windows::Win32::System::Wmi::{
    IWbemClassObject, IWbemClassObject_Impl, IWbemQualifierSet, WBEM_COMPARISON_FLAG,
    WBEM_CONDITION_FLAG_TYPE, WBEM_FLAG_NONSYSTEM_ONLY, WBEM_FLAG_SYSTEM_ONLY,
};
use windows::core::{BSTR, HRESULT, OutRef, PCWSTR, Ref, Result, implement};

use super::{
    WBEM_E_ILLEGAL_OPERATION, WBEM_E_INVALID_METHOD, WBEM_E_NOT_FOUND, error, not_supported,
    variant,
};
use crate::cim::{Class, Method};
use crate::wmi::{Base, CimType, type_of};

/// `WBEM_S_NO_MORE_DATA`
const NO_MORE_DATA: HRESULT = HRESULT(0x0004_0005);
/// Where a property comes from, in the flags of `GetNames` and `BeginEnumeration`.
const ORIGIN: i32 = 0x70;
/// `WBEM_FLAVOR_ORIGIN_SYSTEM`
const FLAVOR_SYSTEM: i32 = 0x40;

/// An object with properties.
#[implement(IWbemClassObject)]
pub(super) struct ClassObject {
    kind: Kind,
    /// The class whose types its properties have.
    class: &'static Class,
    path: Option<String>,
    properties: Mutex<BTreeMap<String, Value>>,
    /// Where an enumeration of the properties stands.
    cursor: Mutex<Option<(i32, usize)>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Class,
    Instance,
    /// `__PARAMETERS`, as a class and as an instance of it.
    Signature,
    Parameters,
}

impl ClassObject {
    fn new(
        kind: Kind,
        class: &'static Class,
        path: Option<String>,
        properties: BTreeMap<String, Value>,
    ) -> Self {
        Self {
            kind,
            class,
            path,
            properties: Mutex::new(properties),
            cursor: Mutex::default(),
        }
    }

    pub(super) fn class(class: &'static Class) -> Self {
        let path = format!(r"\\NODE\{}:{}", class.namespace, class.name);
        Self::new(Kind::Class, class, Some(path), nulls(class.properties))
    }

    pub(super) fn instance(
        class: &'static Class,
        path: Option<String>,
        properties: BTreeMap<String, Value>,
    ) -> Self {
        Self::new(Kind::Instance, class, path, properties)
    }

    /// What a method answers.
    pub(super) fn output(class: &'static Class, properties: BTreeMap<String, Value>) -> Self {
        Self::new(Kind::Parameters, class, None, properties)
    }

    fn signature(class: &'static Class, method: &Method) -> Self {
        Self::new(Kind::Signature, class, None, nulls(method.parameters))
    }

    fn properties(&self) -> MutexGuard<'_, BTreeMap<String, Value>> {
        self.properties
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn class_name(&self) -> &'static str {
        match self.kind {
            Kind::Class | Kind::Instance => self.class.name,
            Kind::Signature | Kind::Parameters => "__PARAMETERS",
        }
    }

    fn is_class(&self) -> bool {
        matches!(self.kind, Kind::Class | Kind::Signature)
    }

    /// A property of the object, or of those that every object has.
    fn get(&self, name: &str) -> Option<(CimType, Value)> {
        if let Some(system) = self.system(name) {
            return Some(system);
        }
        let properties = self.properties();
        let (name, value) = find(&properties, name)?;
        Some((type_of(self.class.name, name), value.clone()))
    }

    fn system(&self, name: &str) -> Option<(CimType, Value)> {
        let text = |value: Option<String>| (TEXT, value.into());
        let number = |value: usize| (U32, Value::from(value as u64));
        let path = self.path.clone();
        Some(match name.to_ascii_uppercase().as_str() {
            "__CLASS" => text(Some(self.class_name().to_owned())),
            "__PATH" => text(path),
            "__RELPATH" => text(path.and_then(|path| {
                let prefix = format!(r"\\NODE\{}:", self.class.namespace);
                path.strip_prefix(&prefix).map(str::to_owned)
            })),
            "__NAMESPACE" => text(path.map(|_| self.class.namespace.to_string())),
            "__SERVER" => text(path.map(|_| "NODE".to_owned())),
            "__DYNASTY" => text(Some(self.class_name().to_owned())),
            "__SUPERCLASS" => text(None),
            "__GENUS" => number(if self.is_class() { 1 } else { 2 }),
            "__PROPERTY_COUNT" => number(self.properties().len()),
            _ => return None,
        })
    }

    fn names(&self, flags: i32) -> Vec<String> {
        let origin = flags & ORIGIN;
        let system = SYSTEM.iter().map(|name| (*name).to_owned());
        let system = system.filter(|_| origin != WBEM_FLAG_NONSYSTEM_ONLY.0);
        let own: Vec<String> = self.properties().keys().cloned().collect();
        let own = own
            .into_iter()
            .filter(|_| origin != WBEM_FLAG_SYSTEM_ONLY.0);
        system.chain(own).collect()
    }
}

const TEXT: CimType = CimType {
    base: Base::Text,
    array: false,
};
const U32: CimType = CimType {
    base: Base::U32,
    array: false,
};

/// The properties that every object has.
const SYSTEM: &[&str] = &[
    "__CLASS",
    "__DYNASTY",
    "__GENUS",
    "__NAMESPACE",
    "__PATH",
    "__PROPERTY_COUNT",
    "__RELPATH",
    "__SERVER",
    "__SUPERCLASS",
];

fn nulls(names: &[&str]) -> BTreeMap<String, Value> {
    let null = |name: &&str| ((*name).to_owned(), Value::Null);
    names.iter().map(null).collect()
}

fn find<'a>(properties: &'a BTreeMap<String, Value>, name: &str) -> Option<(&'a str, &'a Value)> {
    properties
        .iter()
        .find(|(own, _)| own.eq_ignore_ascii_case(name))
        .map(|(own, value)| (own.as_str(), value))
}

/// A name that a client gave.
fn text(name: &PCWSTR) -> Result<String> {
    if name.is_null() {
        return Err(E_POINTER.into());
    }
    // SAFETY: the client's string, which ends in NUL, and is not null.
    unsafe { name.to_string() }.map_err(|_| error(WBEM_E_NOT_FOUND))
}

/// Where a client wants a property; each place may be null.
struct Places {
    value: *mut VARIANT,
    cim_type: *mut i32,
    flavor: *mut i32,
}

impl Places {
    fn write(&self, name: &str, (cim_type, value): (CimType, Value)) -> Result<()> {
        let variant = variant::to_variant(cim_type, &value)?;
        if !self.value.is_null() {
            // SAFETY: the client's place for a value, whose former contents it has cleared.
            unsafe { self.value.write(variant) };
        }
        if !self.cim_type.is_null() {
            // SAFETY: the client's place, not null.
            unsafe { self.cim_type.write(cim_type.number()) };
        }
        if !self.flavor.is_null() {
            let flavor = if name.starts_with("__") {
                FLAVOR_SYSTEM
            } else {
                0
            };
            // SAFETY: the client's place, not null.
            unsafe { self.flavor.write(flavor) };
        }
        Ok(())
    }
}

impl IWbemClassObject_Impl for ClassObject_Impl {
    fn Get(
        &self,
        name: &PCWSTR,
        _: i32,
        value: *mut VARIANT,
        cim_type: *mut i32,
        flavor: *mut i32,
    ) -> Result<()> {
        let name = text(name)?;
        let found = self.get(&name).ok_or_else(|| error(WBEM_E_NOT_FOUND))?;
        let places = Places {
            value,
            cim_type,
            flavor,
        };
        places.write(&name, found)
    }

    fn Put(&self, name: &PCWSTR, _: i32, value: *const VARIANT, _: i32) -> Result<()> {
        let name = text(name)?;
        if self.kind != Kind::Parameters {
            return Err(error(WBEM_E_ILLEGAL_OPERATION));
        }
        let mut properties = self.properties();
        let own = find(&properties, &name).map(|(own, _)| own.to_owned());
        let own = own.ok_or_else(|| error(WBEM_E_NOT_FOUND))?;
        // SAFETY: the client's value, where there is one.
        let new = match unsafe { value.as_ref() } {
            Some(value) => variant::from_variant(type_of(self.class.name, &own), value)?,
            None => Value::Null,
        };
        properties.insert(own, new);
        Ok(())
    }

    fn GetNames(
        &self,
        _: &PCWSTR,
        flags: WBEM_CONDITION_FLAG_TYPE,
        _: *const VARIANT,
    ) -> Result<*mut SAFEARRAY> {
        variant::names(&self.names(flags.0))
    }

    fn BeginEnumeration(&self, flags: i32) -> Result<()> {
        *self.cursor.lock().unwrap_or_else(PoisonError::into_inner) = Some((flags, 0));
        Ok(())
    }

    fn Next(
        &self,
        _: i32,
        name: *mut BSTR,
        value: *mut VARIANT,
        cim_type: *mut i32,
        flavor: *mut i32,
    ) -> Result<()> {
        let mut cursor = self.cursor.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((flags, at)) = cursor.as_mut() else {
            return Err(error(WBEM_E_ILLEGAL_OPERATION));
        };
        let names = self.names(*flags);
        let Some(own) = names.get(*at) else {
            return Err(NO_MORE_DATA.into());
        };
        *at += 1;
        let found = self.get(own).ok_or_else(|| error(WBEM_E_NOT_FOUND))?;
        let places = Places {
            value,
            cim_type,
            flavor,
        };
        places.write(own, found)?;
        if !name.is_null() {
            // SAFETY: the client's place for a string, which it owns from here on.
            unsafe { name.write(BSTR::from(own.as_str())) };
        }
        Ok(())
    }

    fn EndEnumeration(&self) -> Result<()> {
        *self.cursor.lock().unwrap_or_else(PoisonError::into_inner) = None;
        Ok(())
    }

    fn Clone(&self) -> Result<IWbemClassObject> {
        let properties = self.properties().clone();
        Ok(ClassObject::new(self.kind, self.class, self.path.clone(), properties).into())
    }

    fn SpawnInstance(&self, _: i32) -> Result<IWbemClassObject> {
        if self.kind != Kind::Signature {
            return Err(error(WBEM_E_ILLEGAL_OPERATION));
        }
        let properties = self.properties().clone();
        Ok(ClassObject::new(Kind::Parameters, self.class, None, properties).into())
    }

    fn GetMethod(
        &self,
        name: &PCWSTR,
        _: i32,
        input: OutRef<'_, IWbemClassObject>,
        output: OutRef<'_, IWbemClassObject>,
    ) -> Result<()> {
        if self.kind != Kind::Class {
            return Err(error(WBEM_E_ILLEGAL_OPERATION));
        }
        let name = text(name)?;
        let mut methods = self.class.methods.iter();
        let method = methods
            .find(|method| method.name.eq_ignore_ascii_case(&name))
            .ok_or_else(|| error(WBEM_E_INVALID_METHOD))?;
        if !input.is_null() {
            let signature = (!method.parameters.is_empty())
                .then(|| ClassObject::signature(self.class, method).into());
            input.write(signature)?;
        }
        if !output.is_null() {
            let answer = nulls(&["ReturnValue"]);
            let answer = ClassObject::new(Kind::Signature, self.class, None, answer);
            output.write(Some(answer.into()))?;
        }
        Ok(())
    }

    fn GetQualifierSet(&self) -> Result<IWbemQualifierSet> {
        not_supported()
    }

    fn Delete(&self, _: &PCWSTR) -> Result<()> {
        not_supported()
    }

    fn GetPropertyQualifierSet(&self, _: &PCWSTR) -> Result<IWbemQualifierSet> {
        not_supported()
    }

    fn GetObjectText(&self, _: i32) -> Result<BSTR> {
        not_supported()
    }

    fn SpawnDerivedClass(&self, _: i32) -> Result<IWbemClassObject> {
        not_supported()
    }

    fn CompareTo(&self, _: WBEM_COMPARISON_FLAG, _: Ref<'_, IWbemClassObject>) -> Result<()> {
        not_supported()
    }

    fn GetPropertyOrigin(&self, _: &PCWSTR) -> Result<BSTR> {
        not_supported()
    }

    fn InheritsFrom(&self, _: &PCWSTR) -> Result<()> {
        not_supported()
    }

    fn PutMethod(
        &self,
        _: &PCWSTR,
        _: i32,
        _: Ref<'_, IWbemClassObject>,
        _: Ref<'_, IWbemClassObject>,
    ) -> Result<()> {
        not_supported()
    }

    fn DeleteMethod(&self, _: &PCWSTR) -> Result<()> {
        not_supported()
    }

    fn BeginMethodEnumeration(&self, _: i32) -> Result<()> {
        not_supported()
    }

    fn NextMethod(
        &self,
        _: i32,
        _: *mut BSTR,
        _: OutRef<'_, IWbemClassObject>,
        _: OutRef<'_, IWbemClassObject>,
    ) -> Result<()> {
        not_supported()
    }

    fn EndMethodEnumeration(&self) -> Result<()> {
        not_supported()
    }

    fn GetMethodQualifierSet(&self, _: &PCWSTR) -> Result<IWbemQualifierSet> {
        not_supported()
    }

    fn GetMethodOrigin(&self, _: &PCWSTR) -> Result<BSTR> {
        not_supported()
    }
}
