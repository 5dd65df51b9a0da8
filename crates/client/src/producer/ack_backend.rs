//! How acknowledgements get into a transaction. Native (KIP-1289 draft): to the leaders of the source partitions.

use super::ledger_backend::{Commit, SealError};
use crate::acknowledgements::{
    ShareAcknowledgementBatch, ShareAcknowledgements, ShareGroupMetadata, TopicIdPartition, TransactionEnd,
};
use crate::ledger::{LedgerMember, LedgerPart};
use crate::net::{Cluster, CoordinatorKind, Purpose};
use crate::{Error, ErrorKind, Result};
use kafka_share_core::ApiVersions;
use kafka_share_core::transaction::ProducerIdentity;
use kafka_share_messages::add_share_acks_to_txn_request::AddShareAcksToTxnTopic;
use kafka_share_messages::txn_share_acknowledge_request::{
    AcknowledgePartition, AcknowledgeTopic, AcknowledgementBatch,
};
use kafka_share_messages::{
    AddShareAcksToTxnRequest, ApiKey, ErrorCode, Message, TxnShareAcknowledgeRequest, TxnShareAcknowledgeResponse,
};
use kafka_share_wire::{Str, Uuid};
use std::collections::{BTreeMap, BTreeSet};
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// Level of the feature `share.version` from which share groups take part in transactions.
const SHARE_VERSION: i16 = 3;
/// Brokers that answer records within this do not wait for replicas.
const AT_ONCE: Duration = Duration::from_micros(500);

/// The transaction that acknowledgements are staged in.
#[derive(Debug, Clone)]
pub(super) struct Staging {
    pub(super) transactional_id: Str,
    pub(super) identity: ProducerIdentity,
    /// transaction.version 2 or later.
    pub(super) v2: bool,
    pub(super) member: ShareGroupMetadata,
    /// Whose records they are; given by [`AckBackend::adopt`].
    pub(super) parts: Vec<LedgerPart>,
}

/// Refusals by share-partition; empty where all is staged.
pub(super) type Refusals = BTreeMap<TopicIdPartition, Error>;

pub(super) type Boxed<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A way for acknowledgements into a transaction.
pub(super) trait AckBackend: std::fmt::Debug + Send + Sync {
    /// Checks that the cluster offers it; sends nothing that changes anything.
    fn check<'a>(&'a self, v2: bool, deadline: Instant) -> Boxed<'a, Result<()>>;

    /// Checks that these can be staged, and finds out whose records they are. Nothing was staged after an error.
    fn adopt(&self, _acks: &mut ShareAcknowledgements, _member: &ShareGroupMetadata) -> Result<Vec<LedgerPart>> {
        Ok(Vec::new())
    }

    /// Stages them. After any error or refusal the transaction can only be aborted.
    fn stage<'a>(
        &'a self,
        staging: &'a Staging,
        acks: &'a ShareAcknowledgements,
        deadline: Instant,
    ) -> Boxed<'a, Result<Refusals>>;

    /// Whether they are written to the ledger, so that other members may end the transaction.
    fn is_ledger(&self) -> bool {
        false
    }

    /// Whether they are with brokers before the transaction's end, and take effect there with it.
    fn is_native(&self) -> bool {
        true
    }

    /// Whether nothing of the transaction can have been committed, as it was not sealed.
    fn is_unsealed(&self) -> bool {
        false
    }

    /// All is staged, and the transaction is about to be committed or prepared. After an error it can only be aborted.
    fn seal<'a>(&'a self, _commit: &'a Commit, _deadline: Instant) -> Boxed<'a, std::result::Result<(), SealError>> {
        Box::pin(async { Ok(()) })
    }

    /// Whether the sealed transaction was committed, where the coordinator has not told: it was ended, however. `None` where
    /// the backend cannot know.
    fn verdict<'a>(&'a self, _deadline: Instant) -> Boxed<'a, Result<Option<bool>>> {
        Box::pin(async { Ok(None) })
    }

    /// Whether [`AckBackend::verdict`] will know.
    fn knows_verdict(&self) -> bool {
        false
    }

    /// Nobody asks for the verdict any more, and the transaction is forgotten here. Where it can be known, it is what this
    /// comes to, until `deadline`.
    fn follow(&self, _deadline: Instant) -> Option<Boxed<'static, Option<bool>>> {
        None
    }

    /// The transaction has ended; told before the givers of the acknowledgements are.
    fn ended(&self, _end: TransactionEnd) {}
}

/// What is acknowledged must be of the group that it is acknowledged for: else the intent would go to the ledger partition of
/// another group, or tell of records that the named group has not done.
pub(super) fn check_group<'a>(
    members: impl Iterator<Item = &'a Arc<dyn LedgerMember>>,
    metadata: &ShareGroupMetadata,
) -> Result<()> {
    match members.map(|member| member.group()).find(|group| *group != metadata.group_id()) {
        None => Ok(()),
        Some(other) => {
            let text = format!(
                "the acknowledgements are of a consumer of share group {other:?}, and the metadata given with them is of {:?}: pass \
                 share_group_metadata() of the same consumer",
                metadata.group_id()
            );
            Err(Error::new(ErrorKind::InvalidInput, text))
        }
    }
}

/// Whether a cluster with these versions and features takes acknowledgements into transactions (KIP-1289, at the API
/// key of its newest draft).
#[must_use]
pub fn transactional_acknowledgements_offered(versions: &ApiVersions) -> bool {
    offered(versions, ApiKey::TXN_SHARE_ACKNOWLEDGE)
}

fn offered(versions: &ApiVersions, key: ApiKey) -> bool {
    versions.feature("share.version") >= SHARE_VERSION && versions.pick_as::<TxnShareAcknowledgeRequest>(key).is_ok()
}

/// TxnShareAcknowledge, under a configured key.
#[derive(Debug)]
pub(super) struct NativeBackend {
    cluster: Arc<Cluster>,
    key: ApiKey,
}

/// In the order of share-partitions.
type Parts = Vec<(TopicIdPartition, Vec<AcknowledgementBatch>)>;

impl NativeBackend {
    pub(super) fn new(cluster: Arc<Cluster>, key: i16) -> Self {
        NativeBackend { cluster, key: ApiKey(key) }
    }

    async fn check_now(&self, v2: bool, deadline: Instant) -> Result<()> {
        let versions = self.cluster.features(deadline).await?;
        if !offered(&versions, self.key) {
            let text = format!(
                "this cluster has no transactional acknowledgements: it needs feature share.version {SHARE_VERSION} \
                 (it has {}) and API key {} (KIP-1289, in no released Kafka); use the ledger \
                 (share.ack.transaction.backend=ledger) or acknowledge after the commit instead",
                versions.feature("share.version"),
                self.key.0
            );
            return Err(Error::new(ErrorKind::Unsupported, text));
        }
        if !v2 && versions.pick::<AddShareAcksToTxnRequest>().is_err() {
            let text = "this cluster runs transaction.version 1 and has no AddShareAcksToTxn (API key 96)";
            return Err(Error::new(ErrorKind::Unsupported, text));
        }
        Ok(())
    }

    async fn stage_now(&self, staging: &Staging, acks: &ShareAcknowledgements, deadline: Instant) -> Result<Refusals> {
        if !staging.v2 {
            Box::pin(self.enrol(staging, acks, deadline)).await?;
        }
        let mut refusals = self.round(staging, parts(acks, |_| true), deadline).await?;
        // A leader that had moved did not act; its part goes to the new one, once.
        let again: BTreeSet<TopicIdPartition> = refusals.iter().filter(|(_, e)| moved(e)).map(|(tp, _)| *tp).collect();
        if !again.is_empty() {
            Box::pin(self.forget_leaders(again.iter(), deadline)).await?;
            refusals.retain(|tp, _| !again.contains(tp));
            let round = self.round(staging, parts(acks, |tp| again.contains(&tp)), deadline);
            refusals.extend(Box::pin(round).await?);
        }
        Ok(refusals)
    }

    /// Names the share-partitions to the transaction coordinator, which adds the state partitions behind them.
    async fn enrol(&self, staging: &Staging, acks: &ShareAcknowledgements, deadline: Instant) -> Result<()> {
        let mut topics: BTreeMap<Uuid, Vec<i32>> = BTreeMap::new();
        for tp in acks.partitions() {
            topics.entry(tp.topic_id).or_default().push(tp.partition);
        }
        let row = |(topic_id, partitions)| AddShareAcksToTxnTopic { topic_id, partitions, ..Default::default() };
        let request = AddShareAcksToTxnRequest {
            transactional_id: staging.transactional_id.clone(),
            producer_id: staging.identity.id,
            producer_epoch: staging.identity.epoch,
            group_id: Str::from(staging.member.group_id()),
            topics: topics.into_iter().map(row).collect(),
            ..AddShareAcksToTxnRequest::default()
        };
        let mut attempt = 0;
        loop {
            let (kind, key) = (CoordinatorKind::Transaction, staging.transactional_id.as_str());
            let result = self.cluster.call_coordinator(kind, key, &request, deadline, |r| r.error_code).await;
            let error = match result {
                Ok(response) if response.error_code.is_ok() => return Ok(()),
                Ok(response) => {
                    let detail = response.error_message.as_ref().map(|m| m.as_str());
                    Error::broker(response.error_code, "adding share acknowledgements to the transaction", detail)
                }
                Err(error) => error,
            };
            attempt += 1;
            // Adding twice is as adding once, so a lost answer does not matter.
            let again = error.is_retriable() || error.code() == Some(ErrorCode::CONCURRENT_TRANSACTIONS);
            if !again || !self.cluster.pause_before_retry(attempt, deadline).await {
                return Err(error);
            }
        }
    }

    /// Sends each leader its part, all at once.
    async fn round(&self, staging: &Staging, parts: Parts, deadline: Instant) -> Result<Refusals> {
        let unknown = |(tp, _): &&(TopicIdPartition, _)| self.cluster.leader(*tp).is_none();
        if parts.iter().any(|part| unknown(&part)) {
            Box::pin(self.forget_leaders(parts.iter().filter(unknown).map(|(tp, _)| tp), deadline)).await?;
        }
        let mut refusals = Refusals::new();
        let mut by_leader: BTreeMap<i32, Parts> = BTreeMap::new();
        for (tp, batches) in parts {
            match self.cluster.leader(tp) {
                Some(leader) => by_leader.entry(leader.id).or_default().push((tp, batches)),
                None => {
                    let what = self.place(&tp);
                    refusals.insert(tp, Error::broker(ErrorCode::LEADER_NOT_AVAILABLE, what, None));
                }
            }
        }
        let call = |(leader, parts): (i32, Parts)| {
            let partitions: Vec<TopicIdPartition> = parts.iter().map(|(tp, _)| *tp).collect();
            let request = request(staging, parts);
            let (cluster, api) = (Arc::clone(&self.cluster), (self.key, TxnShareAcknowledgeRequest::MAX_VERSION));
            async move {
                let mut attempt = 0;
                let result = loop {
                    let limit = cluster.request_deadline(deadline);
                    let result = call_leader(&cluster, leader, &request, api, limit).await;
                    // The transaction before is still being completed: nothing was staged.
                    let busy = result.as_ref().is_ok_and(|r| r.error_code == ErrorCode::CONCURRENT_TRANSACTIONS);
                    attempt += 1;
                    if !busy || !cluster.pause_before_retry(attempt, deadline).await {
                        break result;
                    }
                };
                (partitions, result)
            }
        };
        // One of them here: often there is no other.
        let here = by_leader.pop_first().map(&call);
        let mut calls: JoinSet<_> = by_leader.into_iter().map(call).collect();
        if let Some(here) = here {
            let (partitions, result) = here.await;
            refusals.extend(judge(&partitions, result, |tp| self.place(tp)));
        }
        while let Some(joined) = calls.join_next().await {
            let (partitions, result) =
                joined.map_err(|_| Error::new(ErrorKind::Closed, "the client's runtime is shutting down"))?;
            refusals.extend(judge(&partitions, result, |tp| self.place(tp)));
        }
        Ok(refusals)
    }

    /// What an error is about, with the topic's name where it is known.
    fn place(&self, tp: &TopicIdPartition) -> String {
        let topic = self.cluster.cached_topic_by_id(tp.topic_id);
        let name = topic.map_or_else(|| tp.topic_id.to_string(), |topic| topic.name.to_string());
        format!("staging acknowledgements of {name}-{}", tp.partition)
    }

    /// Asks for the leaders of partitions anew.
    async fn forget_leaders<'a>(
        &self,
        partitions: impl Iterator<Item = &'a TopicIdPartition>,
        deadline: Instant,
    ) -> Result<()> {
        let mut ids: Vec<Uuid> = partitions.map(|tp| tp.topic_id).collect();
        ids.dedup();
        self.cluster.refresh_topics_by_id(&ids, deadline).await
    }
}

impl AckBackend for NativeBackend {
    fn check<'a>(&'a self, v2: bool, deadline: Instant) -> Boxed<'a, Result<()>> {
        Box::pin(self.check_now(v2, deadline))
    }

    fn adopt(&self, acks: &mut ShareAcknowledgements, member: &ShareGroupMetadata) -> Result<Vec<LedgerPart>> {
        let parts = acks.origins().iter().filter_map(|origin| origin.ledger()).map(|part| part.member);
        let members: Vec<_> = parts.chain(member.member().cloned()).collect();
        check_group(members.iter(), member)?;
        if members.iter().any(|m| m.is_reading()) {
            // Whether others use the ledger alone is not known at this moment.
            let text =
                "the consumer reads its ledger from the start again: abort the transaction, its records come again";
            return Err(Error::new(ErrorKind::TransactionAborted, text));
        }
        if members.iter().any(|m| m.needs_intent() == Some(true)) {
            let text = format!(
                "the consumer reads the ledger of share group {:?}, of which members may use the ledger alone: they would not see \
                 what this producer acknowledges natively. Set share.ack.transaction.backend=both for the producer (or native for \
                 the consumer too, once `kshare ledger leave {}` has ended well)",
                member.group_id(),
                member.group_id()
            );
            return Err(Error::new(ErrorKind::Config, text));
        }
        Ok(Vec::new())
    }

    fn stage<'a>(
        &'a self,
        staging: &'a Staging,
        acks: &'a ShareAcknowledgements,
        deadline: Instant,
    ) -> Boxed<'a, Result<Refusals>> {
        Box::pin(self.stage_now(staging, acks, deadline))
    }
}

/// Whether the broker certainly did not act, and another may be the leader now.
fn moved(error: &Error) -> bool {
    match error.code() {
        Some(code) => matches!(
            code,
            ErrorCode::NOT_LEADER_OR_FOLLOWER | ErrorCode::UNKNOWN_TOPIC_OR_PARTITION | ErrorCode::LEADER_NOT_AVAILABLE
        ),
        None => matches!(error.kind(), ErrorKind::Connect | ErrorKind::Disconnected) && !error.maybe_done(),
    }
}

/// On the connection for records where the broker answers those at once: it reads, writes and wakes once for both then. Where
/// they wait for replicas they would hold this up, and it goes beside them.
async fn call_leader(
    cluster: &Cluster,
    leader: i32,
    request: &TxnShareAcknowledgeRequest,
    (api, cap): (ApiKey, i16),
    limit: Instant,
) -> Result<TxnShareAcknowledgeResponse> {
    let connection = match cluster.quick_connection(leader, Purpose::Produce, AT_ONCE) {
        Some(connection) => connection,
        None => cluster.connection(leader, Purpose::Coordination)?,
    };
    let version = connection.version::<TxnShareAcknowledgeRequest>(api, cap, limit).await?;
    connection.call_version(request, api, version, limit).await
}

/// Those of the acknowledgements that are `wanted`, as they go on the wire.
fn parts(acks: &ShareAcknowledgements, wanted: impl Fn(TopicIdPartition) -> bool) -> Parts {
    let batch = |batch: &ShareAcknowledgementBatch| AcknowledgementBatch {
        first_offset: batch.first_offset(),
        last_offset: batch.last_offset(),
        acknowledge_types: batch.types().iter().map(|t| t.code()).collect(),
        ..AcknowledgementBatch::default()
    };
    acks.partitions().filter(|tp| wanted(*tp)).map(|tp| (tp, acks.batches(tp).map(batch).collect())).collect()
}

fn request(staging: &Staging, parts: Parts) -> TxnShareAcknowledgeRequest {
    let mut topics: Vec<AcknowledgeTopic> = Vec::new();
    for (tp, acknowledgement_batches) in parts {
        let row = AcknowledgePartition {
            partition_index: tp.partition,
            acknowledgement_batches,
            ..AcknowledgePartition::default()
        };
        match topics.last_mut().filter(|topic| topic.topic_id == tp.topic_id) {
            Some(topic) => topic.partitions.push(row),
            None => topics.push(AcknowledgeTopic {
                topic_id: tp.topic_id,
                partitions: vec![row],
                ..AcknowledgeTopic::default()
            }),
        }
    }
    TxnShareAcknowledgeRequest {
        transactional_id: Some(staging.transactional_id.clone()),
        group_id: Str::from(staging.member.group_id()),
        producer_id: staging.identity.id,
        producer_epoch: staging.identity.epoch,
        member_id: Str::from(staging.member.member_id()),
        member_epoch: staging.member.member_epoch(),
        topics,
        ..TxnShareAcknowledgeRequest::default()
    }
}

fn judge(
    partitions: &[TopicIdPartition],
    result: Result<TxnShareAcknowledgeResponse>,
    place: impl Fn(&TopicIdPartition) -> String,
) -> Refusals {
    let response = match result {
        Ok(response) => response,
        Err(error) => return partitions.iter().map(|tp| (*tp, error.clone().context(place(tp)))).collect(),
    };
    if response.error_code.is_err() {
        let code = response.error_code;
        return partitions.iter().map(|tp| (*tp, Error::broker(code, place(tp), None))).collect();
    }
    let mut answers = BTreeMap::new();
    for topic in &response.responses {
        for p in &topic.partitions {
            let tp = TopicIdPartition { topic_id: topic.topic_id, partition: p.partition_index };
            answers.insert(tp, p);
        }
    }
    let refusal = |tp: &TopicIdPartition| match answers.get(tp) {
        Some(p) if p.error_code.is_ok() => None,
        Some(p) => {
            let detail = p.error_message.as_ref().map(|message| message.as_str());
            Some((*tp, Error::broker(p.error_code, place(tp), detail)))
        }
        None => {
            let text = format!("{}: the broker's answer leaves the partition out", place(tp));
            Some((*tp, Error::new(ErrorKind::Protocol, text).after_sending()))
        }
    };
    partitions.iter().filter_map(refusal).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use kafka_share_messages::ApiVersionsResponse;
    use kafka_share_messages::Request;
    use kafka_share_messages::api_versions_response::{ApiVersion, FinalizedFeatureKey};

    fn versions(share_version: i16, key: i16) -> ApiVersions {
        ApiVersions::from_response(&ApiVersionsResponse {
            api_keys: vec![ApiVersion { api_key: key, min_version: 0, max_version: 0, ..Default::default() }],
            finalized_features: vec![FinalizedFeatureKey {
                name: "share.version".into(),
                max_version_level: share_version,
                ..Default::default()
            }],
            ..Default::default()
        })
    }

    #[test]
    fn needs_both_feature_and_key() {
        assert!(transactional_acknowledgements_offered(&versions(3, 95)));
        // Keys 93 and 94 of older drafts are other APIs in Kafka 4.4.
        for (level, key) in [(2, 95), (3, 94), (3, 93), (0, 95)] {
            assert!(!transactional_acknowledgements_offered(&versions(level, key)), "{level} {key}");
        }
        assert_eq!(TxnShareAcknowledgeRequest::KEY, ApiKey(95));
    }

    #[test]
    fn r076_every_partition_has_its_own_verdict() {
        use kafka_share_messages::txn_share_acknowledge_response::{PartitionData, TxnShareAcknowledgeTopicResponse};
        let tp = |partition| TopicIdPartition { topic_id: Uuid([1; 16]), partition };
        let row = |partition_index, error_code| PartitionData { partition_index, error_code, ..Default::default() };
        let response = TxnShareAcknowledgeResponse {
            responses: vec![TxnShareAcknowledgeTopicResponse {
                topic_id: Uuid([1; 16]),
                partitions: vec![row(0, ErrorCode::NONE), row(1, ErrorCode::INVALID_RECORD_STATE)],
                ..Default::default()
            }],
            ..Default::default()
        };
        let refusals = judge(&[tp(0), tp(1), tp(2)], Ok(response), |tp| tp.partition.to_string());
        assert_eq!(refusals.keys().copied().collect::<Vec<_>>(), [tp(1), tp(2)]);
        assert_eq!(refusals[&tp(1)].code(), Some(ErrorCode::INVALID_RECORD_STATE));
    }
}
