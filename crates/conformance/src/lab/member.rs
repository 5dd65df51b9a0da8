//! A member of a share group, spoken for request by request.

use super::{Lab, SOON, Topic};
use crate::expect::{Check, fail, ok};
use kafka_share::net::{Cluster, CoordinatorKind, Purpose};
use kafka_share_messages::share_acknowledge_request as ack;
use kafka_share_messages::share_fetch_request as fetch;
use kafka_share_messages::txn_share_acknowledge_request as txn;
use kafka_share_messages::{
    ErrorCode, ShareAcknowledgeRequest, ShareAcknowledgeResponse, ShareFetchRequest, ShareFetchResponse,
    ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse, TxnShareAcknowledgeRequest, TxnShareAcknowledgeResponse,
};
use kafka_share_wire::{Str, Uuid};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// An acknowledgement batch: first and last offset, and the types.
pub(crate) type Ack<'a> = (i64, i64, &'a [i8]);

/// Who stages acknowledgements in which transaction.
#[derive(Debug, Clone)]
pub(crate) struct TxnAck {
    pub(crate) transactional_id: Str,
    pub(crate) producer_id: i64,
    pub(crate) producer_epoch: i16,
    pub(crate) member_epoch: i32,
}

/// A member. Each has connections of its own, because a share session lives on one connection.
#[derive(Debug)]
pub(crate) struct Member {
    lab: Lab,
    cluster: Arc<Cluster>,
    pub(crate) group: Str,
    pub(crate) id: Str,
    /// Member epoch; 0 before it joined.
    pub(crate) epoch: i32,
    /// Share session epoch of the next request; 0 before the session is open.
    pub(crate) session: i32,
}

/// A member id as Kafka's own client makes one.
pub(crate) fn random_id() -> Str {
    Str::from(Uuid::random().to_string())
}

impl Member {
    pub(super) fn new(lab: Lab, cluster: Arc<Cluster>, group: Str) -> Self {
        Member { lab, cluster, group, id: random_id(), epoch: 0, session: 0 }
    }

    /// Sends a heartbeat as given.
    pub(crate) async fn heartbeat(&self, epoch: i32, topics: Option<&[&Topic]>) -> Check<ShareGroupHeartbeatResponse> {
        let request = ShareGroupHeartbeatRequest {
            group_id: self.group.clone(),
            member_id: self.id.clone(),
            member_epoch: epoch,
            subscribed_topic_names: topics.map(|all| all.iter().map(|t| t.name.clone()).collect()),
            ..Default::default()
        };
        self.lab.coordinate(CoordinatorKind::Group, &self.group, &request, None, |r| r.error_code).await
    }

    /// Joins and waits until all partitions of the topic are assigned.
    pub(crate) async fn join(&mut self, topic: &Topic) -> Check {
        let mut response = self.heartbeat(0, Some(&[topic])).await?;
        let until = Instant::now() + SOON;
        loop {
            ok("ShareGroupHeartbeat", response.error_code)?;
            self.epoch = response.member_epoch;
            let assigned: usize =
                response.assignment.iter().flat_map(|a| &a.topic_partitions).map(|t| t.partitions.len()).sum();
            if assigned == topic.partitions as usize {
                return Ok(());
            }
            if Instant::now() > until {
                return fail(format!("{assigned} of {} partitions were assigned within {SOON:?}", topic.partitions));
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
            response = self.heartbeat(self.epoch, None).await?;
        }
    }

    /// A fetch of these partitions at the session's next epoch.
    pub(crate) fn fetch(&self, topic: &Topic, partitions: &[i32]) -> ShareFetchRequest {
        let row = |p: &i32| fetch::FetchPartition { partition_index: *p, ..Default::default() };
        let topics = fetch::FetchTopic {
            topic_id: topic.id,
            partitions: partitions.iter().map(row).collect(),
            ..Default::default()
        };
        ShareFetchRequest {
            group_id: Some(self.group.clone()),
            member_id: Some(self.id.clone()),
            share_session_epoch: self.session,
            max_wait_ms: 500,
            min_bytes: 1,
            max_bytes: 1 << 20,
            max_records: 500,
            batch_size: 500,
            topics: if partitions.is_empty() { Vec::new() } else { vec![topics] },
            ..Default::default()
        }
    }

    /// The same, carrying acknowledgements for partition 0.
    pub(crate) fn fetch_with(&self, topic: &Topic, acks: &[Ack<'_>]) -> ShareFetchRequest {
        let mut request = self.fetch(topic, &[0]);
        request.topics[0].partitions[0].acknowledgement_batches = acks
            .iter()
            .map(|(first_offset, last_offset, types)| fetch::AcknowledgementBatch {
                first_offset: *first_offset,
                last_offset: *last_offset,
                acknowledge_types: types.to_vec(),
                ..Default::default()
            })
            .collect();
        request
    }

    /// Sends a fetch. Where it was answered without a top-level error, the session's epoch moves on.
    pub(crate) async fn send_fetch(&mut self, topic: &Topic, request: &ShareFetchRequest) -> Check<ShareFetchResponse> {
        self.send_fetch_as(topic, request, None).await
    }

    /// As [`Member::send_fetch`], in a given version.
    pub(crate) async fn send_fetch_as(
        &mut self,
        topic: &Topic,
        request: &ShareFetchRequest,
        version: Option<i16>,
    ) -> Check<ShareFetchResponse> {
        let response = self.lab.call(&self.cluster, topic.node, Purpose::Fetch, request, version).await?;
        self.advance(response.error_code, request.share_session_epoch);
        Ok(response)
    }

    fn advance(&mut self, code: ErrorCode, sent: i32) {
        if code.is_ok() {
            self.session = if sent < 0 { 0 } else { sent + 1 };
        }
    }

    /// An acknowledge request for partition 0 at the session's next epoch.
    pub(crate) fn acknowledgement(&self, topic: &Topic, acks: &[Ack<'_>]) -> ShareAcknowledgeRequest {
        let batch = |(first_offset, last_offset, types): &Ack<'_>| ack::AcknowledgementBatch {
            first_offset: *first_offset,
            last_offset: *last_offset,
            acknowledge_types: types.to_vec(),
            ..Default::default()
        };
        let partition = ack::AcknowledgePartition {
            partition_index: 0,
            acknowledgement_batches: acks.iter().map(batch).collect(),
            ..Default::default()
        };
        let row = ack::AcknowledgeTopic { topic_id: topic.id, partitions: vec![partition], ..Default::default() };
        ShareAcknowledgeRequest {
            group_id: Some(self.group.clone()),
            member_id: Some(self.id.clone()),
            share_session_epoch: self.session,
            topics: vec![row],
            ..Default::default()
        }
    }

    /// Sends an acknowledge request.
    pub(crate) async fn send_acknowledgement(
        &mut self,
        topic: &Topic,
        request: &ShareAcknowledgeRequest,
    ) -> Check<ShareAcknowledgeResponse> {
        self.send_acknowledgement_as(topic, request, None).await
    }

    /// As [`Member::send_acknowledgement`], in a given version.
    pub(crate) async fn send_acknowledgement_as(
        &mut self,
        topic: &Topic,
        request: &ShareAcknowledgeRequest,
        version: Option<i16>,
    ) -> Check<ShareAcknowledgeResponse> {
        let response = self.lab.call(&self.cluster, topic.node, Purpose::Fetch, request, version).await?;
        self.advance(response.error_code, request.share_session_epoch);
        Ok(response)
    }

    /// Acknowledges in partition 0; answers that partition's code, or the code of the whole answer.
    pub(crate) async fn acknowledge(&mut self, topic: &Topic, acks: &[Ack<'_>]) -> Check<ErrorCode> {
        let request = self.acknowledgement(topic, acks);
        let response = self.send_acknowledgement(topic, &request).await?;
        if response.error_code.is_err() {
            return Ok(response.error_code);
        }
        match response.responses.iter().flat_map(|t| &t.partitions).next() {
            Some(partition) => Ok(partition.error_code),
            None => fail("ShareAcknowledge was answered without a row for the partition"),
        }
    }

    /// As [`Member::acknowledge`], and it must succeed.
    pub(crate) async fn acknowledge_ok(&mut self, topic: &Topic, acks: &[Ack<'_>]) -> Check {
        let code = self.acknowledge(topic, acks).await?;
        ok(&format!("acknowledging {acks:?}"), code)
    }

    /// Fetches until at least `want` offsets of partition 0 are acquired: offset and delivery count of each.
    pub(crate) async fn acquire(&mut self, topic: &Topic, want: usize) -> Check<Vec<(i64, i16)>> {
        let mut all = Vec::new();
        let until = Instant::now() + SOON;
        while all.len() < want {
            let request = self.fetch(topic, &[0]);
            let response = self.send_fetch(topic, &request).await?;
            ok("ShareFetch", response.error_code)?;
            all.extend(acquired(&response)?);
            if Instant::now() > until {
                return fail(format!("{} of {want} records were acquired within {SOON:?}: {all:?}", all.len()));
            }
        }
        Ok(all)
    }

    /// Acquires exactly these offsets with this delivery count.
    pub(crate) async fn acquire_exactly(&mut self, topic: &Topic, offsets: std::ops::Range<i64>, count: i16) -> Check {
        let want: Vec<(i64, i16)> = offsets.map(|o| (o, count)).collect();
        let got = self.acquire(topic, want.len()).await?;
        crate::expect::equal("acquired offsets and delivery counts", got, want)
    }

    /// Fetches once, for half a second, and must get nothing of partition 0.
    pub(crate) async fn acquire_nothing(&mut self, topic: &Topic, why: &str) -> Check {
        let request = self.fetch(topic, &[0]);
        let response = self.send_fetch(topic, &request).await?;
        ok("ShareFetch", response.error_code)?;
        let got = acquired(&response)?;
        crate::expect::that(got.is_empty(), || format!("{why}: nothing may be acquired, got {got:?}"))
    }

    /// Closes the share session.
    pub(crate) async fn close_session(&mut self, topic: &Topic) -> Check {
        let mut request = self.acknowledgement(topic, &[]);
        request.topics.clear();
        request.share_session_epoch = -1;
        let response = self.send_acknowledgement(topic, &request).await?;
        ok("closing the share session", response.error_code)
    }

    /// Drops the connections, as a process that dies does.
    pub(crate) fn vanish(self) {}

    /// Stages acknowledgements of partition 0 in a transaction (KIP-1289).
    pub(crate) async fn stage(&self, topic: &Topic, who: &TxnAck, acks: &[Ack<'_>]) -> Check<ErrorCode> {
        let batch = |(first_offset, last_offset, types): &Ack<'_>| txn::AcknowledgementBatch {
            first_offset: *first_offset,
            last_offset: *last_offset,
            acknowledge_types: types.to_vec(),
            ..Default::default()
        };
        let partition = txn::AcknowledgePartition {
            partition_index: 0,
            acknowledgement_batches: acks.iter().map(batch).collect(),
            ..Default::default()
        };
        let request = TxnShareAcknowledgeRequest {
            transactional_id: Some(who.transactional_id.clone()),
            group_id: self.group.clone(),
            producer_id: who.producer_id,
            producer_epoch: who.producer_epoch,
            member_id: self.id.clone(),
            member_epoch: who.member_epoch,
            topics: vec![txn::AcknowledgeTopic {
                topic_id: topic.id,
                partitions: vec![partition],
                ..Default::default()
            }],
            ..Default::default()
        };
        let response: TxnShareAcknowledgeResponse =
            self.lab.call(&self.cluster, topic.node, Purpose::Coordination, &request, None).await?;
        if response.error_code.is_err() {
            return Ok(response.error_code);
        }
        match response.responses.iter().flat_map(|t| &t.partitions).next() {
            Some(partition) => Ok(partition.error_code),
            None => fail("TxnShareAcknowledge was answered without a row for the partition"),
        }
    }
}

/// Acquired offsets with their delivery counts; errors of a partition that pass by themselves count as nothing.
pub(crate) fn acquired(response: &ShareFetchResponse) -> Check<Vec<(i64, i16)>> {
    let mut all = Vec::new();
    for partition in response.responses.iter().flat_map(|t| &t.partitions) {
        if partition.error_code.is_err() && !partition.error_code.is_retriable() {
            return fail(format!("ShareFetch, partition {}: {}", partition.partition_index, partition.error_code));
        }
        for range in &partition.acquired_records {
            crate::expect::that(range.first_offset <= range.last_offset, || format!("acquired range {range:?}"))?;
            all.extend((range.first_offset..=range.last_offset).map(|o| (o, range.delivery_count)));
        }
    }
    Ok(all)
}
