//! `IWbemServices`: a connection to a namespace.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use csi_proxy::Secret;
use csi_proxy::cim::{Argument, Invoke, Namespace, ObjectPath, Output, Query, Target, Value};
use csi_proxy::clock::Deadline;
use windows::Win32::System::Com::IClientSecurity;
use windows::Win32::System::Variant::VARIANT;
use windows::Win32::System::Wmi::{
    IEnumWbemClassObject, IWbemCallResult, IWbemClassObject, IWbemContext, IWbemObjectSink,
    IWbemServices, IWbemServices_Impl, WBEM_FLAG_FORWARD_ONLY, WBEM_FLAG_RETURN_IMMEDIATELY,
    WBEM_GENERIC_FLAG_TYPE,
};
use windows::core::{BSTR, ComObject, HSTRING, OutRef, PCWSTR, Ref, Result, implement};

use super::blanket::{Blanket, client_security};
use super::enumerator::Enumerator;
use super::object::ClassObject;
use super::{
    Shared, WBEM_E_ACCESS_DENIED, WBEM_E_INVALID_CLASS, WBEM_E_INVALID_METHOD,
    WBEM_E_INVALID_QUERY, WBEM_E_INVALID_QUERY_TYPE, WBEM_E_NOT_FOUND, error, from_port,
    not_supported, text_of, variant,
};
use crate::cim::{Class, find_class};
use crate::wmi::{class_in, parse, type_of};

/// Parameters whose values are not written down.
const SECRETS: &[&str] = &["ChapSecret", "Credential"];

#[implement(IWbemServices, IClientSecurity)]
pub(super) struct Services {
    shared: Arc<Shared>,
    namespace: Namespace,
    blanket: Blanket,
}

impl Services {
    pub(super) fn new(shared: Arc<Shared>, namespace: Namespace) -> Self {
        Self {
            shared,
            namespace,
            blanket: Blanket::default(),
        }
    }

    /// The namespace of SMB takes no calls that could be listened to.
    fn check_privacy(&self) -> Result<()> {
        match self.namespace {
            Namespace::Smb if !self.blanket.is_private() => Err(error(WBEM_E_ACCESS_DENIED)),
            _ => Ok(()),
        }
    }

    fn find_class(&self, name: &str) -> Result<&'static Class> {
        find_class(self.namespace, name).ok_or_else(|| error(WBEM_E_INVALID_CLASS))
    }

    fn instance(&self, class: &'static Class, path: &str) -> Result<ClassObject> {
        let query = Query::new(self.namespace, class.name, class.properties);
        let objects = self.shared.cim.query(&query, Deadline::Never);
        objects
            .map_err(|error| from_port(&error))?
            .into_iter()
            .find(|object| object.path.0.eq_ignore_ascii_case(path))
            .map(|object| ClassObject::instance(class, Some(object.path.0), object.properties))
            .ok_or_else(|| error(WBEM_E_NOT_FOUND))
    }

    fn invoke(
        &self,
        path: &str,
        method: &str,
        parameters: Option<&IWbemClassObject>,
    ) -> Result<IWbemClassObject> {
        let (class, is_instance) = class_in(path);
        let class = self.find_class(class)?;
        let method = class
            .methods
            .iter()
            .find(|own| own.name.eq_ignore_ascii_case(method))
            .ok_or_else(|| error(WBEM_E_INVALID_METHOD))?;
        let target = match is_instance {
            true => Target::Instance {
                class: class.name.to_owned(),
                path: ObjectPath(path.to_owned()),
            },
            false => Target::Class(class.name.to_owned()),
        };
        let mut arguments = BTreeMap::new();
        if let Some(parameters) = parameters {
            for name in method.parameters {
                if let Some(value) = argument(class, parameters, name)? {
                    arguments.insert((*name).to_owned(), value);
                }
            }
        }
        let invoke = Invoke {
            namespace: self.namespace,
            target,
            method: method.name.to_owned(),
            arguments,
        };
        let answer = self.shared.cim.invoke(&invoke, Deadline::Never);
        let Output {
            return_value,
            mut properties,
        } = answer.map_err(|error| from_port(&error))?;
        properties.insert("ReturnValue".to_owned(), return_value.into());
        Ok(ClassObject::output(class, properties).into())
    }
}

/// What a client put into a parameter; nothing when it left it out.
fn argument(class: &Class, parameters: &IWbemClassObject, name: &str) -> Result<Option<Argument>> {
    let mut raw = VARIANT::default();
    let wide = HSTRING::from(name);
    // SAFETY: the name ends in NUL and lives longer than the call; the value is written to a
    // local that holds nothing.
    unsafe { parameters.Get(PCWSTR(wide.as_ptr()), 0, &raw mut raw, None, None) }?;
    Ok(
        match variant::from_variant(type_of(class.name, name), &raw)? {
            Value::Boolean(value) => Some(value.into()),
            Value::Integer(number) => u64::try_from(number).ok().map(Argument::from),
            Value::Text(text) if SECRETS.contains(&name) => Some(Secret::new(text).into()),
            Value::Text(text) => Some(text.into()),
            Value::Null | Value::Array(_) => None,
        },
    )
}

client_security!(Services_Impl);

impl IWbemServices_Impl for Services_Impl {
    fn GetObject(
        &self,
        path: &BSTR,
        _: WBEM_GENERIC_FLAG_TYPE,
        _: Ref<'_, IWbemContext>,
        object: OutRef<'_, IWbemClassObject>,
        _: OutRef<'_, IWbemCallResult>,
    ) -> Result<()> {
        self.shared.counts.objects.fetch_add(1, Ordering::Relaxed);
        self.check_privacy()?;
        let path = text_of(path);
        let (class, is_instance) = class_in(&path);
        let class = self.find_class(class)?;
        let found = match is_instance {
            true => self.instance(class, &path)?,
            false => ClassObject::class(class),
        };
        object.write(Some(found.into()))
    }

    fn ExecQuery(
        &self,
        language: &BSTR,
        query: &BSTR,
        flags: WBEM_GENERIC_FLAG_TYPE,
        _: Ref<'_, IWbemContext>,
    ) -> Result<IEnumWbemClassObject> {
        self.shared.counts.queries.fetch_add(1, Ordering::Relaxed);
        self.check_privacy()?;
        if !text_of(language).eq_ignore_ascii_case("WQL") {
            return Err(error(WBEM_E_INVALID_QUERY_TYPE));
        }
        let statement =
            parse(self.namespace, &text_of(query)).ok_or_else(|| error(WBEM_E_INVALID_QUERY))?;
        let shared = Arc::clone(&self.shared);
        let forward_only = flags.0 & WBEM_FLAG_FORWARD_ONLY.0 != 0;
        let enumerator = Enumerator::new(shared, self.namespace, statement, forward_only);
        let enumerator = ComObject::new(enumerator);
        if flags.0 & WBEM_FLAG_RETURN_IMMEDIATELY.0 == 0 {
            enumerator.ask()?;
        }
        Ok(enumerator.into_interface())
    }

    fn CreateInstanceEnum(
        &self,
        class: &BSTR,
        flags: WBEM_GENERIC_FLAG_TYPE,
        context: Ref<'_, IWbemContext>,
    ) -> Result<IEnumWbemClassObject> {
        let query = BSTR::from(format!("SELECT * FROM {}", text_of(class)));
        self.ExecQuery(&BSTR::from("WQL"), &query, flags, context)
    }

    fn ExecMethod(
        &self,
        path: &BSTR,
        method: &BSTR,
        _: WBEM_GENERIC_FLAG_TYPE,
        _: Ref<'_, IWbemContext>,
        parameters: Ref<'_, IWbemClassObject>,
        output: OutRef<'_, IWbemClassObject>,
        _: OutRef<'_, IWbemCallResult>,
    ) -> Result<()> {
        self.shared.counts.methods.fetch_add(1, Ordering::Relaxed);
        self.check_privacy()?;
        let answer = self.invoke(&text_of(path), &text_of(method), parameters.as_ref())?;
        match output.is_null() {
            true => Ok(()),
            false => output.write(Some(answer)),
        }
    }

    fn OpenNamespace(
        &self,
        _: &BSTR,
        _: WBEM_GENERIC_FLAG_TYPE,
        _: Ref<'_, IWbemContext>,
        _: OutRef<'_, IWbemServices>,
        _: OutRef<'_, IWbemCallResult>,
    ) -> Result<()> {
        not_supported()
    }

    fn CancelAsyncCall(&self, _: Ref<'_, IWbemObjectSink>) -> Result<()> {
        not_supported()
    }

    fn QueryObjectSink(&self, _: WBEM_GENERIC_FLAG_TYPE) -> Result<IWbemObjectSink> {
        not_supported()
    }

    fn GetObjectAsync(
        &self,
        _: &BSTR,
        _: WBEM_GENERIC_FLAG_TYPE,
        _: Ref<'_, IWbemContext>,
        _: Ref<'_, IWbemObjectSink>,
    ) -> Result<()> {
        not_supported()
    }

    fn PutClass(
        &self,
        _: Ref<'_, IWbemClassObject>,
        _: WBEM_GENERIC_FLAG_TYPE,
        _: Ref<'_, IWbemContext>,
        _: OutRef<'_, IWbemCallResult>,
    ) -> Result<()> {
        not_supported()
    }

    fn PutClassAsync(
        &self,
        _: Ref<'_, IWbemClassObject>,
        _: WBEM_GENERIC_FLAG_TYPE,
        _: Ref<'_, IWbemContext>,
        _: Ref<'_, IWbemObjectSink>,
    ) -> Result<()> {
        not_supported()
    }

    fn DeleteClass(
        &self,
        _: &BSTR,
        _: WBEM_GENERIC_FLAG_TYPE,
        _: Ref<'_, IWbemContext>,
        _: OutRef<'_, IWbemCallResult>,
    ) -> Result<()> {
        not_supported()
    }

    fn DeleteClassAsync(
        &self,
        _: &BSTR,
        _: WBEM_GENERIC_FLAG_TYPE,
        _: Ref<'_, IWbemContext>,
        _: Ref<'_, IWbemObjectSink>,
    ) -> Result<()> {
        not_supported()
    }

    fn CreateClassEnum(
        &self,
        _: &BSTR,
        _: WBEM_GENERIC_FLAG_TYPE,
        _: Ref<'_, IWbemContext>,
    ) -> Result<IEnumWbemClassObject> {
        not_supported()
    }

    fn CreateClassEnumAsync(
        &self,
        _: &BSTR,
        _: WBEM_GENERIC_FLAG_TYPE,
        _: Ref<'_, IWbemContext>,
        _: Ref<'_, IWbemObjectSink>,
    ) -> Result<()> {
        not_supported()
    }

    fn PutInstance(
        &self,
        _: Ref<'_, IWbemClassObject>,
        _: WBEM_GENERIC_FLAG_TYPE,
        _: Ref<'_, IWbemContext>,
        _: OutRef<'_, IWbemCallResult>,
    ) -> Result<()> {
        not_supported()
    }

    fn PutInstanceAsync(
        &self,
        _: Ref<'_, IWbemClassObject>,
        _: WBEM_GENERIC_FLAG_TYPE,
        _: Ref<'_, IWbemContext>,
        _: Ref<'_, IWbemObjectSink>,
    ) -> Result<()> {
        not_supported()
    }

    fn DeleteInstance(
        &self,
        _: &BSTR,
        _: WBEM_GENERIC_FLAG_TYPE,
        _: Ref<'_, IWbemContext>,
        _: OutRef<'_, IWbemCallResult>,
    ) -> Result<()> {
        not_supported()
    }

    fn DeleteInstanceAsync(
        &self,
        _: &BSTR,
        _: WBEM_GENERIC_FLAG_TYPE,
        _: Ref<'_, IWbemContext>,
        _: Ref<'_, IWbemObjectSink>,
    ) -> Result<()> {
        not_supported()
    }

    fn CreateInstanceEnumAsync(
        &self,
        _: &BSTR,
        _: WBEM_GENERIC_FLAG_TYPE,
        _: Ref<'_, IWbemContext>,
        _: Ref<'_, IWbemObjectSink>,
    ) -> Result<()> {
        not_supported()
    }

    fn ExecQueryAsync(
        &self,
        _: &BSTR,
        _: &BSTR,
        _: WBEM_GENERIC_FLAG_TYPE,
        _: Ref<'_, IWbemContext>,
        _: Ref<'_, IWbemObjectSink>,
    ) -> Result<()> {
        not_supported()
    }

    fn ExecNotificationQuery(
        &self,
        _: &BSTR,
        _: &BSTR,
        _: WBEM_GENERIC_FLAG_TYPE,
        _: Ref<'_, IWbemContext>,
    ) -> Result<IEnumWbemClassObject> {
        not_supported()
    }

    fn ExecNotificationQueryAsync(
        &self,
        _: &BSTR,
        _: &BSTR,
        _: WBEM_GENERIC_FLAG_TYPE,
        _: Ref<'_, IWbemContext>,
        _: Ref<'_, IWbemObjectSink>,
    ) -> Result<()> {
        not_supported()
    }

    fn ExecMethodAsync(
        &self,
        _: &BSTR,
        _: &BSTR,
        _: WBEM_GENERIC_FLAG_TYPE,
        _: Ref<'_, IWbemContext>,
        _: Ref<'_, IWbemClassObject>,
        _: Ref<'_, IWbemObjectSink>,
    ) -> Result<()> {
        not_supported()
    }
}
