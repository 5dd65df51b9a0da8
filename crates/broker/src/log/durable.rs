//! A log's state beyond its batches, what was not yet saved of it, and the way back.
//!
//! Producers, aborted transactions and leader epochs follow from the batches, as long as all of them are there. Once some
//! are deleted, compacted or forgotten, a snapshot is saved that holds for the offsets below its own.

use super::producers::{Numbered, Producers};
use super::storage::BatchEntry;
use super::{AbortedTxn, PartitionLog};
use crate::persistence::{Decoder, Encoder, LogChange};
use bytes::Bytes;
use kafka_share_wire::records::{ControlRecordType, RecordBatch};

const MARKER_LIMIT: usize = 1 << 20;
/// Dead bytes that a file may hold beyond as many as are alive.
const REWRITE_SLACK: u64 = 1 << 20;

/// How far a log was saved.
#[derive(Debug, Default)]
pub(super) struct Progress {
    /// Bytes below this position are in the file.
    position: u64,
    /// The file's length.
    file_len: u64,
    /// The state can no longer be told from the batches alone.
    pub(super) snapshot: bool,
    /// Batches in the file were replaced by others.
    pub(super) rewrite: bool,
}

impl Progress {
    /// Nothing that is in the file counts any more.
    pub(super) fn rewritten() -> Self {
        Progress { position: 0, file_len: 0, snapshot: true, rewrite: true }
    }
}

/// Bytes that are no log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LogDefect {
    pub(crate) position: u64,
    pub(crate) why: String,
}

impl PartitionLog {
    /// What is new since the last call: the snapshot, if it has to be saved again, and bytes.
    pub(crate) fn take_changes(&mut self) -> (Option<Bytes>, Option<LogChange>) {
        let end = self.storage.end();
        let live = self.storage.bytes() as u64;
        let from = self.saved.position.max(self.storage.start());
        let after = self.saved.file_len + (end - from);
        let change = if self.saved.rewrite || after > 2 * live + REWRITE_SLACK {
            self.saved.snapshot = true;
            self.saved.file_len = live;
            Some(LogChange::Rewrite(self.storage.copy_from(self.storage.start())))
        } else if from < end {
            self.saved.file_len = after;
            Some(LogChange::Append(self.storage.copy_from(from)))
        } else {
            None
        };
        self.saved.position = end;
        self.saved.rewrite = false;
        let snapshot = std::mem::take(&mut self.saved.snapshot).then(|| self.snapshot());
        (snapshot, change)
    }

    #[cfg(test)]
    pub(crate) fn all_batches(&self) -> Bytes {
        self.storage.copy_from(self.storage.start())
    }

    /// State at the log's end.
    pub(crate) fn snapshot(&self) -> Bytes {
        let mut out = Encoder::default();
        out.i64(self.start_offset).i64(self.end_offset).i64(self.cleaned_to);
        self.producers.encode(&mut out);
        out.list(self.aborted.iter(), |out, txn| {
            out.i64(txn.producer_id).i64(txn.first_offset).i64(txn.last_offset).i64(txn.stable_after);
        });
        out.list(self.epochs.iter(), |out, (epoch, start)| {
            out.i32(*epoch).i64(*start);
        });
        out.finish()
    }

    fn read_snapshot(bytes: Bytes) -> kafka_share_wire::Result<PartitionLog> {
        let mut input = Decoder::new(bytes);
        let (start_offset, end_offset, cleaned_to) = (input.i64()?, input.i64()?, input.i64()?);
        let producers = Producers::decode(&mut input)?;
        let aborted = input.list(|input| {
            Ok(AbortedTxn {
                producer_id: input.i64()?,
                first_offset: input.i64()?,
                last_offset: input.i64()?,
                stable_after: input.i64()?,
            })
        })?;
        let epochs = input.list(|input| Ok((input.i32()?, input.i64()?)))?;
        input.finish()?;
        let open = producers.iter().filter_map(|(id, state)| Some((state.txn_start?, id))).collect();
        Ok(PartitionLog {
            start_offset,
            end_offset,
            cleaned_to,
            producers,
            open,
            aborted,
            epochs,
            ..PartitionLog::default()
        })
    }

    /// The log of a saved snapshot and batches.
    pub(crate) fn restore(snapshot: Option<Bytes>, batches: &Bytes) -> Result<PartitionLog, LogDefect> {
        let defect = |position: u64, why: String| LogDefect { position, why };
        let mut log = match snapshot {
            Some(bytes) => PartitionLog::read_snapshot(bytes)
                .map_err(|error| defect(0, format!("the snapshot cannot be read: {error}")))?,
            None => PartitionLog::default(),
        };
        let known = log.end_offset;
        let mut at = 0;
        let mut next = i64::MIN;
        while at < batches.len() {
            let bad = |why: String| defect(at as u64, why);
            let batch = RecordBatch::parse(&batches.slice(at..)).map_err(|error| bad(error.to_string()))?;
            batch.verify_crc().map_err(|error| bad(error.to_string()))?;
            if batch.base_offset < next {
                return Err(bad(format!("offset {} follows offset {}", batch.base_offset, next - 1)));
            }
            log.storage.push_restored(BatchEntry::new(&batch, batch.base_offset, batch.max_timestamp));
            if batch.base_offset >= known {
                log.replay(&batch).map_err(bad)?;
            }
            next = batch.last_offset() + 1;
            at += batch.as_bytes().len();
        }
        log.storage.adopt(batches.clone());
        log.storage.drop_below(log.start_offset);
        log.saved.position = log.storage.end();
        log.saved.file_len = batches.len() as u64;
        Ok(log)
    }

    /// Takes a batch into account that was written after the snapshot.
    fn replay(&mut self, batch: &RecordBatch) -> Result<(), String> {
        let base_offset = batch.base_offset;
        self.note_epoch(batch.partition_leader_epoch, base_offset);
        self.end_offset = batch.last_offset() + 1;
        if !batch.has_producer_id() {
            return Ok(());
        }
        if batch.is_control() {
            let decoded = batch.decode(MARKER_LIMIT).map_err(|error| error.to_string())?;
            let mut records = decoded.control_records().map_err(|error| error.to_string())?;
            let record =
                records.next().ok_or("a control batch without a record")?.map_err(|error| error.to_string())?;
            let committed = record.kind == ControlRecordType::Commit;
            let coordinator_epoch = record.coordinator_epoch.unwrap_or(-1);
            let (id, epoch) = (batch.producer_id, batch.producer_epoch);
            self.note_marker(id, epoch, coordinator_epoch, committed, base_offset, batch.max_timestamp);
            return Ok(());
        }
        let numbered = Numbered {
            producer_id: batch.producer_id,
            epoch: batch.producer_epoch,
            first_sequence: batch.base_sequence,
            last_sequence: batch.last_sequence(),
        };
        let began = self.producers.appended(&numbered, base_offset, batch.max_timestamp, batch.is_transactional());
        if let Some(start) = began {
            self.open.insert(start, batch.producer_id);
        }
        Ok(())
    }
}
