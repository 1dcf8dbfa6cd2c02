//! Every method of every version, in success and failure, as `tests/interop/cases.json` lists
//! them, with the node looked at after each.

use std::collections::{BTreeMap, BTreeSet};

use csi_proxy::clock::Deadline;
use csi_proxy::port::{Call, PortError, SystemCode, Transport as _};
use csi_proxy_api::{API, Api};
use csi_proxy_sim::{Fault, Machine, SimNode};
use serde::Deserialize;
use serde_json::Value;
use tonic::Status;

use crate::harness::{Caller, Served, settings};

/// One call, and what comes of it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    group: String,
    versions: Vec<String>,
    method: String,
    request: Value,
    /// What goes wrong in Windows.
    fault: Option<Value>,
    /// The gRPC code as Go writes it.
    code: String,
    /// The response; `"?"` stands for a value that is not empty.
    answer: Option<Value>,
    /// What the message of the error contains.
    says: Option<String>,
    /// What is on the node then. Without it the node is as before.
    then: Option<Vec<Look>>,
}

/// A call of a port, and what it answers.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Look {
    call: Call,
    /// Part of the answer.
    gives: Option<Value>,
    /// The error's code.
    win32: Option<u32>,
}

fn cases() -> Vec<Case> {
    serde_json::from_str(include_str!("../../../../tests/interop/cases.json")).expect("cases")
}

pub(crate) fn node() -> SimNode {
    let machine = include_str!("../../../../tests/interop/machine.toml");
    Machine::parse(machine)
        .expect("a machine")
        .build()
        .expect("a node")
}

#[tokio::test(flavor = "multi_thread")]
async fn every_method_of_every_version_succeeds_and_fails_as_it_should() {
    let cases = cases();
    let (mut methods, mut calls) = (0, 0);
    let mut wrong = Vec::new();
    for api in &API {
        let own = cases.iter().filter(|case| case.is_of(api));
        let mut seen: BTreeMap<&str, BTreeSet<bool>> = BTreeMap::new();
        let served = Served::start(node(), settings());
        let mut caller = served.connect(api).await;
        for case in own {
            if let Err(what) = case.run(api, &mut caller, &served.node).await {
                let (method, request) = (&case.method, &case.request);
                wrong.push(format!("{}/{method} {request}: {what}", api.service));
            }
            seen.entry(&case.method)
                .or_default()
                .insert(case.code == "OK");
            calls += 1;
        }
        for method in api.methods {
            let both = seen.get(method.name).is_some_and(|codes| codes.len() == 2);
            assert!(both, "{}/{}: success and failure", api.service, method.name);
        }
        methods += api.methods.len();
        served.stop().await.expect("a clean end");
    }
    println!("{} versions, {methods} methods, {calls} calls", API.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!((API.len(), methods), (23, 139));
}

impl Case {
    fn is_of(&self, api: &Api) -> bool {
        self.group == api.group.name() && self.versions.iter().any(|one| one == api.version)
    }

    async fn run(&self, api: &Api, caller: &mut Caller, node: &SimNode) -> Result<(), String> {
        let found = api.methods.iter().find(|method| method.name == self.method);
        let method = found.ok_or("there is no such method")?;
        if let Some(fault) = &self.fault {
            let fault: Fault = serde_json::from_value(fault.clone()).expect("a fault");
            node.inject(fault);
        }
        let before = node.snapshot();
        let answered = caller.call(method, self.request.clone()).await;
        if node.faults_left() > 0 {
            node.clear_faults();
            return Err("the fault did not happen".to_owned());
        }
        self.check(answered)?;
        match &self.then {
            None if node.snapshot() == before => Ok(()),
            None => Err("something was changed".to_owned()),
            Some(_) if method.read_only => Err("it only answers a question".to_owned()),
            Some(looks) => looks.iter().try_for_each(|look| look.check(node)),
        }
    }

    fn check(&self, answered: Result<Value, Status>) -> Result<(), String> {
        match answered {
            Ok(answer) => {
                let expected = self.answer.clone().unwrap_or_default();
                let nothing = expected.as_object().is_some_and(|fields| fields.is_empty());
                let right = if nothing {
                    answer == expected
                } else {
                    includes(&answer, &expected)
                };
                match self.code == "OK" && right {
                    true => Ok(()),
                    false => Err(format!("{answer}, not {} {expected}", self.code)),
                }
            }
            Err(status) => {
                let says = self.says.as_deref().unwrap_or("\0");
                let code = format!("{:?}", status.code());
                match code == self.code && status.message().contains(says) {
                    true => Ok(()),
                    false => Err(format!("{code} {}", status.message())),
                }
            }
        }
    }
}

impl Look {
    fn check(&self, node: &SimNode) -> Result<(), String> {
        let answer = node.process().carry(&self.call, Deadline::Never);
        let right = match (&answer, &self.gives, self.win32) {
            (Ok(answer), Some(expected), None) => {
                includes(&serde_json::to_value(answer).expect("JSON"), expected)
            }
            (Err(PortError::System { code, .. }), None, Some(expected)) => {
                *code == SystemCode::Win32(expected)
            }
            _ => false,
        };
        match right {
            true => Ok(()),
            false => Err(format!("then {answer:?}, not {self:?}")),
        }
    }
}

/// Whether all of `expected` is in `value`. A list has the same length.
fn includes(value: &Value, expected: &Value) -> bool {
    match (value, expected) {
        (_, Value::Null) => true,
        (value, Value::String(any)) if any == "?" => value.as_str() != Some(""),
        (Value::Object(own), Value::Object(expected)) => expected
            .iter()
            .all(|(key, expected)| own.get(key).is_some_and(|own| includes(own, expected))),
        (Value::Array(own), Value::Array(expected)) => {
            own.len() == expected.len()
                && own
                    .iter()
                    .zip(expected)
                    .all(|(own, expected)| includes(own, expected))
        }
        (value, expected) => value == expected,
    }
}
