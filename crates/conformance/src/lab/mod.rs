//! What a case works with: topics, groups, members and producers of its own, and a transcript of all that is said.

mod configs;
mod member;
mod offsets;
mod producer;
mod reader;
mod transcript;

pub(crate) use member::{Ack, Member, TxnAck, acquired};
pub(crate) use producer::Producer;
pub(crate) use transcript::Transcript;

use crate::expect::{Check, Stop, fail, ok};
use kafka_share::ClientConfig;
use kafka_share::net::{Cluster, CoordinatorKind, Purpose};
use kafka_share_messages::create_topics_request::{
    CreatableReplicaAssignment, CreatableTopic, CreatableTopicConfig, CreateTopicsRequest,
};
use kafka_share_messages::delete_topics_request::{DeleteTopicState, DeleteTopicsRequest};
use kafka_share_messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
use kafka_share_messages::{DeleteGroupsRequest, ErrorCode, ListOffsetsRequest, Request, ShareGroupHeartbeatRequest};
use kafka_share_wire::{Str, Uuid};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Time for one request.
const REQUEST: Duration = Duration::from_secs(15);
/// Time within which a cluster must come to do what it was told.
pub(crate) const SOON: Duration = Duration::from_secs(20);

/// A topic of a case. All its partitions are led by one broker, so that one share session serves them.
#[derive(Debug, Clone)]
pub(crate) struct Topic {
    pub(crate) name: Str,
    pub(crate) id: Uuid,
    pub(crate) node: i32,
    pub(crate) partitions: i32,
}

/// The surroundings of one case; clones share them.
#[derive(Debug, Clone)]
pub(crate) struct Lab(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    config: ClientConfig,
    cluster: Arc<Cluster>,
    prefix: String,
    next: AtomicU32,
    transcript: Mutex<Transcript>,
    made: Mutex<Made>,
}

#[derive(Debug, Default)]
struct Made {
    topics: Vec<Topic>,
    groups: Vec<Str>,
    members: Vec<(Str, Str)>,
    /// Groups and the names of settings that they were given.
    settings: Vec<(Str, Str)>,
}

impl Lab {
    pub(crate) fn new(config: ClientConfig, cluster: Arc<Cluster>, prefix: String) -> Self {
        Lab(Arc::new(Inner {
            config,
            cluster,
            prefix,
            next: AtomicU32::new(1),
            transcript: Mutex::default(),
            made: Mutex::default(),
        }))
    }

    /// A name that nobody else uses.
    pub(crate) fn name(&self, kind: &str) -> String {
        format!("{}-{kind}{}", self.0.prefix, self.0.next.fetch_add(1, Ordering::Relaxed))
    }

    /// The name that the next topic will have.
    pub(crate) fn upcoming(&self) -> String {
        format!("{}-t{}", self.0.prefix, self.0.next.load(Ordering::Relaxed))
    }

    /// Connections that are shared within the case.
    pub(crate) fn cluster(&self) -> &Arc<Cluster> {
        &self.0.cluster
    }

    /// Connections of their own: a share session lives on one connection.
    pub(crate) async fn own_cluster(&self) -> Check<Arc<Cluster>> {
        let cluster = Cluster::new(self.0.config.clone())?;
        cluster.features(self.deadline()).await?;
        Ok(cluster)
    }

    pub(crate) fn deadline(&self) -> Instant {
        Instant::now() + REQUEST
    }

    /// Some broker of the cluster.
    pub(crate) async fn any_node(&self) -> Check<i32> {
        self.cluster().features(self.deadline()).await?;
        self.cluster().node_ids().first().copied().map_or_else(|| fail("the cluster names no broker"), Ok)
    }

    /// Finalised level of a feature.
    pub(crate) async fn feature(&self, name: &str) -> Check<i16> {
        Ok(self.cluster().features(self.deadline()).await?.feature(name))
    }

    pub(crate) fn note(&self, text: impl Into<String>) {
        self.0.transcript.lock().unwrap_or_else(PoisonError::into_inner).note(text.into());
    }

    pub(crate) fn transcript(&self) -> Vec<String> {
        self.0.transcript.lock().unwrap_or_else(PoisonError::into_inner).lines()
    }

    fn made<T>(&self, with: impl FnOnce(&mut Made) -> T) -> T {
        with(&mut self.0.made.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Sends a request to a broker and writes both sides down. Without a version: the highest common one.
    pub(crate) async fn call<R: Request + std::fmt::Debug>(
        &self,
        cluster: &Cluster,
        node: i32,
        purpose: Purpose,
        request: &R,
        version: Option<i16>,
    ) -> Check<R::Response>
    where
        R::Response: std::fmt::Debug,
    {
        let deadline = self.deadline();
        let connection = cluster.connection(node, purpose)?;
        let versions = connection.ready(deadline).await?;
        let version = match version {
            Some(version) => version,
            None => versions.pick::<R>().map_err(|e| Stop::NotSupported(e.to_string()))?,
        };
        self.note(format!("-> broker {node}, v{version}: {request:?}"));
        match connection.call_version(request, R::KEY, version, deadline).await {
            Ok(response) => {
                self.note(format!("<- {response:?}"));
                Ok(response)
            }
            Err(error) => {
                self.note(format!("<- no answer: {error}"));
                Err(error.into())
            }
        }
    }

    /// Sends a request to the coordinator of `key`, following it where it moves.
    pub(crate) async fn coordinate<R: Request + std::fmt::Debug>(
        &self,
        kind: CoordinatorKind,
        key: &str,
        request: &R,
        version: Option<i16>,
        code_of: impl Fn(&R::Response) -> ErrorCode,
    ) -> Check<R::Response>
    where
        R::Response: std::fmt::Debug,
    {
        let until = self.deadline();
        loop {
            let node = self.cluster().coordinator(kind, key, until).await?;
            let response = self.call(self.cluster(), node, Purpose::Coordination, request, version).await?;
            let moved = matches!(
                code_of(&response),
                ErrorCode::NOT_COORDINATOR
                    | ErrorCode::COORDINATOR_NOT_AVAILABLE
                    | ErrorCode::COORDINATOR_LOAD_IN_PROGRESS
            );
            if !moved || Instant::now() > until {
                return Ok(response);
            }
            self.cluster().forget_coordinator(kind, key);
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Creates a topic with all partitions on one broker.
    pub(crate) async fn topic(&self, partitions: i32) -> Check<Topic> {
        self.topic_named(&self.name("t"), partitions, &[]).await
    }

    /// As [`Lab::topic`], of a given name and with settings.
    pub(crate) async fn topic_named(&self, name: &str, partitions: i32, more: &[(&str, &str)]) -> Check<Topic> {
        let cluster = self.cluster();
        let node = self.any_node().await?;
        let name = Str::from(name);
        let assign = |partition_index| CreatableReplicaAssignment {
            partition_index,
            broker_ids: vec![node],
            ..Default::default()
        };
        let config = |(name, value): &(&str, &str)| CreatableTopicConfig {
            name: Str::from(*name),
            value: Some(Str::from(*value)),
            ..Default::default()
        };
        let row = CreatableTopic {
            name: name.clone(),
            num_partitions: -1,
            replication_factor: -1,
            assignments: (0..partitions).map(assign).collect(),
            configs: [("min.insync.replicas", "1")].iter().chain(more).map(config).collect(),
            ..Default::default()
        };
        let request = CreateTopicsRequest { topics: vec![row], timeout_ms: 10_000, ..Default::default() };
        self.note(format!("create topic {name} with {partitions} partitions on broker {node}"));
        let response = cluster.call_any(&request, self.deadline()).await?;
        for topic in &response.topics {
            ok(&format!("CreateTopics {name}"), topic.error_code)?;
        }
        let topic = cluster.topic(&name, false, Instant::now() + SOON).await?;
        let topic = Topic { name, id: topic.id, node, partitions };
        self.made(|made| made.topics.push(topic.clone()));
        self.leader_is_ready(&topic).await?;
        Ok(topic)
    }

    /// Metadata names a leader a little before that broker knows of it.
    async fn leader_is_ready(&self, topic: &Topic) -> Check {
        let row = |partition_index| ListOffsetsPartition { partition_index, timestamp: -1, ..Default::default() };
        let row = ListOffsetsTopic {
            name: topic.name.clone(),
            partitions: (0..topic.partitions).map(row).collect(),
            ..Default::default()
        };
        let request = ListOffsetsRequest { replica_id: -1, topics: vec![row], ..Default::default() };
        let until = Instant::now() + SOON;
        loop {
            let response =
                self.cluster().call_node(topic.node, Purpose::Coordination, &request, self.deadline()).await?;
            let rows = response.topics.iter().flat_map(|t| &t.partitions);
            let Some(code) = rows.map(|p| p.error_code).find(|c| c.is_err()) else { return Ok(()) };
            if !code.is_retriable() || Instant::now() > until {
                return fail(format!("ListOffsets of the new topic {}: {code}", topic.name));
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// A group id whose group starts at the earliest offset, with further configs.
    pub(crate) async fn group(&self, configs: &[(&str, &str)]) -> Check<Str> {
        let mut all = vec![("share.auto.offset.reset", "earliest")];
        all.extend_from_slice(configs);
        let group = self.plain_group();
        self.set_group_configs(&group, &all).await?;
        Ok(group)
    }

    /// A group id of which nothing is configured.
    pub(crate) fn plain_group(&self) -> Str {
        let group = Str::from(self.name("g"));
        self.made(|made| made.groups.push(group.clone()));
        group
    }

    /// A member of a group; it has not joined yet.
    pub(crate) async fn member(&self, group: &Str) -> Check<Member> {
        let member = Member::new(self.clone(), self.own_cluster().await?, group.clone());
        self.made(|made| made.members.push((group.clone(), member.id.clone())));
        Ok(member)
    }

    /// The usual start: a topic of one partition with `records` records in one batch, and a member that has it.
    pub(crate) async fn with_records(&self, records: usize) -> Check<(Topic, Member)> {
        self.with_records_and(records, &[]).await
    }

    /// As [`Lab::with_records`], with group configs.
    pub(crate) async fn with_records_and(&self, records: usize, configs: &[(&str, &str)]) -> Check<(Topic, Member)> {
        let topic = self.topic(1).await?;
        let group = self.group(configs).await?;
        if records > 0 {
            Producer::plain(self).await?.produce(&topic, 0, records).await?;
        }
        let mut member = self.member(&group).await?;
        member.join(&topic).await?;
        Ok((topic, member))
    }

    /// Another member of the same group, joined.
    pub(crate) async fn another(&self, member: &Member, topic: &Topic) -> Check<Member> {
        let mut other = self.member(&member.group).await?;
        other.join(topic).await?;
        Ok(other)
    }

    /// Removes what the case has made. What cannot be removed is noted and left.
    pub(crate) async fn clean_up(&self) {
        let (topics, groups, members) =
            self.made(|made| (made.topics.clone(), made.groups.clone(), made.members.clone()));
        for (group_id, member_id) in members {
            let request = ShareGroupHeartbeatRequest {
                group_id: group_id.clone(),
                member_id,
                member_epoch: -1,
                ..Default::default()
            };
            let code = |r: &kafka_share_messages::ShareGroupHeartbeatResponse| r.error_code;
            let _ = self.coordinate(CoordinatorKind::Group, &group_id, &request, None, code).await;
        }
        for group in &groups {
            self.clear_group_configs(group).await;
            let request = DeleteGroupsRequest { groups_names: vec![group.clone()], ..Default::default() };
            let code = |r: &kafka_share_messages::DeleteGroupsResponse| {
                r.results.first().map_or(ErrorCode::NONE, |g| g.error_code)
            };
            let _ = self.coordinate(CoordinatorKind::Group, group, &request, None, code).await;
        }
        if !topics.is_empty() {
            let by_name = |t: &Topic| DeleteTopicState { name: Some(t.name.clone()), ..Default::default() };
            let request = DeleteTopicsRequest {
                topics: topics.iter().map(by_name).collect(),
                topic_names: topics.iter().map(|t| t.name.clone()).collect(),
                timeout_ms: 10_000,
                ..Default::default()
            };
            let _ = self.cluster().call_any(&request, self.deadline()).await;
        }
    }
}
