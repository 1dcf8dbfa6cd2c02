//! Method calls: from the request to the method, and the wait for the ones that take time.

use csi_proxy::cim::{Invoke, Output, Target};
use csi_proxy::clock::{Clock, Deadline, Moment};
use csi_proxy::port::{PortError, PortResult};

use super::query::{class, exists};
use super::{Class, Method, MethodCall, Reply, path};
use crate::ports::Ports;
use crate::win32::{
    WBEM_E_INVALID_METHOD, WBEM_E_INVALID_METHOD_PARAMETERS, WBEM_E_INVALID_OBJECT_PATH,
    WBEM_E_NOT_FOUND, hresult,
};

pub(super) fn invoke(
    ports: &Ports<'_>,
    request: &Invoke,
    deadline: Deadline,
) -> PortResult<Output> {
    match start(ports, request)? {
        Reply::Done(output) => Ok(output),
        Reply::Until(end) => wait(ports, end, deadline),
    }
}

/// Finds the method and runs it, with the model locked.
fn start(ports: &Ports<'_>, request: &Invoke) -> PortResult<Reply> {
    let api = format!("{}.{}", request.target.class(), request.method);
    let class = class(request.namespace, request.target.class(), &api)?;
    let method = method(class, request, &api)?;
    let mut model = ports.model();
    let key = match &request.target {
        Target::Class(_) => String::new(),
        Target::Instance { path, .. } => {
            let (named, key) = path::read(request.namespace, path)
                .ok_or_else(|| hresult(&api, WBEM_E_INVALID_OBJECT_PATH))?;
            if !named.eq_ignore_ascii_case(class.name) {
                return Err(hresult(&api, WBEM_E_INVALID_OBJECT_PATH));
            }
            if !exists(&model.state, class, &key) {
                return Err(hresult(&api, WBEM_E_NOT_FOUND));
            }
            key
        }
    };
    let latency = model.runtime.latency;
    (method.run)(&mut MethodCall {
        state: &mut model.state,
        now: ports.now(),
        call: ports.call,
        latency,
        key: &key,
        api,
        arguments: &request.arguments,
    })
}

fn method(class: &Class, request: &Invoke, api: &str) -> PortResult<&'static Method> {
    let on_class = matches!(request.target, Target::Class(_));
    let method = class
        .methods
        .iter()
        .find(|method| method.name == request.method && method.is_static == on_class)
        .ok_or_else(|| hresult(api, WBEM_E_INVALID_METHOD))?;
    let known = |name: &String| method.parameters.contains(&name.as_str());
    match request.arguments.keys().all(known) {
        true => Ok(method),
        false => Err(hresult(api, WBEM_E_INVALID_METHOD_PARAMETERS)),
    }
}

/// Waits for a method that runs, without holding the model. At the deadline the caller goes
/// and the method stays.
fn wait(ports: &Ports<'_>, end: Moment, deadline: Deadline) -> PortResult<Output> {
    let given_up = matches!(deadline, Deadline::At(moment) if moment < end);
    let until = match deadline {
        Deadline::At(moment) => end.min(moment),
        Deadline::Never => end,
    };
    ports.sleep_until(until);
    let mut model = ports.model();
    model.runtime.check_alive(ports.process)?;
    match model.state.storage.finished(ports.call) {
        Some(output) => Ok(output),
        None if given_up => Err(PortError::DeadlineExceeded {
            running: Some(ports.call),
        }),
        None => Err(PortError::Unavailable {
            reason: "the call was cut off".to_owned(),
        }),
    }
}
