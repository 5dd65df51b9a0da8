//! A produce request whose batches are yet to be compressed and checksummed, which is work to be done outside of the
//! machine's lock.

use super::types::{BatchId, Encoded, ProduceFailure, SentBatches};
use bytes::Bytes;
use kafka_share_messages::ProduceRequest;
use kafka_share_messages::produce_request::{PartitionProduceData, TopicProduceData};
use kafka_share_wire::records::{BatchBuilder, RecordError};
use kafka_share_wire::{Str, Uuid};

/// A produce request to be. It names topics by name and id.
#[derive(Debug)]
pub struct ProduceDraft {
    pub(super) transactional_id: Option<Str>,
    pub(super) timeout_ms: i32,
    pub(super) topics: Vec<(Str, Uuid, Vec<Row>)>,
    pub(super) sent: SentBatches,
}

/// A batch of it.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) index: i32,
    pub(super) at: usize,
    pub(super) id: BatchId,
    pub(super) batch: Batch,
}

#[derive(Debug)]
pub(super) enum Batch {
    Collected(Box<BatchBuilder>),
    Encoded(Bytes),
}

impl Batch {
    /// Bytes, before compression where it is yet to be done.
    pub(super) fn size(&self) -> usize {
        match self {
            Batch::Collected(builder) => builder.size(),
            Batch::Encoded(bytes) => bytes.len(),
        }
    }
}

impl ProduceDraft {
    /// Compresses and checksums what is collected. Gives the request, what is in it, and what goes to
    /// [`Producer::handle_encoded`](super::Producer::handle_encoded) before the request is sent.
    ///
    /// # Errors
    /// A batch that cannot be encoded; to be handed to `handle_produced`.
    pub fn encode(self) -> Result<(ProduceRequest, SentBatches, Vec<Encoded>), ProduceFailure> {
        let (mut sent, mut fresh) = (self.sent, Vec::with_capacity(self.sent.batches));
        let mut topic_data = Vec::with_capacity(self.topics.len());
        for (name, topic_id, rows) in self.topics {
            let mut partition_data = Vec::with_capacity(rows.len());
            for Row { index, at, id, batch } in rows {
                let bytes = match batch {
                    Batch::Encoded(bytes) => bytes,
                    Batch::Collected(builder) => {
                        let bytes = builder.finish().map_err(|error| unencodable(&error))?.freeze();
                        fresh.push(Encoded { at, id, bytes: bytes.clone() });
                        bytes
                    }
                };
                sent.bytes += bytes.len();
                sent.largest = sent.largest.max(bytes.len());
                partition_data.push(PartitionProduceData { index, records: Some(bytes), ..Default::default() });
            }
            topic_data.push(TopicProduceData { name, topic_id, partition_data, ..TopicProduceData::default() });
        }
        let body = ProduceRequest {
            transactional_id: self.transactional_id,
            acks: -1,
            timeout_ms: self.timeout_ms,
            topic_data,
            ..ProduceRequest::default()
        };
        Ok((body, sent, fresh))
    }
}

fn unencodable(error: &RecordError) -> ProduceFailure {
    ProduceFailure { maybe_done: false, fatal: true, text: format!("the batch cannot be encoded: {error}") }
}
