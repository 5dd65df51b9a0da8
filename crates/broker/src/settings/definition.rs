//! A setting's definition: name, type, default, range; and a set of values that differ from the defaults.

use crate::cluster::Refusal;
use kafka_share_messages::ErrorCode;
use std::collections::BTreeMap;

/// Type and range of a setting.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Kind {
    Bool,
    Int(i64, i64),
    Long(i64, i64),
    /// A fraction from 0 to 1.
    Ratio,
    /// One of these, or anything where the list is empty.
    Text(&'static [&'static str]),
    /// A comma-separated list of these, or of anything where the list is empty.
    List(&'static [&'static str]),
}

impl Kind {
    /// ConfigType of DescribeConfigs.
    pub(crate) fn wire_type(self) -> i8 {
        match self {
            Kind::Bool => 1,
            Kind::Text(_) => 2,
            Kind::Int(..) => 3,
            Kind::Long(..) => 5,
            Kind::Ratio => 6,
            Kind::List(_) => 7,
        }
    }
}

/// A setting.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Definition {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) default: &'static str,
    /// The broker setting that gives the default; empty where there is none.
    pub(crate) synonym: &'static str,
}

impl Definition {
    /// Checks a value.
    pub(crate) fn check(&self, value: &str) -> Result<(), Refusal> {
        let bad = |why: String| {
            let text = format!("Invalid value {value} for configuration {}: {why}", self.name);
            Err(Refusal::new(ErrorCode::INVALID_CONFIG, text))
        };
        let range = |min: i64, max: i64, what: &str| match value.trim().parse::<i64>() {
            Ok(n) if (min..=max).contains(&n) => Ok(()),
            Ok(n) if n < min => bad(format!("Value must be at least {min}")),
            Ok(_) => bad(format!("Value must be no more than {max}")),
            Err(_) => bad(format!("Not a number of type {what}")),
        };
        match self.kind {
            Kind::Bool if !matches!(value.to_ascii_lowercase().trim(), "true" | "false") => {
                bad("Expected value to be either true or false".into())
            }
            Kind::Int(min, max) => range(min, max, "INT"),
            Kind::Long(min, max) => range(min, max, "LONG"),
            Kind::Ratio if !value.trim().parse::<f64>().is_ok_and(|x| (0.0..=1.0).contains(&x)) => {
                bad("Not a number from 0 to 1".into())
            }
            Kind::Text(allowed) if !allowed.is_empty() && !allowed.contains(&value) => {
                bad(format!("String must be one of: {}", allowed.join(", ")))
            }
            Kind::List(allowed) if !allowed.is_empty() => match items(value).find(|item| !allowed.contains(item)) {
                Some(_) => bad(format!("String must be one of: {}", allowed.join(", "))),
                None => Ok(()),
            },
            _ => Ok(()),
        }
    }
}

/// Items of a list value.
pub(crate) fn items(value: &str) -> impl Iterator<Item = &str> {
    value.split(',').map(str::trim).filter(|item| !item.is_empty())
}

/// Values that differ from the defaults.
pub(crate) type Overrides = BTreeMap<&'static str, String>;

/// A definition by name.
pub(crate) fn find(definitions: &'static [Definition], name: &str) -> Option<&'static Definition> {
    definitions.iter().find(|definition| definition.name == name)
}

/// How IncrementalAlterConfigs changes a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    Set,
    Delete,
    Append,
    Subtract,
}

impl Change {
    pub(crate) fn from_wire(operation: i8) -> Option<Self> {
        Some(match operation {
            0 => Self::Set,
            1 => Self::Delete,
            2 => Self::Append,
            3 => Self::Subtract,
            _ => return None,
        })
    }
}

/// Applies one change after checking it.
pub(crate) fn change(
    definitions: &'static [Definition],
    overrides: &mut Overrides,
    name: &str,
    change: Change,
    value: Option<&str>,
) -> Result<(), Refusal> {
    // As in Kafka: what is not known is not set either.
    if change == Change::Delete {
        overrides.remove(name);
        return Ok(());
    }
    let unknown = || Refusal::new(ErrorCode::INVALID_CONFIG, format!("Unknown config name: {name}"));
    let definition = find(definitions, name).ok_or_else(unknown)?;
    let missing = || Refusal::new(ErrorCode::INVALID_REQUEST, format!("Null value not supported for : {name}"));
    let value = value.ok_or_else(missing)?;
    let new = if change == Change::Set { value.to_owned() } else { edit(definition, overrides, change, value)? };
    definition.check(&new)?;
    overrides.insert(definition.name, new);
    Ok(())
}

fn edit(definition: &Definition, overrides: &Overrides, change: Change, value: &str) -> Result<String, Refusal> {
    if !matches!(definition.kind, Kind::List(_)) {
        let why = format!("Config value append or subtract is not allowed for config: {}", definition.name);
        return Err(Refusal::new(ErrorCode::INVALID_CONFIG, why));
    }
    let current = overrides.get(definition.name).map_or(definition.default, String::as_str);
    let mut list: Vec<&str> = items(current).collect();
    for item in items(value) {
        list.retain(|other| *other != item);
        if change == Change::Append {
            list.push(item);
        }
    }
    Ok(list.join(","))
}
