//! The acknowledgement ledger: exactly-once from a share group with released RPCs.
//!
//! Inside the transaction that writes the output its producer also writes an *intent* to a ledger partition: "this
//! transaction acknowledges these offsets of these share-partitions". The order of one ledger partition is the lock: of two
//! transactions that claim the same record the one whose intent lies lower goes first, and the other waits for its outcome.
//! The broker is told after the commit, the ordinary way; should that fail, whoever gets the record again finds the
//! committed intent and only acknowledges.
//!
//! [`LedgerReader`] follows the one ledger partition of a share group. It carries no bytes: its caller asks what it
//! [wants](LedgerReader::want), fetches that uncommitted, and hands over what came.
//!
//! What a member has written itself it need not read back: while nobody else writes, [`LedgerReader::handle_own_records`] takes
//! its own records as read, and a transaction costs no fetch of the ledger.
//!
//! Two rules about forgetting are what makes it exactly-once, and both need to know what the consumer has asked for. It
//! numbers its requests for records: 1, 2, 3 and so on.
//! * **R1**: a tombstone frees its intent only for records that were asked for after it was read. So
//!   [`LedgerReader::note_asked`] is called *before* a request is sent, and [`LedgerReader::set_lowest_ask`] when all requests
//!   before a number are answered and what they brought is settled.
//! * **R2**: after a gap in the log, all that was asked for before counts for nothing: [`LedgerReader::floor`].

mod check;
mod error;
mod fences;
mod format;
mod own;
mod picture;
mod range_index;
mod reader;
mod standing;
mod survey;
mod upkeep;
mod verdicts;

pub use check::{Check, Conflict};
pub use error::LedgerError;
pub use fences::FenceOrder;
pub use format::{
    ClaimedRange, Claims, FORMAT_VERSION, FormatError, GroupClaims, HASH_VERSION, Intent, IntentKey, Layout,
    LedgerRecord,
};
pub use picture::IntentState;
pub use reader::{LedgerReader, OpenIntent, ReaderConfig, Want};
pub use standing::{Run, Standing};
pub use survey::{Survey, SurveyedIntent};
pub use upkeep::{SweepPartition, common_claims};
pub use verdicts::Verdict;

#[cfg(test)]
mod tests;
