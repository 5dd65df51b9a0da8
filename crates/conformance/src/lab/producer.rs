//! A producer spoken for request by request: plain, idempotent, transactional.

use super::{Lab, SOON, Topic};
use crate::expect::{Check, Stop, fail, ok};
use bytes::Bytes;
use kafka_share::net::{Cluster, CoordinatorKind, Purpose};
use kafka_share_messages::add_partitions_to_txn_request::AddPartitionsToTxnTopic;
use kafka_share_messages::produce_request::{PartitionProduceData, TopicProduceData};
use kafka_share_messages::{
    AddPartitionsToTxnRequest, AddPartitionsToTxnResponse, EndTxnRequest, EndTxnResponse, ErrorCode,
    InitProducerIdRequest, InitProducerIdResponse, ProduceRequest,
};
use kafka_share_wire::Str;
use kafka_share_wire::records::{BatchBuilder, BatchOptions, Header, NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Highest Produce version that does not enrol partitions in the transaction by itself.
const LAST_TV1_PRODUCE: i16 = 11;
/// Highest EndTxn version without the epoch bump of transaction.version 2.
const LAST_TV1_END_TXN: i16 = 4;

/// A producer.
#[derive(Debug, Clone)]
pub(crate) struct Producer {
    lab: Lab,
    cluster: Arc<Cluster>,
    pub(crate) transactional_id: Option<Str>,
    pub(crate) id: i64,
    pub(crate) epoch: i16,
    /// Whether the cluster runs transaction.version 2.
    pub(crate) tv2: bool,
}

impl Producer {
    /// Without idempotence.
    pub(crate) async fn plain(lab: &Lab) -> Check<Self> {
        Ok(Producer {
            lab: lab.clone(),
            cluster: Arc::clone(lab.cluster()),
            transactional_id: None,
            id: NO_PRODUCER_ID,
            epoch: NO_PRODUCER_EPOCH,
            tv2: lab.feature("transaction.version").await? >= 2,
        })
    }

    /// Idempotent, with a producer id of its own.
    pub(crate) async fn idempotent(lab: &Lab) -> Check<Self> {
        let mut this = Self::plain(lab).await?;
        let request =
            InitProducerIdRequest { transactional_id: None, transaction_timeout_ms: 60_000, ..Default::default() };
        let patience = Patience::new();
        loop {
            let response = this.cluster.call_any(&request, lab.deadline()).await?;
            if !patience.again(response.error_code).await {
                ok("InitProducerId", response.error_code)?;
                (this.id, this.epoch) = (response.producer_id, response.producer_epoch);
                return Ok(this);
            }
        }
    }

    /// Transactional, with a transactional id of its own.
    pub(crate) async fn transactional(lab: &Lab) -> Check<Self> {
        Self::with_id(lab, &Str::from(lab.name("x"))).await
    }

    /// Transactional, with a given transactional id.
    pub(crate) async fn with_id(lab: &Lab, id: &Str) -> Check<Self> {
        let mut this = Self::plain(lab).await?;
        this.transactional_id = Some(id.clone());
        let response = this.init(60_000).await?;
        ok("InitProducerId", response.error_code)?;
        (this.id, this.epoch) = (response.producer_id, response.producer_epoch);
        Ok(this)
    }

    /// Sends InitProducerId; waits while an earlier transaction completes.
    pub(crate) async fn init(&self, timeout_ms: i32) -> Check<InitProducerIdResponse> {
        let request = InitProducerIdRequest {
            transactional_id: self.transactional_id.clone(),
            transaction_timeout_ms: timeout_ms,
            ..Default::default()
        };
        let key = self.key()?;
        let patience = Patience::new();
        loop {
            let code = |r: &InitProducerIdResponse| r.error_code;
            let response = self.lab.coordinate(CoordinatorKind::Transaction, &key, &request, None, code).await?;
            if !patience.again(response.error_code).await {
                return Ok(response);
            }
        }
    }

    fn key(&self) -> Check<Str> {
        self.transactional_id.clone().ok_or_else(|| Stop::Failed("the producer has no transactional id".into()))
    }

    /// One batch of `count` records, the first with sequence number `sequence`.
    pub(crate) fn batch(&self, sequence: i32, count: usize) -> Check<Bytes> {
        self.batch_with(sequence, count, |_| {})
    }

    /// As [`Producer::batch`], with other options.
    pub(crate) fn batch_with(
        &self,
        sequence: i32,
        count: usize,
        change: impl FnOnce(&mut BatchOptions),
    ) -> Check<Bytes> {
        let mut options = self.options(sequence);
        change(&mut options);
        let mut builder = BatchBuilder::new(options);
        let now = std::time::UNIX_EPOCH.elapsed().map_or(0, |t| t.as_millis() as i64);
        let built = (0..count)
            .try_for_each(|i| {
                let value = format!("record {}", i64::from(sequence) + i as i64);
                builder.append(now, None, Some(value.as_bytes()), []).map(drop)
            })
            .and_then(|()| builder.finish());
        built.map(bytes::BytesMut::freeze).map_err(|e| Stop::Failed(e.to_string()))
    }

    /// A batch of one record.
    pub(crate) fn single(
        &self,
        timestamp: i64,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: &[Header<'_>],
    ) -> Check<Bytes> {
        let mut builder = BatchBuilder::new(self.options(0));
        let built = builder.append(timestamp, key, value, headers.iter().copied()).and_then(|_| builder.finish());
        built.map(bytes::BytesMut::freeze).map_err(|e| Stop::Failed(e.to_string()))
    }

    fn options(&self, sequence: i32) -> BatchOptions {
        BatchOptions {
            producer_id: self.id,
            producer_epoch: self.epoch,
            base_sequence: if self.id == NO_PRODUCER_ID { NO_SEQUENCE } else { sequence },
            transactional: self.transactional_id.is_some(),
            ..BatchOptions::default()
        }
    }

    /// Sends a batch; answers the partition's code and base offset.
    pub(crate) async fn send(&self, topic: &Topic, partition: i32, records: Bytes) -> Check<(ErrorCode, i64)> {
        if self.transactional_id.is_some() && !self.tv2 {
            ok("AddPartitionsToTxn", self.add_partition(topic, partition).await?)?;
        }
        let version = if self.transactional_id.is_some() && !self.tv2 { Some(LAST_TV1_PRODUCE) } else { None };
        self.send_as(topic, partition, records, version).await
    }

    /// As [`Producer::send`], in a given version, without enrolling the partition first.
    pub(crate) async fn send_as(
        &self,
        topic: &Topic,
        partition: i32,
        records: Bytes,
        version: Option<i16>,
    ) -> Check<(ErrorCode, i64)> {
        let row = PartitionProduceData { index: partition, records: Some(records), ..Default::default() };
        let data = TopicProduceData {
            name: topic.name.clone(),
            topic_id: topic.id,
            partition_data: vec![row],
            ..Default::default()
        };
        let request = ProduceRequest {
            transactional_id: self.transactional_id.clone(),
            acks: -1,
            timeout_ms: 10_000,
            topic_data: vec![data],
            ..Default::default()
        };
        let patience = Patience::new();
        loop {
            let response = self.lab.call(&self.cluster, topic.node, Purpose::Produce, &request, version).await?;
            let row = response.responses.iter().flat_map(|t| &t.partition_responses).next();
            let Some(row) = row else { return fail("Produce was answered without a row for the partition") };
            if !patience.again(row.error_code).await {
                return Ok((row.error_code, row.base_offset));
            }
        }
    }

    /// Sends `count` records in one batch, which must succeed; answers its base offset.
    pub(crate) async fn produce(&self, topic: &Topic, partition: i32, count: usize) -> Check<i64> {
        self.produce_from(topic, partition, 0, count).await
    }

    /// As [`Producer::produce`], from a sequence number on.
    pub(crate) async fn produce_from(&self, topic: &Topic, partition: i32, sequence: i32, count: usize) -> Check<i64> {
        let (code, offset) = self.send(topic, partition, self.batch(sequence, count)?).await?;
        ok("Produce", code)?;
        Ok(offset)
    }

    /// Enrols a partition in the transaction, as clients of transaction.version 1 must.
    pub(crate) async fn add_partition(&self, topic: &Topic, partition: i32) -> Check<ErrorCode> {
        let row =
            AddPartitionsToTxnTopic { name: topic.name.clone(), partitions: vec![partition], ..Default::default() };
        let request = AddPartitionsToTxnRequest {
            v3_and_below_transactional_id: self.key()?,
            v3_and_below_producer_id: self.id,
            v3_and_below_producer_epoch: self.epoch,
            v3_and_below_topics: vec![row],
            ..Default::default()
        };
        let key = self.key()?;
        let patience = Patience::new();
        loop {
            let code = |r: &AddPartitionsToTxnResponse| {
                let rows = r.results_by_topic_v3_and_below.iter().flat_map(|t| &t.results_by_partition);
                rows.map(|p| p.partition_error_code).find(|c| c.is_err()).unwrap_or_default()
            };
            let response = self.lab.coordinate(CoordinatorKind::Transaction, &key, &request, Some(3), code).await?;
            if !patience.again(code(&response)).await {
                return Ok(code(&response));
            }
        }
    }

    /// Sends EndTxn in the version that goes with the cluster's transaction.version.
    pub(crate) async fn send_end(&self, committed: bool) -> Check<EndTxnResponse> {
        let key = self.key()?;
        let request = EndTxnRequest {
            transactional_id: key.clone(),
            producer_id: self.id,
            producer_epoch: self.epoch,
            committed,
            ..Default::default()
        };
        let version = if self.tv2 { None } else { Some(LAST_TV1_END_TXN) };
        let patience = Patience::new();
        loop {
            let code = |r: &EndTxnResponse| r.error_code;
            let response = self.lab.coordinate(CoordinatorKind::Transaction, &key, &request, version, code).await?;
            if !patience.again(response.error_code).await {
                return Ok(response);
            }
        }
    }

    /// Ends the transaction, which must succeed, and takes over the id and epoch of the answer.
    pub(crate) async fn end(&mut self, committed: bool) -> Check {
        let response = self.send_end(committed).await?;
        ok("EndTxn", response.error_code)?;
        if self.tv2 {
            (self.id, self.epoch) = (response.producer_id, response.producer_epoch);
        }
        Ok(())
    }
}

/// Asking again while the coordinator is busy with an earlier transaction.
struct Patience(Instant);

impl Patience {
    fn new() -> Self {
        Patience(Instant::now() + SOON)
    }

    /// Whether to ask again after this code; then a pause has gone by.
    async fn again(&self, code: ErrorCode) -> bool {
        let busy = matches!(code, ErrorCode::CONCURRENT_TRANSACTIONS | ErrorCode::COORDINATOR_LOAD_IN_PROGRESS);
        if !busy || Instant::now() > self.0 {
            return false;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
        true
    }
}
