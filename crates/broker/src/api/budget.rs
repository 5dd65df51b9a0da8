//! What one answer may grow to: a request that names a rich thing a million times is answered entry by entry in Kafka, and
//! would take memory out of all proportion to its frame.

use super::Outcome;
use crate::cluster::CloseReason;

/// Entries of one answer, and of what its entries hold. Ten thousand topics with all their settings are half of it.
const ENTRIES: usize = 1_000_000;

/// Collects the rows of an answer, made one by one, as long as they weigh no more than an answer may.
pub(super) fn rows<T>(rows: impl Iterator<Item = T>, weight: impl Fn(&T) -> usize) -> Result<Vec<T>, CloseReason> {
    let mut left = ENTRIES;
    rows.map(|row| {
        left = left.checked_sub(1 + weight(&row)).ok_or(CloseReason::AnswerTooLarge { entries: ENTRIES })?;
        Ok(row)
    })
    .collect()
}

/// The answer with these rows.
pub(super) fn reply<T, R>(rows: Result<Vec<T>, CloseReason>, answer: impl FnOnce(Vec<T>) -> R) -> Outcome<R> {
    match rows {
        Ok(rows) => Outcome::Reply(answer(rows)),
        Err(reason) => Outcome::Close(reason),
    }
}
