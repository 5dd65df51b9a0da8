//! Why a ledger partition cannot be used any further.

use super::format::{FormatError, MOVE};
use kafka_share_wire::records::RecordError;

/// Nothing may be committed on the word of a ledger that cannot be read. It stays so: readers do not read what
/// they have refused again.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LedgerError {
    /// A record.
    #[error("ledger partition {partition}, offset {offset}: {error}")]
    Record {
        /// Ledger partition.
        partition: i32,
        /// Offset of the record.
        offset: i64,
        /// What is wrong with it.
        error: FormatError,
    },
    /// A batch.
    #[error("ledger partition {partition}, batch at offset {offset}: it is damaged ({error}); {MOVE}")]
    Batch {
        /// Ledger partition.
        partition: i32,
        /// First offset of the batch.
        offset: i64,
        /// What is wrong with it.
        error: RecordError,
    },
    /// Records that compaction would have kept.
    #[error(
        "ledger partition {partition}: its records below offset {start} were deleted (compaction does not), and with them perhaps what says which \
         records are done. Stop all members of the group; then `kshare ledger raise` has it begin anew, and what was done and \
         the broker was not told of comes twice"
    )]
    Deleted {
        /// Ledger partition.
        partition: i32,
        /// First offset that is left.
        start: i64,
    },
    /// More is open and not tombstoned than may be remembered.
    #[error(
        "ledger partition {partition}: over {limit} ranges of offsets are acknowledged and not tombstoned; let members describe \
         the group's offsets (right DESCRIBE), by which they tombstone, or do it once with `kshare ledger compact`; then start \
         again"
    )]
    TooLarge {
        /// Ledger partition.
        partition: i32,
        /// Most ranges that are remembered.
        limit: usize,
    },
}
