//! Settings of the cluster machine.

use crate::{Authorizer, GroupBounds, Listener};

/// A node of the cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeConfig {
    /// Broker id, unique and not negative.
    pub id: i32,
    /// Advertised host.
    pub host: String,
    /// Advertised port.
    pub port: u16,
}

/// Finalised feature levels (KIP-584) that the cluster advertises and follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BrokerFeatures {
    /// `transaction.version`: 0 or 1 (TV1, KIP-98) or 2 (TV2, KIP-890: an epoch per transaction).
    pub transaction_version: i16,
    /// Offers transactional share acknowledgements (KIP-1289 draft): API keys 95 and 96, `share.version` 3.
    /// Off: what Kafka 4.4.0 offers, `share.version` 2.
    pub transactional_acks: bool,
    /// Two-phase commit (KIP-939): offers InitProducerId v6, allows `Enable2Pc` and keeps prepared transactions, which no
    /// released Kafka does.
    pub two_phase_commit: bool,
    /// `unstable.api.versions.enable`: offers InitProducerId v6 as Kafka 4.4.0 has it, which is to refuse what it is for.
    pub unstable_api_versions: bool,
}

impl Default for BrokerFeatures {
    fn default() -> Self {
        BrokerFeatures {
            transaction_version: 2,
            transactional_acks: true,
            two_phase_commit: false,
            unstable_api_versions: false,
        }
    }
}

impl BrokerFeatures {
    /// `share.version`.
    #[must_use]
    pub fn share_version(&self) -> i16 {
        if self.transactional_acks { 3 } else { 2 }
    }
}

/// Settings of a [`Cluster`](crate::Cluster). The defaults are Kafka's, apart from in-memory limits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterConfig {
    /// The nodes; at least one.
    pub nodes: Vec<NodeConfig>,
    /// Feature levels.
    pub features: BrokerFeatures,
    /// Whether metadata and produce requests create topics (`auto.create.topics.enable`).
    pub auto_create_topics: bool,
    /// Partitions of topics whose creator does not say (`num.partitions`).
    pub default_partitions: i32,
    /// Replicas of topics whose creator does not say (`default.replication.factor`); at most the nodes there are.
    pub default_replication: i16,
    /// Largest request frame, in bytes (`socket.request.max.bytes`).
    pub max_request_bytes: usize,
    /// Bytes of records that all partitions together may hold; produce requests beyond it are refused with
    /// `KAFKA_STORAGE_ERROR`.
    pub max_log_bytes: usize,
    /// Most partitions of all topics together; creations beyond it are refused.
    pub max_partitions: usize,
    /// Most share groups; a heartbeat that would create one more is refused with `GROUP_MAX_SIZE_REACHED`.
    pub max_groups: usize,
    /// Most groups with settings of their own; settings of one more are refused with `POLICY_VIOLATION`.
    pub max_group_configs: usize,
    /// Share-partitions (of all groups together) from which on no member may join any more, `GROUP_MAX_SIZE_REACHED`.
    pub max_share_partitions: usize,
    /// Partitions of each of the internal topics that place coordinators.
    pub internal_partitions: i32,
    /// Bounds and defaults of group settings.
    pub groups: GroupBounds,
    /// `transaction.max.timeout.ms`.
    pub transaction_max_timeout_ms: i32,
    /// How long the markers of a decided transaction take, for tests of what happens meanwhile
    /// (`CONCURRENT_TRANSACTIONS`). Default 0: they are written before EndTxn is answered.
    pub marker_delay_ms: u64,
    /// `producer.id.expiration.ms`: partitions forget producers whose last batch (by its timestamp) or marker is so old. They
    /// are looked for every ten minutes.
    pub producer_id_expiration_ms: i64,
    /// `errors.deadletterqueue.topic.name.prefix`: the name of a dead letter queue (KIP-1191) must begin so.
    pub dead_letter_prefix: String,
    /// `errors.deadletterqueue.auto.create.topics.enable`: dead letter queues that do not exist are created.
    pub auto_create_dead_letter_topics: bool,
    /// `transactional.id.expiration.ms`: coordinators forget transactional ids without an open transaction that were idle
    /// for so long.
    pub transactional_id_expiration_ms: i64,
    /// `max.incremental.fetch.session.cache.slots` of a node.
    pub fetch_session_slots: usize,
    /// `max.connections` of a node: further ones wait unaccepted until another one is closed, as in Kafka.
    pub max_connections: usize,
    /// `connections.max.idle.ms`: a connection on which no byte came or went for so long is closed. That ends half-open
    /// connections, and those of clients that do not read their answers. In real time, whatever the broker's clock does.
    pub connections_max_idle_ms: u64,
    /// How long a client may take from being accepted to being authenticated, the TLS handshake included; then its connection
    /// is closed. In real time; default 10 s. Kafka has no such limit but `connections.max.idle.ms`.
    pub authentication_timeout_ms: u64,
    /// The listeners that every node has; the first is the one whose addresses are those of `nodes`.
    pub listeners: Vec<Listener>,
    /// Who may do what (`authorizer.class.name`). Default: everybody may do everything.
    pub authorizer: Option<Authorizer>,
    /// `connection.failed.authentication.delay.ms`: how long a client whose authentication failed waits for the answer.
    pub failed_authentication_delay_ms: u64,
    /// Most transactional ids; InitProducerId of a further one is refused with `POLICY_VIOLATION`.
    pub max_transactional_ids: usize,
}

impl Default for ClusterConfig {
    fn default() -> Self {
        ClusterConfig {
            nodes: vec![NodeConfig { id: 1, host: "127.0.0.1".into(), port: 9092 }],
            features: BrokerFeatures::default(),
            auto_create_topics: true,
            default_partitions: 1,
            default_replication: 1,
            max_request_bytes: 100 << 20,
            max_log_bytes: 4 << 30,
            max_partitions: 100_000,
            max_groups: 10_000,
            max_group_configs: 10_000,
            max_share_partitions: 1_000_000,
            internal_partitions: 50,
            groups: GroupBounds::default(),
            transaction_max_timeout_ms: 900_000,
            marker_delay_ms: 0,
            producer_id_expiration_ms: 86_400_000,
            dead_letter_prefix: "dlq.".into(),
            auto_create_dead_letter_topics: false,
            transactional_id_expiration_ms: 604_800_000,
            fetch_session_slots: 1000,
            max_connections: 10_000,
            connections_max_idle_ms: 600_000,
            authentication_timeout_ms: 10_000,
            listeners: vec![Listener::plaintext("PLAINTEXT")],
            authorizer: None,
            failed_authentication_delay_ms: 100,
            max_transactional_ids: 100_000,
        }
    }
}
