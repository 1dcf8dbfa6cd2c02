//! What the server does for each request.

use std::time::Duration;

use csi_proxy::HostPath;
use csi_proxy::clock::{Clock, Deadline};
use csi_proxy::os::{At, Files, Reach, Stat};
use csi_proxy::port::{Answer, Call, CallId, PortError, PortResult, SystemCode, Transport};
use serde::Serialize;
use serde_json::Value;

use super::{Kind, Outcome, PortCall, Request};
use crate::change::{NodeChange, attach};
use crate::node::SimNode;
use crate::ports::Ports;
use crate::process::{Process, ProcessId};
use crate::win32::{ERROR_FILE_NOT_FOUND, ERROR_PATH_NOT_FOUND};

/// Does what is asked for; port calls are those of `process`.
pub(super) fn answer(node: &SimNode, process: &Process, request: Request) -> Outcome {
    match request {
        Request::Cim(call) => carry(
            process,
            &Call::Cim(call.call),
            call.deadline,
            call.timeout_ms,
        ),
        Request::Os(PortCall {
            call: Call::Cim(_), ..
        }) => Outcome::Error("a call to WMI goes under cim, not os".to_owned()),
        Request::Os(call) => carry(process, &call.call, call.deadline, call.timeout_ms),
        other => match plain(node, other) {
            Ok(value) => Outcome::Ok(value),
            Err(reason) => Outcome::Error(reason),
        },
    }
}

fn carry(
    process: &Process,
    call: &Call,
    deadline: Option<csi_proxy::clock::Moment>,
    timeout_ms: Option<u64>,
) -> Outcome {
    let clock = process.clock();
    let deadline = match (deadline, timeout_ms) {
        (Some(moment), _) => Deadline::At(moment),
        (None, Some(timeout)) => clock.deadline_in(Duration::from_millis(timeout)),
        (None, None) => Deadline::Never,
    };
    let answer: PortResult<Answer> = process.carry(call, deadline);
    match answer.map(to_value) {
        Ok(Ok(value)) => Outcome::Ok(value),
        Ok(Err(reason)) => Outcome::Error(reason),
        Err(error) => Outcome::PortError(error),
    }
}

fn to_value(value: impl Serialize) -> Result<Value, String> {
    serde_json::to_value(value).map_err(|error| error.to_string())
}

fn plain(node: &SimNode, request: Request) -> Result<Value, String> {
    match request {
        Request::MakeDirectory { path } => {
            change(node, NodeChange::MakeDirectory { path: host(&path)? })
        }
        Request::MakeFile { path, contents } => {
            let path = host(&path)?;
            change(node, NodeChange::MakeFile { path, contents })
        }
        Request::Remove { path } => match stat(node, &path)? {
            Err(error) if is_missing(&error) => Ok(Value::Null),
            _ => change(node, NodeChange::Remove { path: host(&path)? }),
        },
        Request::Check { path } => to_value(check(node, &path)?),
        Request::AttachDisk(disk) => {
            let attached = attach(&mut node.model().state, &disk);
            to_value(attached.map_err(|error| error.to_string())?)
        }
        Request::Fault(fault) => {
            fault.check().map_err(|error| error.to_string())?;
            node.inject(fault);
            Ok(Value::Null)
        }
        Request::DetachDisk { number } => change(node, NodeChange::DetachDisk { number }),
        Request::Change(wanted) => change(node, wanted),
        Request::Show => Ok(Value::String(node.show())),
        Request::State => to_value(node.snapshot()),
        Request::Counts => to_value(node.counts()),
        Request::Now => to_value(node.sim_clock().now()),
        other => {
            effect(node, other);
            Ok(Value::Null)
        }
    }
}

/// Requests that always work and answer nothing.
fn effect(node: &SimNode, request: Request) {
    match request {
        Request::ResetCounts => node.reset_counts(),
        Request::Latency(latency) => node.set_latency(latency),
        Request::Reboot => node.reboot(),
        Request::SleepUntil(moment) => node.sim_clock().sleep_until(moment),
        _ => {}
    }
}

fn change(node: &SimNode, wanted: NodeChange) -> Result<Value, String> {
    let changed = wanted.apply(&mut node.model().state);
    changed
        .map_err(|error| error.to_string())
        .map(|()| Value::Null)
}

/// The path in the node's own form.
fn host(path: &str) -> Result<String, String> {
    let path = HostPath::from_kubelet(path).map_err(|error| error.to_string())?;
    Ok(path.as_str().to_owned())
}

/// What stands at a path, below counters and faults.
fn stat(node: &SimNode, path: &str) -> Result<PortResult<Stat>, String> {
    let path = HostPath::from_kubelet(path).map_err(|error| error.to_string())?;
    Ok(ports(node).stat(&At::path(&path), Deadline::Never))
}

fn ports(node: &SimNode) -> Ports<'_> {
    Ports {
        node,
        process: ProcessId(0),
        call: CallId(0),
    }
}

fn check(node: &SimNode, path: &str) -> Result<Kind, String> {
    let stat = match stat(node, path)? {
        Ok(stat) => stat,
        Err(error) if is_missing(&error) => return Ok(Kind::NotFound),
        Err(_) => return Ok(Kind::Other),
    };
    let target = host(path)?;
    let reached = ports(node).reach(&Reach { target }, Deadline::Never);
    Ok(match (stat.directory, reached) {
        (_, Err(_)) => Kind::Other,
        (true, Ok(())) => Kind::Directory,
        (false, Ok(())) => Kind::File,
    })
}

fn is_missing(error: &PortError) -> bool {
    matches!(
        error,
        PortError::System {
            code: SystemCode::Win32(ERROR_FILE_NOT_FOUND | ERROR_PATH_NOT_FOUND),
            ..
        }
    )
}
