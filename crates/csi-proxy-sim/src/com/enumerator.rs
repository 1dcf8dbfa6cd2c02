//! `IEnumWbemClassObject`: the objects that a query answers.

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
use super::{
    Shared, WBEM_E_INVALID_CLASS, WBEM_E_INVALID_OPERATION, WBEM_E_NOT_SUPPORTED, error, from_port,
};
use crate::cim::{Class, find_class};
use crate::wmi::Statement;

/// `WBEM_S_FALSE`: no more objects.
const NO_MORE: HRESULT = HRESULT(1);

#[implement(IEnumWbemClassObject, IClientSecurity)]
pub(super) struct Enumerator {
    shared: Arc<Shared>,
    namespace: Namespace,
    /// It can neither be reset nor cloned.
    forward_only: bool,
    rows: Mutex<Rows>,
    blanket: Blanket,
}

enum Rows {
    /// The query has not been made.
    Asked(Statement),
    Found(Found),
}

/// What a query answered, and how many of it were taken.
#[derive(Clone)]
struct Found {
    class: &'static Class,
    has_path: bool,
    objects: Vec<Object>,
    at: usize,
}

impl Found {
    fn take(&mut self, count: usize) -> Vec<IWbemClassObject> {
        let left = self.objects.iter().skip(self.at).take(count);
        let taken: Vec<_> = left.map(|object| self.row(object)).collect();
        self.at += taken.len();
        taken
    }

    fn row(&self, object: &Object) -> IWbemClassObject {
        let path = self.has_path.then(|| object.path.0.clone());
        ClassObject::instance(self.class, path, object.properties.clone()).into()
    }
}

impl Enumerator {
    /// The rows of a query, which is made when the first one is asked for.
    pub(super) fn new(
        shared: Arc<Shared>,
        namespace: Namespace,
        statement: Statement,
        forward_only: bool,
    ) -> Self {
        Self {
            shared,
            namespace,
            forward_only,
            rows: Mutex::new(Rows::Asked(statement)),
            blanket: Blanket::default(),
        }
    }

    /// Makes the query now.
    pub(super) fn ask(&self) -> Result<()> {
        self.with_found(|_| ())
    }

    /// The next rows, at most that many.
    fn take(&self, count: usize) -> Result<Vec<IWbemClassObject>> {
        self.with_found(|found| found.take(count))
    }

    /// Does something with what the query answered, which is made when it was not yet.
    fn with_found<T>(&self, work: impl FnOnce(&mut Found) -> T) -> Result<T> {
        let mut rows = self.rows.lock().unwrap_or_else(PoisonError::into_inner);
        let mut found = match &mut *rows {
            Rows::Found(found) => return Ok(work(found)),
            Rows::Asked(statement) => self.run(statement)?,
        };
        let done = work(&mut found);
        *rows = Rows::Found(found);
        Ok(done)
    }

    fn run(&self, statement: &Statement) -> Result<Found> {
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
        Ok(Found {
            objects: answer.map_err(|error| from_port(&error))?,
            class: find_class(self.namespace, &class).ok_or_else(|| error(WBEM_E_INVALID_CLASS))?,
            has_path,
            at: 0,
        })
    }

    /// Source: MS-WMI 3.1.4.4.1 (`Reset`) and 3.1.4.4.4 (`Clone`).
    fn check_both_ways(&self) -> Result<()> {
        match self.forward_only {
            true => Err(error(WBEM_E_INVALID_OPERATION)),
            false => Ok(()),
        }
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
        self.check_both_ways()?;
        self.with_found(|found| found.at = 0)
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
        self.check_both_ways()?;
        let copy = Enumerator {
            shared: Arc::clone(&self.shared),
            namespace: self.namespace,
            forward_only: false,
            rows: Mutex::new(Rows::Found(self.with_found(|found| found.clone())?)),
            blanket: Blanket::default(),
        };
        Ok(copy.into())
    }

    fn Skip(&self, _: i32, count: u32) -> HRESULT {
        match self.take(count as usize) {
            Ok(taken) if taken.len() == count as usize => HRESULT(0),
            Ok(_) => NO_MORE,
            Err(error) => error.code(),
        }
    }
}
