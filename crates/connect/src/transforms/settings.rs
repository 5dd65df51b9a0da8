//! Settings of one transform or predicate.

use crate::{ConnectError, Properties};
use std::collections::BTreeMap;

/// Those under `transforms.NAME.` or `predicates.NAME.`, until they are taken.
pub(super) struct Settings<'a> {
    prefix: String,
    left: BTreeMap<&'a str, &'a str>,
}

impl<'a> Settings<'a> {
    pub(super) fn of(properties: &'a Properties, kind: &str, name: &str) -> Self {
        let prefix = format!("{kind}.{name}.");
        let own = properties.iter().filter_map(|(n, v)| Some((n.strip_prefix(&prefix)?, v.trim())));
        Settings { left: own.collect(), prefix }
    }

    pub(super) fn take(&mut self, name: &str) -> Option<String> {
        self.left.remove(name).map(str::to_owned).filter(|v| !v.is_empty())
    }

    pub(super) fn need(&mut self, name: &str) -> Result<String, ConnectError> {
        self.take(name).ok_or_else(|| ConnectError::config(format!("{}{name} is missing", self.prefix)))
    }

    pub(super) fn list(&mut self, name: &str) -> Vec<String> {
        let text = self.take(name).unwrap_or_default();
        text.split(',').map(str::trim).filter(|p| !p.is_empty()).map(str::to_owned).collect()
    }

    pub(super) fn boolean(&mut self, name: &str, default: bool) -> Result<bool, ConnectError> {
        match self.take(name).as_deref() {
            None => Ok(default),
            Some(text) if text.eq_ignore_ascii_case("true") => Ok(true),
            Some(text) if text.eq_ignore_ascii_case("false") => Ok(false),
            Some(text) => Err(self.wrong(name, text, "true or false is expected")),
        }
    }

    pub(super) fn wrong(&self, name: &str, value: &str, why: &str) -> ConnectError {
        ConnectError::config(format!("{}{name}={value}: {why}", self.prefix))
    }

    pub(super) fn missing(&self, what: &str) -> ConnectError {
        ConnectError::config(format!("{}: {what}", self.prefix.trim_end_matches('.')))
    }

    /// What nobody has taken is a mistake.
    pub(super) fn finish(mut self) -> Result<(), ConnectError> {
        // Defaults are put in when a record is read.
        if !self.boolean("replace.null.with.default", true)? {
            return Err(self.wrong("replace.null.with.default", "false", "only true is supported"));
        }
        match self.left.first_key_value() {
            None => Ok(()),
            Some((name, value)) => Err(self.wrong(name, value, "there is no such setting of this type")),
        }
    }
}
