//! Topics and the cluster as a whole.

use super::{Admin, Outcomes, check, millis_left};
use crate::{Error, ErrorKind, Result, Uuid};
use kafka_share_messages::create_partitions_request::CreatePartitionsTopic;
use kafka_share_messages::create_topics_request::{CreatableTopic, CreatableTopicConfig};
use kafka_share_messages::delete_topics_request::DeleteTopicState;
use kafka_share_messages::metadata_request::MetadataRequestTopic;
use kafka_share_messages::metadata_response::MetadataResponseTopic;
use kafka_share_messages::{
    CreatePartitionsRequest, CreateTopicsRequest, DeleteTopicsRequest, DescribeClusterRequest, ErrorCode,
    MetadataRequest,
};
use kafka_share_wire::Str;

/// A topic to create.
#[derive(Debug, Clone)]
pub struct NewTopic {
    name: String,
    partitions: i32,
    replication: i16,
    configs: Vec<(String, String)>,
}

impl NewTopic {
    /// With a number of partitions, or -1 for the broker's default; replicas by the broker's default.
    #[must_use]
    pub fn new(name: impl Into<String>, partitions: i32) -> Self {
        NewTopic { name: name.into(), partitions, replication: -1, configs: Vec::new() }
    }

    /// Number of replicas of each partition.
    #[must_use]
    pub fn replication_factor(mut self, replicas: i16) -> Self {
        self.replication = replicas;
        self
    }

    /// A topic config, `cleanup.policy` say.
    #[must_use]
    pub fn config(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.configs.push((name.into(), value.into()));
        self
    }

    fn to_wire(&self) -> CreatableTopic {
        let config = |(name, value): &(String, String)| CreatableTopicConfig {
            name: Str::from(name),
            value: Some(Str::from(value)),
            ..CreatableTopicConfig::default()
        };
        CreatableTopic {
            name: Str::from(&self.name),
            num_partitions: self.partitions,
            replication_factor: self.replication,
            configs: self.configs.iter().map(config).collect(),
            ..CreatableTopic::default()
        }
    }
}

/// A topic.
#[derive(Debug, Clone)]
pub struct TopicDescription {
    /// Name.
    pub name: String,
    /// Id.
    pub id: Uuid,
    /// Whether it belongs to Kafka itself.
    pub internal: bool,
    /// Partitions in the order of their numbers.
    pub partitions: Vec<PartitionDescription>,
}

/// A partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartitionDescription {
    /// Number, from 0.
    pub partition: i32,
    /// Broker that leads it, -1 for none at the moment.
    pub leader: i32,
    /// Epoch of that leader.
    pub leader_epoch: i32,
    /// Brokers that hold it.
    pub replicas: Vec<i32>,
    /// Of these, those in sync.
    pub in_sync: Vec<i32>,
}

/// The cluster.
#[derive(Debug, Clone)]
pub struct ClusterDescription {
    /// Cluster id.
    pub cluster_id: String,
    /// Broker that acts as controller to clients.
    pub controller: i32,
    /// Brokers.
    pub brokers: Vec<BrokerDescription>,
}

/// A broker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrokerDescription {
    /// Broker id.
    pub id: i32,
    /// Host.
    pub host: String,
    /// Port.
    pub port: i32,
    /// Rack, where it has one.
    pub rack: Option<String>,
}

impl Admin {
    /// Creates a topic and waits until every partition has a leader.
    ///
    /// # Cancel safety
    /// First comes one CreateTopics, then Metadata, over and over. Dropped before the first went out, there is no
    /// topic; after it, the controller creates it or refuses, and only the wait for leaders is over. The same call is
    /// refused with TOPIC_ALREADY_EXISTS then.
    ///
    /// # Errors
    /// As [`Admin::create_topics`].
    pub async fn create_topic(&self, topic: NewTopic) -> Result<Uuid> {
        let deadline = self.deadline();
        let id = retrying!(self, deadline, async { first(self.create_topics(std::slice::from_ref(&topic)).await?) })?;
        self.cluster().topic(&topic.name, false, deadline).await?;
        Ok(id)
    }

    /// Creates topics; gives their ids. They may not have leaders yet.
    ///
    /// # Cancel safety
    /// One CreateTopics has all `topics`. Where it had not gone out, none is created; else each is created or refused,
    /// and only the answers are lost. The same call may follow; what is there is refused with TOPIC_ALREADY_EXISTS
    /// then.
    ///
    /// # Errors
    /// Per topic the broker's refusal (TOPIC_ALREADY_EXISTS also where the answer to a first try was lost); as a whole
    /// where no broker answers.
    pub async fn create_topics(&self, topics: &[NewTopic]) -> Result<Outcomes<Uuid>> {
        let deadline = self.deadline();
        let request = CreateTopicsRequest {
            topics: topics.iter().map(NewTopic::to_wire).collect(),
            timeout_ms: millis_left(self.cluster().request_deadline(deadline)),
            ..CreateTopicsRequest::default()
        };
        let response = self.cluster().call_any(&request, deadline).await?;
        let outcome = |t: &kafka_share_messages::create_topics_response::CreatableTopicResult| {
            let what = format_args!("creating topic {:?}", t.name).to_string();
            (t.name.to_string(), check(t.error_code, what, t.error_message.as_ref()).map(|()| t.topic_id))
        };
        Ok(response.topics.iter().map(outcome).collect())
    }

    /// Deletes topics.
    ///
    /// # Cancel safety
    /// One DeleteTopics has all `names`. Where it had not gone out, all are there; else each is deleted or refused, and
    /// only the answers are lost. The same call may follow; what is gone is refused with UNKNOWN_TOPIC_OR_PARTITION
    /// then.
    ///
    /// # Errors
    /// Per topic the broker's refusal; as a whole where no broker answers.
    pub async fn delete_topics(&self, names: &[&str]) -> Result<Outcomes<()>> {
        let deadline = self.deadline();
        let state = |name: &&str| DeleteTopicState { name: Some(Str::from(*name)), ..DeleteTopicState::default() };
        let range = self.cluster().features(deadline).await?.range(kafka_share_messages::ApiKey::DELETE_TOPICS);
        let by_state = range.is_some_and(|(_, max)| max >= 6);
        // Names stand in another field from version 6 on; a version refuses to carry the other's.
        let request = DeleteTopicsRequest {
            topics: if by_state { names.iter().map(state).collect() } else { Vec::new() },
            topic_names: if by_state { Vec::new() } else { names.iter().map(|n| Str::from(*n)).collect() },
            timeout_ms: millis_left(self.cluster().request_deadline(deadline)),
            ..DeleteTopicsRequest::default()
        };
        let response = self.cluster().call_any(&request, deadline).await?;
        let outcome = |t: &kafka_share_messages::delete_topics_response::DeletableTopicResult| {
            let name = t.name.as_ref().map_or_else(|| t.topic_id.to_string(), ToString::to_string);
            let result = check(t.error_code, format_args!("deleting topic {name:?}"), t.error_message.as_ref());
            (name, result)
        };
        Ok(response.responses.iter().map(outcome).collect())
    }

    /// Raises the number of partitions of a topic to `count`.
    ///
    /// # Cancel safety
    /// One CreatePartitions, tried again while the controller refuses for now. Where none had gone out, the topic is as
    /// it was; else it has `count` partitions or was refused, and only the answer is lost. The same call may follow; it
    /// is refused with INVALID_PARTITIONS where they are there already.
    ///
    /// # Errors
    /// The broker's refusal.
    pub async fn create_partitions(&self, topic: &str, count: i32) -> Result<()> {
        let deadline = self.deadline();
        let row = CreatePartitionsTopic {
            name: Str::from(topic),
            count,
            assignments: None,
            ..CreatePartitionsTopic::default()
        };
        let request = CreatePartitionsRequest {
            topics: vec![row],
            timeout_ms: millis_left(self.cluster().request_deadline(deadline)),
            ..CreatePartitionsRequest::default()
        };
        retrying!(self, deadline, async {
            let response = self.cluster().call_any(&request, deadline).await?;
            let what = format!("adding partitions to topic {topic:?}");
            let row = response.results.first().ok_or_else(|| missing(&what))?;
            check(row.error_code, what, row.error_message.as_ref())
        })
    }

    /// All topics that the client may see.
    ///
    /// # Cancel safety
    /// Only asks (Metadata): nothing is half done.
    ///
    /// # Errors
    /// Where no broker answers.
    pub async fn list_topics(&self) -> Result<Vec<TopicDescription>> {
        let request = MetadataRequest { topics: None, allow_auto_topic_creation: false, ..Default::default() };
        let response = self.cluster().call_any(&request, self.deadline()).await?;
        Ok(response.topics.iter().filter(|t| t.error_code.is_ok()).map(describe).collect())
    }

    /// Topics by name.
    ///
    /// # Cancel safety
    /// Only asks (Metadata, which creates no topic): nothing is half done.
    ///
    /// # Errors
    /// Per topic the broker's refusal, UNKNOWN_TOPIC_OR_PARTITION say; as a whole where no broker answers.
    pub async fn describe_topics(&self, names: &[&str]) -> Result<Outcomes<TopicDescription>> {
        let row = |name: &&str| MetadataRequestTopic { name: Some(Str::from(*name)), ..Default::default() };
        let topics = Some(names.iter().map(row).collect());
        let request = MetadataRequest { topics, allow_auto_topic_creation: false, ..Default::default() };
        let response = self.cluster().call_any(&request, self.deadline()).await?;
        let outcome = |t: &MetadataResponseTopic| {
            let name = t.name.as_ref().map(ToString::to_string).unwrap_or_default();
            let result = check(t.error_code, format_args!("topic {name:?}"), None).map(|()| describe(t));
            (name, result)
        };
        Ok(response.topics.iter().map(outcome).collect())
    }

    /// Brokers and controller.
    ///
    /// # Cancel safety
    /// Only asks (DescribeCluster): nothing is half done.
    ///
    /// # Errors
    /// The broker's refusal; where no broker answers.
    pub async fn describe_cluster(&self) -> Result<ClusterDescription> {
        let response = self.cluster().call_any(&DescribeClusterRequest::default(), self.deadline()).await?;
        check(response.error_code, "describing the cluster", response.error_message.as_ref())?;
        let broker = |b: &kafka_share_messages::describe_cluster_response::DescribeClusterBroker| BrokerDescription {
            id: b.broker_id,
            host: b.host.to_string(),
            port: b.port,
            rack: b.rack.as_ref().map(ToString::to_string),
        };
        Ok(ClusterDescription {
            cluster_id: response.cluster_id.to_string(),
            controller: response.controller_id,
            brokers: response.brokers.iter().map(broker).collect(),
        })
    }
}

fn first<T>(outcomes: Outcomes<T>) -> Result<T> {
    outcomes.into_iter().next().map_or_else(|| Err(missing("the topic")), |(_, result)| result)
}

pub(super) fn missing(what: &str) -> Error {
    Error::new(ErrorKind::Protocol, format!("{what}: the broker's answer leaves it out"))
}

fn describe(topic: &MetadataResponseTopic) -> TopicDescription {
    let mut partitions: Vec<PartitionDescription> = topic
        .partitions
        .iter()
        .map(|p| PartitionDescription {
            partition: p.partition_index,
            leader: if p.error_code == ErrorCode::LEADER_NOT_AVAILABLE { -1 } else { p.leader_id },
            leader_epoch: p.leader_epoch,
            replicas: p.replica_nodes.clone(),
            in_sync: p.isr_nodes.clone(),
        })
        .collect();
    partitions.sort_by_key(|p| p.partition);
    TopicDescription {
        name: topic.name.as_ref().map(ToString::to_string).unwrap_or_default(),
        id: topic.topic_id,
        internal: topic.is_internal,
        partitions,
    }
}
