//! What WMI puts around the simulated classes: types and WQL. Pure code; [`crate::com`] is
//! the COM half, on Windows.

mod path;
mod types;
mod wql;

pub(crate) use path::{class_in, namespace_in};
pub(crate) use types::{Base, CimType, type_of};
pub(crate) use wql::{Statement, parse};
