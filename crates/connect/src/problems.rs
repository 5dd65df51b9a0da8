//! What is wrong with settings: all of it, not only the first.

use crate::ConnectError;
use std::time::Duration;

/// A setting that is wrong or missing, or fits no other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Its name.
    pub setting: String,
    /// What is wrong, and what is expected.
    pub message: String,
}

/// Collects what is wrong while settings are read; what is wrong has its default.
#[derive(Debug, Default)]
pub(crate) struct Problems(pub(crate) Vec<Problem>);

impl Problems {
    pub(crate) fn say(&mut self, setting: &str, message: impl Into<String>) {
        self.0.push(Problem { setting: setting.to_owned(), message: message.into() });
    }

    pub(crate) fn check(&mut self, setting: &str, result: Result<(), ConnectError>) {
        self.or(setting, result, ());
    }

    pub(crate) fn or<T>(&mut self, setting: &str, result: Result<T, ConnectError>, default: T) -> T {
        result.unwrap_or_else(|error| {
            self.say(setting, error.to_string());
            default
        })
    }

    pub(crate) fn need(&mut self, name: &str, value: Option<&str>) -> String {
        match value.filter(|v| !v.is_empty()) {
            Some(value) => value.to_owned(),
            None => {
                self.say(name, format!("{name} is missing"));
                String::new()
            }
        }
    }

    pub(crate) fn optional<'a>(
        &mut self,
        get: &impl Fn(&str) -> Option<&'a str>,
        name: &str,
        (min, max): (i64, i64),
    ) -> Option<u64> {
        let value = get(name)?;
        match value.parse::<i64>() {
            Ok(n) if (min..=max).contains(&n) => u64::try_from(n).ok(),
            _ => {
                self.say(name, format!("{name}={value}: a number from {min} to {max} is expected"));
                None
            }
        }
    }

    pub(crate) fn number<'a>(
        &mut self,
        get: &impl Fn(&str) -> Option<&'a str>,
        name: &str,
        default: i64,
        (min, max): (i64, i64),
    ) -> i64 {
        let Some(value) = get(name) else { return default };
        match value.parse::<i64>() {
            Ok(n) if (min..=max).contains(&n) => n,
            _ => {
                self.say(name, format!("{name}={value}: a number from {min} to {max} is expected"));
                default
            }
        }
    }

    pub(crate) fn millis<'a>(&mut self, get: &impl Fn(&str) -> Option<&'a str>, name: &str, default: i64) -> Duration {
        let ms = self.number(get, name, default, (1, i64::from(i32::MAX)));
        Duration::from_millis(u64::try_from(ms).unwrap_or_default())
    }

    pub(crate) fn choice<'a>(&mut self, get: &impl Fn(&str) -> Option<&'a str>, name: &str, choices: &[&str]) -> usize {
        let Some(value) = get(name) else { return 0 };
        let at = choices.iter().position(|c| c.eq_ignore_ascii_case(value));
        at.unwrap_or_else(|| {
            self.say(name, format!("{name}={value}: {} is expected", choices.join(" or ")));
            0
        })
    }
}
