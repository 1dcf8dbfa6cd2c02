//! One operation of the library on its way: what it is called in errors, how long it may
//! take, and the port to WMI with its answers read and checked.

use std::fmt::Display;
use std::time::Duration;

use crate::cim::{Associators, Invoke, Object, ObjectPath, Query, Target};
use crate::clock::Deadline;
use crate::error::{Error, ErrorKind, Result};
use crate::host::Host;
use crate::lock::Lock;
use crate::os::Os;
use crate::port::{PortError, PortResult};
use crate::row::Row;

/// `ReturnValue`: the method has done its work.
const SUCCESS: u32 = 0;

/// `ReturnValue`: the method has started a job that goes on after the answer.
const JOB_STARTED: u32 = 4096;

/// An operation, `disk partition` for example. It is cheap to copy.
#[derive(Clone, Copy)]
pub(crate) struct Operation<'a> {
    host: &'a Host,
    name: &'static str,
    deadline: Deadline,
    lock: Option<&'a Lock<'a>>,
}

/// What a method that has not failed answered.
pub(crate) struct Answer {
    /// Its other output parameters.
    pub(crate) output: Row,
    /// It answered "job started": the effect comes later, and the caller observes until it
    /// is there.
    pub(crate) job_started: bool,
}

impl<'a> Operation<'a> {
    /// An operation that may take until `deadline`. Locks that others have left behind are
    /// given back: this one may find all done and take none.
    pub(crate) fn new(host: &'a Host, name: &'static str, deadline: Deadline) -> Self {
        host.kept_locks().sweep(host, deadline);
        Self {
            host,
            name,
            deadline,
            lock: None,
        }
    }

    /// The same under a lock, which then lasts as long as its calls do.
    pub(crate) fn under(self, lock: &'a Lock<'a>) -> Self {
        Self {
            lock: Some(lock),
            ..self
        }
    }

    /// The same with another deadline.
    pub(crate) fn until(self, deadline: Deadline) -> Self {
        Self { deadline, ..self }
    }

    /// The node.
    pub(crate) fn host(&self) -> &'a Host {
        self.host
    }

    /// The port to the operating system.
    pub(crate) fn os(&self) -> &'a dyn Os {
        self.host.os()
    }

    /// Its name, as errors give it.
    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    /// How long it may take.
    pub(crate) fn deadline(&self) -> Deadline {
        self.deadline
    }

    /// The rows of a query.
    pub(crate) fn query(&self, query: &Query) -> Result<Vec<Row>> {
        self.host
            .cim()
            .query(query, self.deadline)
            .map(|objects| self.rows(&query.class, objects))
            .map_err(|error| self.port_error(&query.class, error))
    }

    /// The objects at the other end of an association.
    pub(crate) fn associators(&self, request: &Associators) -> Result<Vec<Row>> {
        self.host
            .cim()
            .associators(request, self.deadline)
            .map(|objects| self.rows(&request.result_class, objects))
            .map_err(|error| self.port_error(&request.result_class, error))
    }

    /// Invokes a method on behalf of `object`, and makes an error of every return value
    /// but success and "job started".
    pub(crate) fn invoke(&self, object: impl Display, invoke: &Invoke) -> Result<Answer> {
        let output = self
            .host
            .cim()
            .invoke(invoke, self.deadline)
            .map_err(|error| self.port_error(&object, error))?;
        let method = format!("{}.{}", invoke.target.class(), invoke.method);
        let path = match &invoke.target {
            Target::Instance { path, .. } => path.clone(),
            Target::Class(class) => ObjectPath(class.clone()),
        };
        let value = output.return_value;
        let output = Row::new(
            self.name,
            &method,
            Object {
                path,
                properties: output.properties,
            },
        );
        match value {
            SUCCESS | JOB_STARTED => Ok(Answer {
                output,
                job_started: value == JOB_STARTED,
            }),
            failure => {
                // Some classes answer it as text, some as an embedded object that is left out.
                let extended = output.optional_text("ExtendedStatus").ok().flatten();
                Err(Error::from_method(
                    self.name, object, method, failure, extended,
                ))
            }
        }
    }

    /// An error that the library itself finds.
    pub(crate) fn error(
        &self,
        kind: ErrorKind,
        object: impl Display,
        detail: impl Display,
    ) -> Error {
        Error::new(kind, self.name, object, detail)
    }

    /// The error of a port call.
    pub(crate) fn port_error(&self, object: impl Display, error: PortError) -> Error {
        if let Some(lock) = self.lock {
            lock.note(&error);
        }
        Error::from_port(self.name, object, error)
    }

    /// The answer of a port call, or nothing when what it names is missing.
    pub(crate) fn optional<T>(
        &self,
        object: impl Display,
        answer: PortResult<T>,
    ) -> Result<Option<T>> {
        match answer {
            Ok(value) => Ok(Some(value)),
            Err(error) => {
                let error = self.port_error(object, error);
                match error.kind() {
                    ErrorKind::NotFound => Ok(None),
                    _ => Err(error),
                }
            }
        }
    }

    /// Waits; when the deadline comes first, the error says what was waited for.
    pub(crate) fn pause(
        &self,
        duration: Duration,
        object: impl Display,
        waiting_for: impl Display,
    ) -> Result<()> {
        match self.os().pause(duration, self.deadline) {
            true => Ok(()),
            false => Err(self.error(
                ErrorKind::DeadlineExceeded,
                object,
                format_args!("{waiting_for} did not come before the deadline"),
            )),
        }
    }

    fn rows(&self, class: &str, objects: Vec<Object>) -> Vec<Row> {
        objects
            .into_iter()
            .map(|object| Row::new(self.name, class, object))
            .collect()
    }
}
