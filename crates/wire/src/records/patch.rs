//! Changes to a finished batch, in place.
//!
//! A broker assigns offsets and leader epoch, which lie outside the checksum, and with
//! log-append time the timestamp; a producer that got a new id or epoch renumbers a batch it has not
//! sent yet. Each function takes a buffer that starts with the batch and changes that batch only.

use super::header::{
    ATTRIBUTES_AT, BASE_OFFSET_AT, BASE_SEQUENCE_AT, CRC_AT, LEADER_EPOCH_AT, LOG_APPEND_BIT, MAX_TIMESTAMP_AT,
    PRODUCER_EPOCH_AT, PRODUCER_ID_AT,
};
use super::{RecordBatchView, RecordError};

/// Sets the base offset, and with it every record's offset.
///
/// # Errors
/// As [`RecordBatchView::parse`]: the bytes do not start with a whole batch.
pub fn set_base_offset(batch: &mut [u8], base_offset: i64) -> Result<(), RecordError> {
    put(exact(batch)?, BASE_OFFSET_AT, &base_offset.to_be_bytes());
    Ok(())
}

/// Sets the partition leader epoch.
///
/// # Errors
/// As [`set_base_offset`].
pub fn set_partition_leader_epoch(batch: &mut [u8], epoch: i32) -> Result<(), RecordError> {
    put(exact(batch)?, LEADER_EPOCH_AT, &epoch.to_be_bytes());
    Ok(())
}

/// Turns the batch to log-append time: all its records then carry `timestamp`, in milliseconds
/// since 1970. Renews the checksum.
///
/// # Errors
/// As [`set_base_offset`].
pub fn set_log_append_time(batch: &mut [u8], timestamp: i64) -> Result<(), RecordError> {
    let batch = exact(batch)?;
    // The bit lies in the low byte.
    batch[ATTRIBUTES_AT + 1] |= LOG_APPEND_BIT as u8;
    put(batch, MAX_TIMESTAMP_AT, &timestamp.to_be_bytes());
    renew_crc(batch);
    Ok(())
}

/// Sets the producer's id, epoch and the first sequence number. Renews the checksum.
///
/// # Errors
/// As [`set_base_offset`].
pub fn set_producer(
    batch: &mut [u8],
    producer_id: i64,
    producer_epoch: i16,
    base_sequence: i32,
) -> Result<(), RecordError> {
    let batch = exact(batch)?;
    put(batch, PRODUCER_ID_AT, &producer_id.to_be_bytes());
    put(batch, PRODUCER_EPOCH_AT, &producer_epoch.to_be_bytes());
    put(batch, BASE_SEQUENCE_AT, &base_sequence.to_be_bytes());
    renew_crc(batch);
    Ok(())
}

fn exact(batch: &mut [u8]) -> Result<&mut [u8], RecordError> {
    let size = RecordBatchView::parse(batch)?.size();
    Ok(&mut batch[..size])
}

fn put(batch: &mut [u8], at: usize, value: &[u8]) {
    batch[at..at + value.len()].copy_from_slice(value);
}

fn renew_crc(batch: &mut [u8]) {
    let crc = crc32c::crc32c(&batch[ATTRIBUTES_AT..]);
    put(batch, CRC_AT, &crc.to_be_bytes());
}
