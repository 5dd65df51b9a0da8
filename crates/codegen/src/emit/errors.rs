//! The error codes.

use crate::spec::ErrorCode;
use std::fmt::Write as _;

/// The file of error codes.
#[must_use]
pub fn error_codes(errors: &[ErrorCode]) -> String {
    let mut out = String::from(
        "//! Kafka's error codes (generated from protocol-specs; do not edit).\n\nuse crate::ErrorCode;\n\nimpl ErrorCode {\n",
    );
    for error in errors {
        let about = if error.about.is_empty() { format!("`{}`", error.name) } else { error.about.clone() };
        let _ = writeln!(out, "/// {about}\npub const {}: ErrorCode = ErrorCode({});", error.name, error.code);
    }
    out.push_str("}\n\n/// Code, name, whether Kafka's clients may try again, whether metadata is stale, meaning.\npub(crate) const ERRORS: &[(i16, &str, bool, bool, &str)] = &[\n");
    for e in errors {
        let _ = writeln!(out, "({}, {:?}, {}, {}, {:?}),", e.code, e.name, e.retriable, e.refresh_metadata, e.about);
    }
    out.push_str("];\n");
    out
}
