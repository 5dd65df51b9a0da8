//! What the database's errors say about records, the connection and the settings.

use crate::ConnectError;
use tokio_postgres::Error;
use tokio_postgres::error::SqlState;

/// What to do about an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The same may work later, perhaps on another connection.
    Later,
    /// What is known of the tables is out of date.
    LookAgain,
    /// A record cannot be stored.
    Record,
    /// A setting, a right or a table must be mended first.
    Task,
}

pub(super) fn verdict(error: &Error) -> Verdict {
    // Without a code, the connection is gone.
    error.code().map_or(Verdict::Later, verdict_of)
}

fn verdict_of(state: &SqlState) -> Verdict {
    if *state == SqlState::UNDEFINED_COLUMN || *state == SqlState::UNDEFINED_TABLE {
        return Verdict::LookAgain;
    }
    if *state == SqlState::LOCK_NOT_AVAILABLE || *state == SqlState::OBJECT_IN_USE {
        return Verdict::Later;
    }
    match state.code().get(..2) {
        // The connection, the transaction, deadlocks, resources, an operator at work, the system, the server itself.
        Some("08" | "25" | "26" | "40" | "53" | "57" | "58" | "F0" | "HV" | "XX") => Verdict::Later,
        Some("28" | "3D" | "3F" | "42" | "55" | "0A" | "0L" | "0P") => Verdict::Task,
        // Cardinality, data, integrity constraints, limits of rows, and whatever a trigger raises.
        _ => Verdict::Record,
    }
}

/// The server's words, with the names that it gives, and without the row: it may hold what is no log's business.
pub(super) fn text(error: &Error) -> String {
    let Some(db) = error.as_db_error() else {
        let cause = std::error::Error::source(error).map_or_else(String::new, |c| format!(": {c}"));
        return format!("{error}{cause}");
    };
    let mut text = format!("{} (SQLSTATE {}", db.message(), db.code().code());
    for (what, name) in [("table", db.table()), ("column", db.column()), ("constraint", db.constraint())] {
        if let Some(name) = name {
            text.push_str(&format!(", {what} {name}"));
        }
    }
    text.push(')');
    if let Some(hint) = db.hint() {
        text.push_str(&format!("; {hint}"));
    }
    text
}

/// As an error of a put; `doing` says what failed.
pub(super) fn of(error: &Error, doing: &str) -> ConnectError {
    let text = format!("{doing}: {}", text(error));
    match verdict(error) {
        Verdict::Later if error.code() == Some(&SqlState::READ_ONLY_SQL_TRANSACTION) => {
            ConnectError::retriable(format!(
                "{text}: the server takes no writes, as a standby does not: connection.url must lead to the primary, and is tried again"
            ))
        }
        Verdict::Later | Verdict::LookAgain => ConnectError::retriable(text),
        Verdict::Record => ConnectError::fatal(text),
        Verdict::Task if error.code() == Some(&SqlState::INVALID_COLUMN_REFERENCE) => ConnectError::config(format!(
            "{text}: insert.mode=upsert needs a primary key or a unique constraint on just the columns of pk.fields"
        )),
        Verdict::Task if error.code() == Some(&SqlState::INSUFFICIENT_PRIVILEGE) => {
            ConnectError::config(format!("{text}: grant it to connection.user"))
        }
        Verdict::Task => ConnectError::config(text),
    }
}

/// As an error of a connection that is not to be had.
pub(super) fn of_connecting(error: &Error, place: &str) -> ConnectError {
    let text = text(error);
    match error.code() {
        Some(state) if *state == SqlState::INVALID_PASSWORD || state.code().starts_with("28") => {
            ConnectError::config(format!("connection.user, connection.password: {place} refuses them: {text}"))
        }
        Some(state) if state.code().starts_with("3D") => {
            ConnectError::config(format!("connection.url: {place}: {text}"))
        }
        Some(_) => ConnectError::retriable(format!("connection.url: {place} takes no connection: {text}")),
        None if text.contains("password missing") => {
            ConnectError::config(format!("connection.password is missing, and {place} asks for it"))
        }
        None => ConnectError::retriable(format!("connection.url: no connection to {place}: {text}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_say_whose_fault_it_is() {
        for (verdict, codes) in [
            // Connections, read-only servers, deadlocks, locks that are waited for, full disks, shutdowns.
            (
                Verdict::Later,
                &["08006", "25006", "40001", "40P01", "55P03", "55006", "53100", "57P01", "57014", "XX000"][..],
            ),
            (Verdict::LookAgain, &["42703", "42P01"]),
            // Data, constraints, rows twice in an upsert, triggers.
            (Verdict::Record, &["22001", "22P02", "23502", "23505", "23514", "21000", "P0001", "54000"]),
            // Rights, passwords, names, what is not supported.
            (Verdict::Task, &["42501", "28P01", "3D000", "3F000", "42P10", "0A000"]),
        ] {
            for code in codes {
                assert_eq!(verdict_of(&SqlState::from_code(code)), verdict, "{code}");
            }
        }
    }
}
