//! WMI: connections, queries and methods over the `wmi` crate.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, OnceLock};

use windows::Win32::Foundation::RPC_E_TOO_LATE;
use windows::Win32::System::Com::{
    CoIncrementMTAUsage, CoInitializeSecurity, EOAC_NONE, RPC_C_AUTHN_LEVEL_PKT_PRIVACY,
    RPC_C_IMP_LEVEL_IMPERSONATE,
};
use wmi::{AuthLevel, IWbemClassWrapper, WMIConnection, WMIError};

use super::values;
use crate::cim::{
    Argument, Associators, CimAnswer, Invoke, Namespace, Object, ObjectPath, Output, Query, Target,
    Value,
};
use crate::clock::{Clock, Deadline};
use crate::port::{CallId, PortError, PortResult, SystemCode};
use crate::workers::{Failure, Limits, Provider, Request, Workers, connection_lost};
use crate::wql;

/// Threads that make WMI calls. A format takes one for as long as it runs.
const THREADS: usize = 8;
/// Calls that hang after their callers have gone, before no more are taken.
const ABANDONED: usize = 16;
/// `WBEM_E_NOT_FOUND`
const NOT_FOUND: u32 = 0x8004_1002;

/// WMI of this machine.
///
/// Calls are made on a few threads that keep their connections; see the errors of
/// [`crate::cim::Cim`] for what becomes of a call that hangs or whose connection breaks.
pub struct Cim(Workers<Wmi>);

impl Cim {
    /// Deadlines are measured by `clock`. Nothing is connected before the first call.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        let limits = Limits {
            threads: THREADS,
            abandoned: ABANDONED,
        };
        Self(Workers::new(Wmi, clock, limits))
    }

    fn objects(&self, request: Request, deadline: Deadline) -> PortResult<Vec<Object>> {
        match self.0.call(request, deadline)? {
            CimAnswer::Query(objects) | CimAnswer::Associators(objects) => Ok(objects),
            _ => Err(wrong_answer()),
        }
    }
}

impl crate::cim::Cim for Cim {
    fn query(&self, request: &Query, deadline: Deadline) -> PortResult<Vec<Object>> {
        self.objects(Request::Query(request.clone()), deadline)
    }

    fn associators(&self, request: &Associators, deadline: Deadline) -> PortResult<Vec<Object>> {
        self.objects(Request::Associators(request.clone()), deadline)
    }

    fn invoke(&self, request: &Invoke, deadline: Deadline) -> PortResult<Output> {
        match self.0.call(Request::Invoke(request.clone()), deadline)? {
            CimAnswer::Invoke(output) => Ok(output),
            _ => Err(wrong_answer()),
        }
    }

    fn is_running(&self, id: &CallId, _: Deadline) -> PortResult<bool> {
        Ok(self.0.is_running(*id))
    }
}

fn wrong_answer() -> PortError {
    PortError::Unavailable {
        reason: "the answer is of another kind than the call".to_owned(),
    }
}

struct Wmi;

/// A connection to a namespace, and what was learnt on it.
struct Connection {
    wmi: WMIConnection,
    /// Classes whose objects have no path unless they are asked for whole.
    whole: HashSet<String>,
    /// The input parameters of methods.
    signatures: HashMap<(String, String), Option<IWbemClassWrapper>>,
}

impl Provider for Wmi {
    type Connection = Connection;

    fn connect(&self, namespace: Namespace) -> PortResult<Connection> {
        initialise()?;
        let connect = || {
            let wmi = WMIConnection::with_namespace_path(namespace.as_str())?;
            // The SMB namespace takes no less; to the others it makes no difference, since
            // nothing leaves the machine.
            wmi.set_proxy_blanket(AuthLevel::PktPrivacy)?;
            Ok(wmi)
        };
        Ok(Connection {
            wmi: connect().map_err(|error| port_error("IWbemLocator::ConnectServer", &error))?,
            whole: HashSet::new(),
            signatures: HashMap::new(),
        })
    }

    fn perform(
        &self,
        connection: &mut Connection,
        request: &Request,
    ) -> Result<CimAnswer, Failure> {
        match request {
            Request::Query(query) => connection.query(query).map(CimAnswer::Query),
            Request::Associators(request) => connection
                .objects(&wql::associators(request), &request.properties)
                .map(CimAnswer::Associators)
                .map_err(|error| failure("IWbemServices::ExecQuery", &error, true)),
            Request::Invoke(invoke) => connection.invoke(invoke).map(CimAnswer::Invoke),
        }
    }
}

impl Connection {
    fn query(&mut self, query: &Query) -> Result<Vec<Object>, Failure> {
        let failed = |error: WMIError| failure("IWbemServices::ExecQuery", &error, true);
        if !self.whole.contains(&query.class) {
            match self.objects(&wql::select(query), &query.properties) {
                Err(WMIError::ResultEmpty) => self.whole.insert(query.class.clone()),
                answer => return answer.map_err(failed),
            };
        }
        self.objects(&wql::select_whole(query), &query.properties)
            .map_err(failed)
    }

    /// The objects that a query answers. One without a path is
    /// [`WMIError::ResultEmpty`].
    fn objects(&self, wql: &str, properties: &[String]) -> Result<Vec<Object>, WMIError> {
        self.wmi
            .exec_query(wql)?
            .map(|row| object(&row?, properties))
            .collect()
    }

    fn invoke(&mut self, invoke: &Invoke) -> Result<Output, Failure> {
        let arguments = self.arguments(invoke)?;
        let path = match &invoke.target {
            Target::Instance { path, .. } => &path.0,
            Target::Class(class) => class,
        };
        let answer = self
            .wmi
            .exec_method(path, &invoke.method, arguments.as_ref())
            .map_err(|error| failure("IWbemServices::ExecMethod", &error, true))?;
        // The method has run: an answer that cannot be read is as good as lost.
        output(answer).map_err(|_| {
            Failure::Refused(PortError::OutcomeUnknown {
                api: format!("{}.{}", invoke.target.class(), invoke.method),
            })
        })
    }

    /// The object with the method's input parameters; nothing when it has none.
    fn arguments(&mut self, invoke: &Invoke) -> Result<Option<IWbemClassWrapper>, Failure> {
        let asked = |error: &WMIError| failure("IWbemClassObject::GetMethod", error, false);
        let signature = self
            .signature(invoke.target.class(), &invoke.method)
            .map_err(|error| asked(&error))?;
        let Some(signature) = signature else {
            return match invoke.arguments.keys().next() {
                None => Ok(None),
                Some(name) => Err(no_parameter(invoke, name)),
            };
        };
        let parameters = signature.spawn_instance().map_err(|error| asked(&error))?;
        for (name, argument) in &invoke.arguments {
            put(&parameters, name, argument).map_err(|error| match hresult(&error) {
                NOT_FOUND => no_parameter(invoke, name),
                _ => failure("IWbemClassObject::Put", &error, false),
            })?;
        }
        Ok(Some(parameters))
    }

    /// The class of a method's input parameters, asked for once per connection.
    fn signature(
        &mut self,
        class: &str,
        method: &str,
    ) -> Result<Option<IWbemClassWrapper>, WMIError> {
        let key = (class.to_owned(), method.to_owned());
        if let Some(known) = self.signatures.get(&key) {
            return Ok(known.clone());
        }
        let signature = self.wmi.get_object(class)?.get_method(method)?;
        self.signatures.insert(key, signature.clone());
        Ok(signature)
    }
}

fn object(row: &IWbemClassWrapper, properties: &[String]) -> Result<Object, WMIError> {
    let path = values::get(row, "__PATH")?;
    let path = path.as_ref().and_then(Value::as_str);
    let mut object = Object {
        path: ObjectPath(path.ok_or(WMIError::ResultEmpty)?.to_owned()),
        properties: Default::default(),
    };
    for name in properties {
        match values::get(row, name) {
            Ok(Some(value)) => {
                object.properties.insert(name.clone(), value);
            }
            Ok(None) => {}
            Err(error) if hresult(&error) == NOT_FOUND => {}
            Err(error) => return Err(error),
        }
    }
    Ok(object)
}

fn output(answer: Option<IWbemClassWrapper>) -> Result<Output, WMIError> {
    let mut output = Output {
        return_value: 0,
        properties: Default::default(),
    };
    // A method without a return value.
    let Some(answer) = answer else {
        return Ok(output);
    };
    for name in answer.list_properties()? {
        let Some(value) = values::get(&answer, &name)? else {
            continue;
        };
        if name.eq_ignore_ascii_case("ReturnValue") {
            output.return_value = value.as_u32().ok_or(WMIError::ResultEmpty)?;
        } else {
            output.properties.insert(name, value);
        }
    }
    Ok(output)
}

fn put(parameters: &IWbemClassWrapper, name: &str, argument: &Argument) -> Result<(), WMIError> {
    let cim_type = values::cim_type(parameters, name)?;
    parameters.put_property(name, values::variant(argument, cim_type)?)
}

fn no_parameter(invoke: &Invoke, name: &str) -> Failure {
    Failure::Refused(PortError::System {
        api: format!("{}.{}", invoke.target.class(), invoke.method),
        code: SystemCode::HResult(NOT_FOUND),
        message: format!("the method has no parameter {name}"),
    })
}

fn failure(api: &str, error: &WMIError, sent: bool) -> Failure {
    match connection_lost(hresult(error)) {
        Some(may_have_run) => Failure::Lost {
            sent: sent && may_have_run,
            error: port_error(api, error),
        },
        None => Failure::Refused(port_error(api, error)),
    }
}

fn port_error(api: &str, error: &WMIError) -> PortError {
    PortError::System {
        api: api.to_owned(),
        code: SystemCode::HResult(hresult(error)),
        message: error.to_string(),
    }
}

/// The code of an error. What the crate could not read has the code of a value of a wrong
/// type, `DISP_E_TYPEMISMATCH`.
fn hresult(error: &WMIError) -> u32 {
    match error {
        WMIError::HResultError { hres } => hres.cast_unsigned(),
        _ => 0x8002_0005,
    }
}

/// Sets COM up for this process, once: the multithreaded apartment for all threads, and
/// packet privacy for every proxy, those of enumerators included. Whoever set the security
/// before stays right.
fn initialise() -> PortResult<()> {
    static DONE: OnceLock<windows::core::Result<()>> = OnceLock::new();
    DONE.get_or_init(|| {
        // SAFETY: no preconditions. The cookie is dropped: the apartment stays for as long
        // as the process, as the threads and their proxies do.
        unsafe { CoIncrementMTAUsage() }?;
        // SAFETY: every pointer is null, which asks for the defaults.
        let secured = unsafe {
            CoInitializeSecurity(
                None,
                -1,
                None,
                None,
                RPC_C_AUTHN_LEVEL_PKT_PRIVACY,
                RPC_C_IMP_LEVEL_IMPERSONATE,
                None,
                EOAC_NONE,
                None,
            )
        };
        match secured {
            Err(error) if error.code() != RPC_E_TOO_LATE => Err(error),
            _ => Ok(()),
        }
    })
    .clone()
    .map_err(|error| PortError::System {
        api: "CoInitializeSecurity".to_owned(),
        code: SystemCode::HResult(error.code().0.cast_unsigned()),
        message: error.message(),
    })
}
