//! What WMI answers: rows and outputs of methods.

use std::collections::BTreeSet;

use csi_proxy::cim::{CimAnswer, CimCall, Object, Output, Value};
use csi_proxy::port::Call;

use super::{Comparison, shown};
use crate::replay::ids::{Kind, is_disk_number};

impl Comparison<'_> {
    pub(super) fn cim(&mut self, call: &Call, recorded: &CimAnswer, simulated: &CimAnswer) {
        let class = match call {
            Call::Cim(CimCall::Query(query)) => &query.class,
            Call::Cim(CimCall::Associators(request)) => &request.result_class,
            _ => "",
        };
        match (recorded, simulated) {
            (
                CimAnswer::Query(recorded) | CimAnswer::Associators(recorded),
                CimAnswer::Query(simulated) | CimAnswer::Associators(simulated),
            ) => self.rows(class, recorded, simulated),
            (CimAnswer::Invoke(recorded), CimAnswer::Invoke(simulated)) => {
                self.outputs(recorded, simulated);
            }
            _ => self.plain("answer", recorded, simulated),
        }
    }

    fn outputs(&mut self, recorded: &Output, simulated: &Output) {
        if recorded.return_value != simulated.return_value {
            self.differ("ReturnValue", recorded.return_value, simulated.return_value);
        }
        let names = recorded
            .properties
            .keys()
            .chain(simulated.properties.keys());
        for name in names.collect::<BTreeSet<_>>() {
            let of = |output: &Output| output.properties.get(name).cloned();
            self.property("", name, "", of(recorded).as_ref(), of(simulated).as_ref());
        }
    }

    pub(crate) fn rows(&mut self, class: &str, recorded: &[Object], simulated: &[Object]) {
        let mut left: Vec<&Object> = simulated.iter().collect();
        let mut unpaired = Vec::new();
        // Those that are known to be the same come first.
        for row in recorded {
            let known = self.ids.get(Kind::Object, &row.path.0);
            match left
                .iter()
                .position(|other| Some(other.path.0.as_str()) == known)
            {
                Some(at) => self.row(class, row, left.remove(at)),
                None => unpaired.push(row),
            }
        }
        for row in unpaired {
            let most_alike = (0..left.len()).max_by_key(|at| {
                // Of several the first.
                (self.likeness(class, row, left[*at]), usize::MAX - at)
            });
            match most_alike {
                Some(at) => self.row(class, row, left.remove(at)),
                None => self.differ("row", shown(row), "none"),
            }
        }
        for row in left {
            self.differ("row", "none", shown(row));
        }
    }

    /// How many properties are the same.
    fn likeness(&self, class: &str, recorded: &Object, simulated: &Object) -> usize {
        let properties = recorded.properties.iter();
        let same = properties.filter(|(name, value)| {
            let other = simulated.properties.get(*name);
            other.is_some_and(|other| self.is_same(class, name, value, other))
        });
        same.count()
    }

    fn is_same(&self, class: &str, name: &str, recorded: &Value, simulated: &Value) -> bool {
        match (recorded, simulated) {
            _ if is_disk_number(class, name) => {
                let number = recorded.as_u64().map(|number| self.ids.number(number));
                number.is_some() && number == simulated.as_u64()
            }
            (Value::Text(text), Value::Text(other)) => {
                self.ids.text(text).eq_ignore_ascii_case(other)
            }
            _ => recorded == simulated,
        }
    }

    fn row(&mut self, class: &str, recorded: &Object, simulated: &Object) {
        self.ids
            .bind(Kind::Object, &recorded.path.0, &simulated.path.0);
        let label = label(recorded);
        let names = recorded
            .properties
            .keys()
            .chain(simulated.properties.keys());
        for name in names.collect::<BTreeSet<_>>() {
            let of = |row: &Object| row.properties.get(name).cloned();
            let (recorded, simulated) = (of(recorded), of(simulated));
            self.property(class, name, &label, recorded.as_ref(), simulated.as_ref());
        }
    }

    fn property(
        &mut self,
        class: &str,
        name: &str,
        label: &str,
        recorded: Option<&Value>,
        simulated: Option<&Value>,
    ) {
        let same = match (recorded, simulated) {
            (Some(recorded), Some(simulated)) => self.unify(class, name, recorded, simulated),
            (recorded, simulated) => recorded.is_some() == simulated.is_some(),
        };
        if !same {
            let value = |value: Option<&Value>| value.map_or("absent".to_owned(), shown);
            self.differ(&format!("{label}{name}"), value(recorded), value(simulated));
        }
    }

    /// Whether two values are the same, or name the same thing.
    fn unify(&mut self, class: &str, name: &str, recorded: &Value, simulated: &Value) -> bool {
        if name == "SizeRemaining" && !self.same_space {
            return true;
        }
        if is_disk_number(class, name) {
            return self.disk_numbers(class, recorded, simulated);
        }
        match (recorded, simulated) {
            (Value::Text(recorded), Value::Text(simulated)) => match id_kind(class, name) {
                Some(kind) => self.ids.bind(kind, recorded, simulated),
                None => self.texts(recorded, simulated),
            },
            // The order of paths says nothing.
            (Value::Array(recorded), Value::Array(simulated)) if name == "AccessPaths" => {
                let paths = |values: &[Value]| {
                    let texts = values.iter().filter_map(Value::as_str);
                    texts.map(str::to_owned).collect::<Vec<_>>()
                };
                self.sets(&paths(recorded), &paths(simulated))
            }
            (Value::Array(recorded), Value::Array(simulated)) => {
                recorded.len() == simulated.len()
                    && recorded
                        .iter()
                        .zip(simulated)
                        .all(|(one, other)| self.unify(class, "", one, other))
            }
            // 64-bit integers are sent as text or not.
            (Value::Text(_), Value::Integer(_)) | (Value::Integer(_), Value::Text(_)) => {
                recorded.as_u64().is_some() && recorded.as_u64() == simulated.as_u64()
            }
            _ => recorded == simulated,
        }
    }

    /// A disk tells its own number; elsewhere the number must be that of the same disk.
    fn disk_numbers(&mut self, class: &str, recorded: &Value, simulated: &Value) -> bool {
        let (Some(recorded), Some(simulated)) = (recorded.as_u64(), simulated.as_u64()) else {
            return recorded == simulated;
        };
        let (from, to) = (recorded.to_string(), simulated.to_string());
        match self.ids.get(Kind::Number, &from) {
            Some(known) if class != "MSFT_Disk" => known == to,
            _ => self.ids.bind(Kind::Number, &from, &to),
        }
    }
}

/// The id that a property holds, where the whole text is one.
fn id_kind(class: &str, property: &str) -> Option<Kind> {
    match (class, property) {
        ("MSFT_Disk", "UniqueId") => Some(Kind::Disk),
        ("MSFT_Disk", "Path") | ("MSFT_Partition", "DiskId") => Some(Kind::Device),
        (_, "ObjectId") => Some(Kind::Object),
        (_, "SessionIdentifier" | "ConnectionIdentifier") => Some(Kind::Session),
        _ => None,
    }
}

/// What tells a row from others, for messages.
fn label(row: &Object) -> String {
    let names = [
        "Number",
        "DiskNumber",
        "PartitionNumber",
        "Path",
        "Name",
        "RemotePath",
    ];
    let value = names.iter().find_map(|name| {
        let value = row.properties.get(*name)?;
        Some(format!("{name} {}: ", shown(value)))
    });
    value.unwrap_or_default()
}
