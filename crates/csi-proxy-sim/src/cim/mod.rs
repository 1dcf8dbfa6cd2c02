//! The port to WMI: which classes there are, and how queries and calls reach them.
//!
//! A class is a [`Class`]: it yields [`Row`]s, and answers method calls. A module of the
//! model lists its classes and associations in constants; [`CLASSES`] and [`ASSOCIATIONS`]
//! collect them.

mod class;
mod invoke;
mod path;
mod query;

use std::collections::BTreeSet;

#[cfg(windows)]
use csi_proxy::cim::Namespace;
use csi_proxy::cim::{Associators, Cim, Invoke, Object, Output, Query};
use csi_proxy::clock::Deadline;
use csi_proxy::port::{CallId, PortResult};

use crate::ports::Ports;

pub(crate) use class::{
    Association, Class, Hint, Method, MethodCall, Reply, Row, done, properties, wide,
};

/// All classes, by the module they belong to.
pub(crate) const CLASSES: &[&[Class]] = &[
    crate::storage::CLASSES,
    crate::smb::CLASSES,
    crate::iscsi::CLASSES,
    crate::services::CLASSES,
];

/// All associations, by the module they belong to.
const ASSOCIATIONS: &[&[Association]] = &[
    crate::storage::ASSOCIATIONS,
    crate::iscsi::ASSOCIATIONS,
    crate::services::ASSOCIATIONS,
];

/// The class of that name, without case.
#[cfg(windows)]
pub(crate) fn find_class(namespace: Namespace, name: &str) -> Option<&'static Class> {
    query::class(namespace, name, "").ok()
}

/// The operations of WMI that the node knows, as [`csi_proxy::port::Call::operation`] names
/// them.
pub(crate) fn operations() -> impl Iterator<Item = String> {
    let classes = CLASSES.iter().copied().flatten();
    let methods = classes.clone().flat_map(|class| {
        let methods = class.methods.iter();
        methods.map(|method| format!("{}.{}", class.name, method.name))
    });
    let queries = classes.map(|class| format!("query {}", class.name));
    let associations = ASSOCIATIONS.iter().copied().flatten();
    let ends: BTreeSet<&str> = associations.flat_map(|one| one.ends).collect();
    let associators = ends.into_iter().map(|end| format!("associators {end}"));
    let is_running = ["is_running".to_owned()];
    methods.chain(queries).chain(associators).chain(is_running)
}

impl Cim for Ports<'_> {
    fn query(&self, request: &Query, _: Deadline) -> PortResult<Vec<Object>> {
        let mut model = self.model();
        crate::storage::polled(&mut model.state, &request.class);
        crate::services::polled(&mut model.state, &request.class);
        query::query(&model.state, request)
    }

    fn associators(&self, request: &Associators, _: Deadline) -> PortResult<Vec<Object>> {
        query::associators(&self.model().state, request)
    }

    fn invoke(&self, request: &Invoke, deadline: Deadline) -> PortResult<Output> {
        invoke::invoke(self, request, deadline)
    }

    fn is_running(&self, call: &CallId, _: Deadline) -> PortResult<bool> {
        let model = self.model();
        Ok(model.runtime.is_delayed(*call) || model.state.storage.runs(*call))
    }
}
