//! Single message transforms: what is done to each record between its converter and the sink, under Connect's names.
//!
//! | `transforms.NAME.type` | settings |
//! |---|---|
//! | `InsertField$Key`, `InsertField$Value` | `topic.field`, `partition.field`, `offset.field`, `timestamp.field`, `static.field` with `static.value`; a field's name may end in `!` (required) or `?` |
//! | `ReplaceField$Key`, `ReplaceField$Value` | `include`, `exclude`, `renames` (`old:new,..`) |
//! | `MaskField$Key`, `MaskField$Value` | `fields`, `replacement` |
//! | `Cast$Key`, `Cast$Value` | `spec`: `field:type,..` or one type for the whole; `int8`, `int16`, `int32`, `int64`, `float32`, `float64`, `boolean`, `string` |
//! | `TimestampRouter` | `topic.format` (`${topic}-${timestamp}`), `timestamp.format` (`yyyyMMdd`; UTC) |
//! | `Filter` | none: drops the record, which is accepted without being put |
//!
//! | `predicates.NAME.type` | settings |
//! |---|---|
//! | `TopicNameMatches` | `pattern`, a regular expression for the whole name |
//! | `HasHeaderKey` | `name` |
//! | `RecordIsTombstone` | none |
//!
//! Types may be told by their whole class names (`org.apache.kafka.connect.transforms.InsertField$Value`). With
//! `transforms.NAME.predicate` a transform is for records that a predicate is true of, with `transforms.NAME.negate=true` for
//! the others. A record that a transform cannot work on is a bad record, as one that does not convert: `errors.tolerance`.

mod cast;
mod fields;
mod predicates;
mod router;
mod settings;

pub use predicates::Predicate;
#[cfg(feature = "postgres")]
pub(crate) use router::civil;

use crate::{ConnectError, Properties, SinkRecord};
use settings::Settings;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;

/// Changes records, one by one.
pub trait Transformation: Debug + Send + Sync {
    /// The record as it is to go on; `None` drops it.
    ///
    /// # Errors
    /// A record that it cannot work on.
    fn apply(&self, record: SinkRecord) -> Result<Option<SinkRecord>, ConnectError>;
}

/// A transform of a connector, and which records it is for.
#[derive(Debug, Clone)]
struct Stage {
    name: String,
    transformation: Arc<dyn Transformation>,
    predicate: Option<Arc<dyn Predicate>>,
    negate: bool,
}

/// All transforms of a connector, in their order.
///
/// ```
/// use kafka_share_connect::transforms::TransformationChain;
/// use kafka_share_connect::Properties;
///
/// let settings = [
///     ("transforms", "origin,live"),
///     ("transforms.origin.type", "InsertField$Value"),
///     ("transforms.origin.topic.field", "from"),
///     ("transforms.live.type", "Filter"),
///     ("transforms.live.predicate", "deleted"),
///     ("predicates", "deleted"),
///     ("predicates.deleted.type", "RecordIsTombstone"),
/// ];
/// let properties: Properties = settings.map(|(n, v)| (n.to_owned(), v.to_owned())).into();
/// assert!(!TransformationChain::from_properties(&properties)?.is_empty());
/// # Ok::<(), kafka_share_connect::ConnectError>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct TransformationChain {
    stages: Vec<Stage>,
}

impl TransformationChain {
    /// From the settings `transforms`, `predicates` and those under their names.
    ///
    /// # Errors
    /// What is unknown, missing or wrong, by its whole name.
    pub fn from_properties(properties: &Properties) -> Result<Self, ConnectError> {
        let mut predicates: BTreeMap<String, Arc<dyn Predicate>> = BTreeMap::new();
        for name in names(properties, "predicates")? {
            let mut settings = Settings::of(properties, "predicates", &name);
            let predicate = predicates::build(&mut settings)?;
            settings.finish()?;
            predicates.insert(name, predicate);
        }
        let mut stages = Vec::new();
        for name in names(properties, "transforms")? {
            let mut settings = Settings::of(properties, "transforms", &name);
            let predicate = match settings.take("predicate") {
                None => None,
                Some(wanted) => Some(predicates.get(&wanted).cloned().ok_or_else(|| {
                    settings.wrong("predicate", &wanted, "the name of one of the predicates is expected")
                })?),
            };
            let negate = settings.boolean("negate", false)?;
            if negate && predicate.is_none() {
                return Err(settings.wrong("negate", "true", "there is no predicate to negate"));
            }
            let transformation = build(&mut settings)?;
            settings.finish()?;
            stages.push(Stage { name, transformation, predicate, negate });
        }
        Ok(TransformationChain { stages })
    }

    /// Adds a transform of one's own, for all records.
    pub fn push(&mut self, name: impl Into<String>, transformation: Arc<dyn Transformation>) {
        self.stages.push(Stage { name: name.into(), transformation, predicate: None, negate: false });
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.stages.is_empty()
    }

    /// Has a record pass all of them; `None` where one dropped it.
    ///
    /// # Errors
    /// That of the first one that fails, with its name.
    pub fn apply(&self, mut record: SinkRecord) -> Result<Option<SinkRecord>, ConnectError> {
        for stage in &self.stages {
            if stage.predicate.as_ref().is_some_and(|p| p.test(&record) == stage.negate) {
                continue;
            }
            let changed = stage.transformation.apply(record);
            match changed.map_err(|e| ConnectError::fatal(format!("transform {}: {e}", stage.name)))? {
                Some(changed) => record = changed,
                None => return Ok(None),
            }
        }
        Ok(Some(record))
    }
}

fn names(properties: &Properties, setting: &str) -> Result<Vec<String>, ConnectError> {
    let list = properties.get(setting).map(String::as_str).unwrap_or_default();
    let mut names: Vec<String> = Vec::new();
    for name in list.split(',').map(str::trim).filter(|n| !n.is_empty()) {
        if names.iter().any(|n| n == name) {
            return Err(ConnectError::config(format!("{setting}={list}: {name} is there twice")));
        }
        names.push(name.to_owned());
    }
    Ok(names)
}

/// What a transform works on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Key,
    Value,
}

impl Side {
    fn of(self, record: &mut SinkRecord) -> &mut crate::Data {
        match self {
            Side::Key => &mut record.key,
            Side::Value => &mut record.value,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Side::Key => "key",
            Side::Value => "value",
        }
    }
}

fn build(settings: &mut Settings<'_>) -> Result<Arc<dyn Transformation>, ConnectError> {
    let class = settings.need("type")?;
    let short = class.strip_prefix("org.apache.kafka.connect.transforms.").unwrap_or(&class);
    let (kind, side) = match short.rsplit_once('$') {
        Some((kind, "Key")) => (kind, Some(Side::Key)),
        Some((kind, "Value")) => (kind, Some(Side::Value)),
        _ => (short, None),
    };
    Ok(match (kind, side) {
        ("InsertField", Some(side)) => Arc::new(fields::InsertField::new(side, settings)?),
        ("ReplaceField", Some(side)) => Arc::new(fields::ReplaceField::new(side, settings)?),
        ("MaskField", Some(side)) => Arc::new(fields::MaskField::new(side, settings)?),
        ("Cast", Some(side)) => Arc::new(cast::Cast::new(side, settings)?),
        ("TimestampRouter", None) => Arc::new(router::TimestampRouter::new(settings)?),
        ("Filter", None) => Arc::new(Filter),
        ("InsertField" | "ReplaceField" | "MaskField" | "Cast", None) => {
            return Err(settings.wrong("type", &class, &format!("{kind}$Key or {kind}$Value is expected")));
        }
        _ => {
            let known = "InsertField, ReplaceField, MaskField, Cast (each with $Key or $Value), TimestampRouter or Filter is expected";
            return Err(settings.wrong("type", &class, known));
        }
    })
}

/// Drops all records that its predicate lets through to it.
#[derive(Debug)]
struct Filter;

impl Transformation for Filter {
    fn apply(&self, _record: SinkRecord) -> Result<Option<SinkRecord>, ConnectError> {
        Ok(None)
    }
}

#[cfg(test)]
mod tests;
