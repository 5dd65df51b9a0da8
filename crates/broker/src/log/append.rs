//! Appending: checks of a produced batch, offsets, transaction markers.

use super::producers::Numbered;
use super::storage::BatchEntry;
use super::{AbortedTxn, DECOMPRESS_LIMIT, PartitionLog};
use crate::cluster::Refusal;
use crate::settings::TopicConfig;
use bytes::{Bytes, BytesMut};
use kafka_share_messages::ErrorCode;
use kafka_share_wire::records::{BATCH_HEADER_LEN, EndTxnMarker, RecordBatch, RecordError, TimestampType, patch};

/// Fewest bytes of an uncompressed record: length, attributes, two deltas, key and value lengths, header count.
const MIN_RECORD: usize = 7;

/// A batch to append, and what it is checked against.
#[derive(Debug)]
pub(crate) struct AppendRequest<'a> {
    /// The records field of a produce request.
    pub(crate) records: &'a Bytes,
    pub(crate) config: &'a TopicConfig,
    pub(crate) leader_epoch: i32,
    pub(crate) now_ms: i64,
    /// The transaction was checked to hold this partition (or the batch is not transactional).
    pub(crate) in_transaction: bool,
    /// The request came in a version of TV2.
    pub(crate) epoch_per_transaction: bool,
}

/// Where a batch is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Appended {
    pub(crate) base_offset: i64,
    /// -1 unless the log sets the timestamps.
    pub(crate) log_append_time: i64,
    /// It was in the log before.
    pub(crate) duplicate: bool,
}

/// A transaction marker to append.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Marker {
    pub(crate) producer_id: i64,
    pub(crate) epoch: i16,
    pub(crate) committed: bool,
    pub(crate) coordinator_epoch: i32,
    /// transaction.version is 2.
    pub(crate) epoch_per_transaction: bool,
}

fn invalid(why: impl Into<String>) -> Refusal {
    Refusal::new(ErrorCode::INVALID_RECORD, why)
}

/// Looks at the one batch of a produce request without its records, as far as a client may be wrong about it.
pub(crate) fn parse_batch(records: &Bytes) -> Result<RecordBatch, Refusal> {
    let batch = RecordBatch::parse(records).map_err(|error| match error {
        RecordError::UnsupportedMagic(_) | RecordError::UnknownMagic(_) => invalid(error.to_string()),
        RecordError::BatchIncomplete { have: 0, .. } => invalid("the produce request has no record batch"),
        _ => Refusal::new(ErrorCode::CORRUPT_MESSAGE, error.to_string()),
    })?;
    if batch.as_bytes().len() != records.len() {
        return Err(invalid("a produce request holds exactly one record batch per partition"));
    }
    Ok(batch)
}

impl PartitionLog {
    /// Appends a batch of a client.
    pub(crate) fn append(&mut self, request: &AppendRequest<'_>) -> Result<Appended, Refusal> {
        let batch = parse_batch(request.records)?;
        check(&batch, request)?;
        let numbered = Numbered {
            producer_id: batch.producer_id,
            epoch: batch.producer_epoch,
            first_sequence: batch.base_sequence,
            last_sequence: batch.last_sequence(),
        };
        if batch.has_producer_id() {
            if let Some(old) = self.producers.duplicate(&numbered) {
                // As in Kafka, whoever set it.
                return Ok(Appended { base_offset: old.base_offset, log_append_time: old.timestamp, duplicate: true });
            }
            self.check_producer(&batch, &numbered, request)?;
        }
        let base_offset = self.end_offset;
        let time = self.store(&batch, request)?;
        if batch.has_producer_id() {
            let stamp = if time >= 0 { time } else { batch.max_timestamp };
            let began = self.producers.appended(&numbered, base_offset, stamp, batch.is_transactional());
            if let Some(start) = began {
                self.open.insert(start, batch.producer_id);
            }
        }
        Ok(Appended { base_offset, log_append_time: time, duplicate: false })
    }

    fn check_producer(
        &self,
        batch: &RecordBatch,
        numbered: &Numbered,
        request: &AppendRequest<'_>,
    ) -> Result<(), Refusal> {
        let open = self.producers.has_open(numbered.producer_id, numbered.epoch);
        if batch.is_transactional() && !open && !request.in_transaction {
            return Err(Refusal::new(ErrorCode::INVALID_TXN_STATE, "the record is not part of an ongoing transaction"));
        }
        let strict = request.epoch_per_transaction && batch.is_transactional();
        self.producers.check(numbered, strict).map_err(|code| {
            let last = self.producers.get(numbered.producer_id).map_or(-1, super::ProducerState::last_sequence);
            let why = format!(
                "producer {} at epoch {} sent sequence {} after {last}",
                numbered.producer_id, numbered.epoch, numbered.first_sequence
            );
            Refusal::new(code, why)
        })?;
        // A record outside a transaction may not slip into one that is open.
        let inside = self.producers.get(numbered.producer_id).is_some_and(|state| state.txn_start.is_some());
        if inside && !batch.is_transactional() {
            return Err(Refusal::new(ErrorCode::INVALID_TXN_STATE, "a transaction of this producer is open here"));
        }
        Ok(())
    }

    /// Copies the batch in and gives it its offsets. Gives the log-append time, -1 where the producer's times stay.
    fn store(&mut self, batch: &RecordBatch, request: &AppendRequest<'_>) -> Result<i64, Refusal> {
        let bytes = batch.as_bytes();
        let base_offset = self.end_offset;
        let tail = self.storage.tail_for(bytes.len());
        let at = tail.len();
        tail.extend_from_slice(bytes);
        let stored = &mut tail[at..];
        let defect = |error: RecordError| Refusal::new(ErrorCode::UNKNOWN_SERVER_ERROR, error.to_string());
        patch::set_base_offset(stored, base_offset).map_err(defect)?;
        patch::set_partition_leader_epoch(stored, request.leader_epoch).map_err(defect)?;
        let mut max_timestamp = batch.max_timestamp;
        if request.config.log_append_time {
            patch::set_log_append_time(stored, request.now_ms).map_err(defect)?;
            max_timestamp = request.now_ms;
        }
        self.storage.push(BatchEntry::new(batch, base_offset, max_timestamp));
        self.note_epoch(request.leader_epoch, base_offset);
        self.end_offset = base_offset + i64::from(batch.last_offset_delta) + 1;
        Ok(if request.config.log_append_time { request.now_ms } else { -1 })
    }

    /// Ends a transaction here. A marker is written even where no transaction is open, as in Kafka.
    pub(crate) fn append_marker(&mut self, marker: &Marker, leader_epoch: i32, now_ms: i64) -> Result<i64, ErrorCode> {
        let Marker { producer_id, epoch, committed, coordinator_epoch, epoch_per_transaction } = *marker;
        self.producers.check_marker(producer_id, epoch, coordinator_epoch, epoch_per_transaction)?;
        let offset = self.end_offset;
        let control = EndTxnMarker { commit: committed, coordinator_epoch, producer_id, producer_epoch: epoch };
        let bytes = control
            .write(offset, leader_epoch, now_ms, BytesMut::new())
            .map_err(|_| ErrorCode::UNKNOWN_SERVER_ERROR)?
            .freeze();
        let batch = RecordBatch::parse(&bytes).map_err(|_| ErrorCode::UNKNOWN_SERVER_ERROR)?;
        self.storage.tail_for(bytes.len()).extend_from_slice(&bytes);
        self.storage.push(BatchEntry::new(&batch, offset, now_ms));
        self.note_epoch(leader_epoch, offset);
        self.end_offset = offset + 1;
        self.note_marker(producer_id, epoch, coordinator_epoch, committed, offset, now_ms);
        Ok(offset)
    }

    /// Takes a marker into account that is in the log.
    pub(super) fn note_marker(
        &mut self,
        producer_id: i64,
        epoch: i16,
        coordinator_epoch: i32,
        committed: bool,
        offset: i64,
        now_ms: i64,
    ) {
        let Some(start) = self.producers.marked(producer_id, epoch, coordinator_epoch, now_ms) else { return };
        self.open.remove(&start);
        if !committed {
            let stable_after = self.last_stable_offset();
            self.aborted.push(AbortedTxn { producer_id, first_offset: start, last_offset: offset, stable_after });
        }
    }
}

/// Checks of the batch alone.
fn check(batch: &RecordBatch, request: &AppendRequest<'_>) -> Result<(), Refusal> {
    let size = batch.as_bytes().len();
    if size > request.config.max_message_bytes {
        let why = format!("the batch has {size} bytes, the topic allows {}", request.config.max_message_bytes);
        return Err(Refusal::new(ErrorCode::MESSAGE_TOO_LARGE, why));
    }
    batch.verify_crc().map_err(|error| Refusal::new(ErrorCode::CORRUPT_MESSAGE, error.to_string()))?;
    if batch.base_offset != 0 {
        return Err(invalid(format!("the batch starts at offset {}, not at 0", batch.base_offset)));
    }
    batch.check().map_err(|error| invalid(error.to_string()))?;
    if batch.record_count < 1 || batch.record_count != batch.last_offset_delta.saturating_add(1) {
        let (count, delta) = (batch.record_count, batch.last_offset_delta);
        return Err(invalid(format!("the batch has {count} records but a last offset delta of {delta}")));
    }
    if batch.is_control() {
        return Err(invalid("clients are not allowed to write control records"));
    }
    if batch.has_producer_id() && batch.base_sequence < 0 {
        return Err(invalid(format!("producer {} sent no sequence number", batch.producer_id)));
    }
    if batch.timestamp_type() == TimestampType::LogAppendTime {
        let why = "producers may not set the timestamp type to log-append time";
        return Err(Refusal::new(ErrorCode::INVALID_TIMESTAMP, why));
    }
    let compressed = batch.compression().is_ok_and(|codec| codec != kafka_share_wire::compression::Compression::None);
    if !compressed && batch.record_count as usize > (size - BATCH_HEADER_LEN) / MIN_RECORD {
        return Err(invalid(format!("{} records do not fit {size} bytes", batch.record_count)));
    }
    check_timestamp(batch, request)?;
    if request.config.compact { check_keys(batch, request.config) } else { Ok(()) }
}

fn check_timestamp(batch: &RecordBatch, request: &AppendRequest<'_>) -> Result<(), Refusal> {
    let config = request.config;
    let age = request.now_ms.saturating_sub(batch.max_timestamp);
    let out = age > config.timestamp_before_max_ms || age.saturating_neg() > config.timestamp_after_max_ms;
    if config.log_append_time || batch.max_timestamp < 0 || !out {
        return Ok(());
    }
    let why = format!("timestamp {} is out of range: the broker's time is {}", batch.max_timestamp, request.now_ms);
    Err(Refusal::new(ErrorCode::INVALID_TIMESTAMP, why))
}

/// Compaction needs keys.
fn check_keys(batch: &RecordBatch, config: &TopicConfig) -> Result<(), Refusal> {
    let limit = config.max_decompressed_bytes.min(DECOMPRESS_LIMIT);
    let decoded = batch.decode(limit).map_err(|error| invalid(error.to_string()))?;
    for record in &decoded {
        if record.map_err(|error| invalid(error.to_string()))?.key.is_none() {
            return Err(invalid("a compacted topic takes no record without a key"));
        }
    }
    Ok(())
}

impl BatchEntry {
    pub(super) fn new(batch: &RecordBatch, base_offset: i64, max_timestamp: i64) -> Self {
        BatchEntry {
            base_offset,
            last_offset: base_offset + i64::from(batch.last_offset_delta),
            max_timestamp,
            len: batch.as_bytes().len() as u32,
            record_count: batch.record_count,
            control: batch.is_control(),
            transactional: batch.is_transactional(),
            producer_id: batch.producer_id,
            position: 0,
        }
    }
}
