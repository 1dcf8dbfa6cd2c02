//! `IEnumWbemClassObject`: the objects that a query answers.

use std::collections::VecDeque;
use std::mem::MaybeUninit;
use std::sync::{Arc, Mutex, PoisonError};

use csi_proxy::cim::{Namespace, Object};
use csi_proxy::clock::Deadline;
use windows::Win32::Foundation::E_POINTER;
use windows::Win32::System::Com::IClientSecurity;
use windows::Win32::System::Wmi::{
    IEnumWbemClassObject, IEnumWbemClassObject_Impl, IWbemClassObject, IWbemObjectSink,
};
use windows::core::{HRESULT, Ref, Result, implement};

use super::blanket::{Blanket, client_security};
use super::object::ClassObject;
use super::{Shared, WBEM_E_INVALID_CLASS, WBEM_E_NOT_SUPPORTED, error, from_port, not_supported};
use crate::cim::find_class;
use crate::wmi::Statement;

/// `WBEM_S_FALSE`: no more objects.
const NO_MORE: HRESULT = HRESULT(1);

#[implement(IEnumWbemClassObject, IClientSecurity)]
pub(super) struct Enumerator {
    shared: Arc<Shared>,
    namespace: Namespace,
    rows: Mutex<Rows>,
    blanket: Blanket,
}

enum Rows {
    /// The query has not been made.
    Asked(Statement),
    Found(VecDeque<IWbemClassObject>),
}

impl Enumerator {
    /// The rows of a query, which is made when the first one is asked for.
    pub(super) fn new(shared: Arc<Shared>, namespace: Namespace, statement: Statement) -> Self {
        Self {
            shared,
            namespace,
            rows: Mutex::new(Rows::Asked(statement)),
            blanket: Blanket::default(),
        }
    }

    /// Makes the query now.
    pub(super) fn ask(&self) -> Result<()> {
        self.take(0).map(drop)
    }

    /// The next rows, at most that many.
    fn take(&self, count: usize) -> Result<Vec<IWbemClassObject>> {
        let mut rows = self.rows.lock().unwrap_or_else(PoisonError::into_inner);
        if let Rows::Asked(statement) = &*rows {
            *rows = Rows::Found(self.run(statement)?);
        }
        Ok(match &mut *rows {
            Rows::Found(found) => {
                let count = count.min(found.len());
                found.drain(..count).collect()
            }
            Rows::Asked(_) => Vec::new(),
        })
    }

    fn run(&self, statement: &Statement) -> Result<VecDeque<IWbemClassObject>> {
        let (answer, class, has_path) = match statement {
            Statement::Select { query, all, path } => {
                let mut query = query.clone();
                if *all {
                    query.properties = self.all_properties(&query.class)?;
                }
                (
                    self.shared.cim.query(&query, Deadline::Never),
                    query.class,
                    *path,
                )
            }
            Statement::Associators(request) => {
                let mut request = request.clone();
                request.properties = self.all_properties(&request.result_class)?;
                let answer = self.shared.cim.associators(&request, Deadline::Never);
                (answer, request.result_class, true)
            }
        };
        let objects = answer.map_err(|error| from_port(&error))?;
        objects
            .into_iter()
            .map(|object| self.row(&class, object, has_path))
            .collect()
    }

    fn row(&self, class: &str, object: Object, has_path: bool) -> Result<IWbemClassObject> {
        let class = find_class(self.namespace, class).ok_or_else(|| error(WBEM_E_INVALID_CLASS))?;
        let path = has_path.then_some(object.path.0);
        Ok(ClassObject::instance(class, path, object.properties).into())
    }

    fn all_properties(&self, class: &str) -> Result<Vec<String>> {
        let class = find_class(self.namespace, class).ok_or_else(|| error(WBEM_E_INVALID_CLASS))?;
        Ok(class
            .properties
            .iter()
            .map(|name| (*name).to_owned())
            .collect())
    }
}

client_security!(Enumerator_Impl);

impl IEnumWbemClassObject_Impl for Enumerator_Impl {
    fn Reset(&self) -> Result<()> {
        not_supported()
    }

    fn Next(
        &self,
        _: i32,
        count: u32,
        objects: *mut Option<IWbemClassObject>,
        returned: *mut u32,
    ) -> HRESULT {
        if objects.is_null() || returned.is_null() {
            return E_POINTER;
        }
        let taken = match self.take(count as usize) {
            Ok(taken) => taken,
            Err(error) => return error.code(),
        };
        let number = u32::try_from(taken.len()).unwrap_or(count);
        // SAFETY: the caller's array, not null, with room for `count` objects; what it holds
        // before may be anything.
        let places = unsafe { std::slice::from_raw_parts_mut(objects.cast(), count as usize) };
        for (place, object) in places.iter_mut().zip(taken) {
            MaybeUninit::write(place, Some(object));
        }
        // SAFETY: the caller's number, not null.
        unsafe { returned.write(number) };
        match number == count {
            true => HRESULT(0),
            false => NO_MORE,
        }
    }

    fn NextAsync(&self, _: u32, _: Ref<'_, IWbemObjectSink>) -> HRESULT {
        error(WBEM_E_NOT_SUPPORTED).code()
    }

    fn Clone(&self) -> Result<IEnumWbemClassObject> {
        not_supported()
    }

    fn Skip(&self, _: i32, count: u32) -> HRESULT {
        match self.take(count as usize) {
            Ok(taken) if taken.len() == count as usize => HRESULT(0),
            Ok(_) => NO_MORE,
            Err(error) => error.code(),
        }
    }
}
