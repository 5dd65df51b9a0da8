//! Kafka wire primitives: readers and writers, tagged fields, frames, record batches, compression.
