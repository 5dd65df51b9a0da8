//! Kafka's error codes as a number with a name; unknown codes are kept.

use crate::r#gen::ERRORS;
use std::fmt;

/// An error code of a response; [`ErrorCode::NONE`] (0) is success.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct ErrorCode(pub i16);

impl ErrorCode {
    fn row(self) -> Option<&'static (i16, &'static str, bool, bool, &'static str)> {
        ERRORS.iter().find(|row| row.0 == self.0)
    }

    /// Whether this is success.
    #[must_use]
    pub fn is_ok(self) -> bool {
        self == Self::NONE
    }

    /// Whether this is not success.
    #[must_use]
    pub fn is_err(self) -> bool {
        !self.is_ok()
    }

    /// `Ok(())` for success, else the code.
    ///
    /// # Errors
    /// The code, where it is not success.
    pub fn ok(self) -> Result<(), ErrorCode> {
        if self.is_ok() { Ok(()) } else { Err(self) }
    }

    /// Kafka's name for it, or `UNKNOWN`.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.row().map_or("UNKNOWN", |row| row.1)
    }

    /// Whether Kafka's own clients count it as retriable.
    #[must_use]
    pub fn is_retriable(self) -> bool {
        self.row().is_some_and(|row| row.2)
    }

    /// Whether it says that cached metadata is stale.
    #[must_use]
    pub fn needs_metadata(self) -> bool {
        self.row().is_some_and(|row| row.3)
    }

    /// A sentence on what it means; empty where there is none.
    #[must_use]
    pub fn about(self) -> &'static str {
        self.row().map_or("", |row| row.4)
    }
}

impl From<i16> for ErrorCode {
    fn from(code: i16) -> Self {
        ErrorCode(code)
    }
}

impl fmt::Debug for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({})", self.name(), self.0)
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name(), self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_know_their_names() {
        assert_eq!(ErrorCode(121), ErrorCode::INVALID_RECORD_STATE);
        assert_eq!(ErrorCode(121).to_string(), "INVALID_RECORD_STATE (121)");
        assert!(!ErrorCode::INVALID_RECORD_STATE.is_retriable());
        assert!(ErrorCode::SHARE_SESSION_NOT_FOUND.is_retriable());
        assert_eq!(ErrorCode(9999).name(), "UNKNOWN");
    }
}
