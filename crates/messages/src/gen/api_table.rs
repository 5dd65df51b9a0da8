//! API keys and their versions (generated from protocol-specs; do not edit).

use crate::{ApiInfo, ApiKey};

impl ApiKey {
    /// Appends record batches to partitions this broker leads, with the durability the producer asks for.
    pub const PRODUCE: ApiKey = ApiKey(0);
    /// Reads record batches from partitions, as a plain consumer or a replica, inside an incremental fetch session.
    pub const FETCH: ApiKey = ApiKey(1);
    /// Asks which offset stands at the start, at the end or at a time of a partition.
    pub const LIST_OFFSETS: ApiKey = ApiKey(2);
    /// Asks for the brokers of the cluster and for the leaders of topics, by name or by id.
    pub const METADATA: ApiKey = ApiKey(3);
    /// Asks which broker coordinates a group, a transactional id or a share-partition's state.
    pub const FIND_COORDINATOR: ApiKey = ApiKey(10);
    /// Lists the groups this broker coordinates, filtered by state and type.
    pub const LIST_GROUPS: ApiKey = ApiKey(16);
    /// Chooses the SASL mechanism for the connection.
    pub const SASL_HANDSHAKE: ApiKey = ApiKey(17);
    /// Asks which RPCs and versions the broker speaks, and names the client software.
    pub const API_VERSIONS: ApiKey = ApiKey(18);
    /// Creates topics with their partition count or a replica placement, and their settings.
    pub const CREATE_TOPICS: ApiKey = ApiKey(19);
    /// Deletes topics, named by name or by id.
    pub const DELETE_TOPICS: ApiKey = ApiKey(20);
    /// Drops the records of partitions below an offset by moving the log start.
    pub const DELETE_RECORDS: ApiKey = ApiKey(21);
    /// Obtains a producer id and epoch; for a transactional id it also fences older producers and ends what they left open.
    pub const INIT_PRODUCER_ID: ApiKey = ApiKey(22);
    /// Enrols partitions in a transaction before they are written to (clients up to v3), or checks the enrolment (brokers, v4 on).
    pub const ADD_PARTITIONS_TO_TXN: ApiKey = ApiKey(24);
    /// Asks the transaction coordinator to commit or abort the open transaction.
    pub const END_TXN: ApiKey = ApiKey(26);
    /// Tells partition leaders to write the commit or abort marker of a transaction (sent by the coordinator).
    pub const WRITE_TXN_MARKERS: ApiKey = ApiKey(27);
    /// Reads settings of topics, brokers, groups and other resources.
    pub const DESCRIBE_CONFIGS: ApiKey = ApiKey(32);
    /// Carries one token of the SASL exchange from the client.
    pub const SASL_AUTHENTICATE: ApiKey = ApiKey(36);
    /// Raises the number of partitions of topics.
    pub const CREATE_PARTITIONS: ApiKey = ApiKey(37);
    /// Deletes groups that have no members.
    pub const DELETE_GROUPS: ApiKey = ApiKey(42);
    /// Changes single settings of resources and leaves the others alone.
    pub const INCREMENTAL_ALTER_CONFIGS: ApiKey = ApiKey(44);
    /// Asks for the cluster's id, its nodes and what the caller may do with it.
    pub const DESCRIBE_CLUSTER: ApiKey = ApiKey(60);
    /// Asks a partition's leader which producers it remembers.
    pub const DESCRIBE_PRODUCERS: ApiKey = ApiKey(61);
    /// Asks for the details of transactions by transactional id.
    pub const DESCRIBE_TRANSACTIONS: ApiKey = ApiKey(65);
    /// Lists the transactions this coordinator knows, filtered by state, producer, age or id pattern.
    pub const LIST_TRANSACTIONS: ApiKey = ApiKey(66);
    /// Asks which client metrics the cluster wants, and how often.
    pub const GET_TELEMETRY_SUBSCRIPTIONS: ApiKey = ApiKey(71);
    /// Delivers one batch of client metrics as OTLP bytes.
    pub const PUSH_TELEMETRY: ApiKey = ApiKey(72);
    /// Lists the resources that have settings of their own, by kind.
    pub const LIST_CONFIG_RESOURCES: ApiKey = ApiKey(74);
    /// Pages through the partitions of topics, with a cursor for the next page.
    pub const DESCRIBE_TOPIC_PARTITIONS: ApiKey = ApiKey(75);
    /// Joins a share group, keeps the membership alive, changes the subscription, or leaves.
    pub const SHARE_GROUP_HEARTBEAT: ApiKey = ApiKey(76);
    /// Asks a group coordinator to describe share groups.
    pub const SHARE_GROUP_DESCRIBE: ApiKey = ApiKey(77);
    /// Acquires records of share-partitions from their leader, and may carry acknowledgements of earlier ones.
    pub const SHARE_FETCH: ApiKey = ApiKey(78);
    /// Acknowledges acquired records without fetching more, inside the share session.
    pub const SHARE_ACKNOWLEDGE: ApiKey = ApiKey(79);
    /// Asks for the start offset and the lag of share-partitions of groups.
    pub const DESCRIBE_SHARE_GROUP_OFFSETS: ApiKey = ApiKey(90);
    /// Moves the start offset of share-partitions of an empty share group.
    pub const ALTER_SHARE_GROUP_OFFSETS: ApiKey = ApiKey(91);
    /// Forgets what a share group without members has consumed of topics.
    pub const DELETE_SHARE_GROUP_OFFSETS: ApiKey = ApiKey(92);
    /// Stages acknowledgements of acquired records in an open transaction, at the leader of the source partitions.
    pub const TXN_SHARE_ACKNOWLEDGE: ApiKey = ApiKey(95);
    /// Enrols the stored state of share-partitions in a transaction before acknowledgements are staged (transaction.version 1).
    pub const ADD_SHARE_ACKS_TO_TXN: ApiKey = ApiKey(96);
}

/// In key order.
pub(crate) const APIS: &[ApiInfo] = &[
    ApiInfo {
        key: ApiKey(0),
        name: "Produce",
        min_version: 3,
        max_version: 13,
        flexible_from: 9,
        latest_unstable: false,
    },
    ApiInfo {
        key: ApiKey(1),
        name: "Fetch",
        min_version: 4,
        max_version: 18,
        flexible_from: 12,
        latest_unstable: false,
    },
    ApiInfo {
        key: ApiKey(2),
        name: "ListOffsets",
        min_version: 1,
        max_version: 11,
        flexible_from: 6,
        latest_unstable: false,
    },
    ApiInfo {
        key: ApiKey(3),
        name: "Metadata",
        min_version: 0,
        max_version: 13,
        flexible_from: 9,
        latest_unstable: false,
    },
    ApiInfo {
        key: ApiKey(10),
        name: "FindCoordinator",
        min_version: 0,
        max_version: 6,
        flexible_from: 3,
        latest_unstable: false,
    },
    ApiInfo {
        key: ApiKey(16),
        name: "ListGroups",
        min_version: 0,
        max_version: 5,
        flexible_from: 3,
        latest_unstable: false,
    },
    ApiInfo {
        key: ApiKey(17),
        name: "SaslHandshake",
        min_version: 0,
        max_version: 1,
        flexible_from: i16::MAX,
        latest_unstable: false,
    },
    ApiInfo {
        key: ApiKey(18),
        name: "ApiVersions",
        min_version: 0,
        max_version: 5,
        flexible_from: 3,
        latest_unstable: false,
    },
    ApiInfo {
        key: ApiKey(19),
        name: "CreateTopics",
        min_version: 2,
        max_version: 7,
        flexible_from: 5,
        latest_unstable: false,
    },
    ApiInfo {
        key: ApiKey(20),
        name: "DeleteTopics",
        min_version: 1,
        max_version: 6,
        flexible_from: 4,
        latest_unstable: false,
    },
    ApiInfo {
        key: ApiKey(21),
        name: "DeleteRecords",
        min_version: 0,
        max_version: 2,
        flexible_from: 2,
        latest_unstable: false,
    },
    ApiInfo {
        key: ApiKey(22),
        name: "InitProducerId",
        min_version: 0,
        max_version: 6,
        flexible_from: 2,
        latest_unstable: true,
    },
    ApiInfo {
        key: ApiKey(24),
        name: "AddPartitionsToTxn",
        min_version: 0,
        max_version: 5,
        flexible_from: 3,
        latest_unstable: false,
    },
    ApiInfo {
        key: ApiKey(26),
        name: "EndTxn",
        min_version: 0,
        max_version: 5,
        flexible_from: 3,
        latest_unstable: false,
    },
    ApiInfo {
        key: ApiKey(27),
        name: "WriteTxnMarkers",
        min_version: 1,
        max_version: 2,
        flexible_from: 1,
        latest_unstable: false,
    },
    ApiInfo {
        key: ApiKey(32),
        name: "DescribeConfigs",
        min_version: 1,
        max_version: 4,
        flexible_from: 4,
        latest_unstable: false,
    },
    ApiInfo {
        key: ApiKey(36),
        name: "SaslAuthenticate",
        min_version: 0,
        max_version: 2,
        flexible_from: 2,
        latest_unstable: false,
    },
    ApiInfo {
        key: ApiKey(37),
        name: "CreatePartitions",
        min_version: 0,
        max_version: 3,
        flexible_from: 2,
        latest_unstable: false,
    },
    ApiInfo {
        key: ApiKey(42),
        name: "DeleteGroups",
        min_version: 0,
        max_version: 3,
        flexible_from: 2,
        latest_unstable: false,
    },
    ApiInfo {
        key: ApiKey(44),
        name: "IncrementalAlterConfigs",
        min_version: 0,
        max_version: 1,
        flexible_from: 1,
        latest_unstable: false,
    },
    ApiInfo {
        key: ApiKey(60),
        name: "DescribeCluster",
        min_version: 0,
        max_version: 2,
        flexible_from: 0,
        latest_unstable: false,
    },
    ApiInfo {
        key: ApiKey(61),
        name: "DescribeProducers",
        min_version: 0,
        max_version: 0,
        flexible_from: 0,
        latest_unstable: false,
    },
    ApiInfo {
        key: ApiKey(65),
        name: "DescribeTransactions",
        min_version: 0,
        max_version: 0,
        flexible_from: 0,
        latest_unstable: false,
    },
    ApiInfo {
        key: ApiKey(66),
        name: "ListTransactions",
        min_version: 0,
        max_version: 2,
        flexible_from: 0,
        latest_unstable: false,
    },
    ApiInfo {
        key: ApiKey(71),
        name: "GetTelemetrySubscriptions",
        min_version: 0,
        max_version: 0,
        flexible_from: 0,
        latest_unstable: false,
    },
    ApiInfo {
        key: ApiKey(72),
        name: "PushTelemetry",
        min_version: 0,
        max_version: 0,
        flexible_from: 0,
        latest_unstable: false,
    },
    ApiInfo {
        key: ApiKey(74),
        name: "ListConfigResources",
        min_version: 0,
        max_version: 1,
        flexible_from: 0,
        latest_unstable: false,
    },
    ApiInfo {
        key: ApiKey(75),
        name: "DescribeTopicPartitions",
        min_version: 0,
        max_version: 0,
        flexible_from: 0,
        latest_unstable: false,
    },
    ApiInfo {
        key: ApiKey(76),
        name: "ShareGroupHeartbeat",
        min_version: 1,
        max_version: 1,
        flexible_from: 1,
        latest_unstable: false,
    },
    ApiInfo {
        key: ApiKey(77),
        name: "ShareGroupDescribe",
        min_version: 1,
        max_version: 1,
        flexible_from: 1,
        latest_unstable: false,
    },
    ApiInfo {
        key: ApiKey(78),
        name: "ShareFetch",
        min_version: 1,
        max_version: 2,
        flexible_from: 1,
        latest_unstable: false,
    },
    ApiInfo {
        key: ApiKey(79),
        name: "ShareAcknowledge",
        min_version: 1,
        max_version: 2,
        flexible_from: 1,
        latest_unstable: false,
    },
    ApiInfo {
        key: ApiKey(90),
        name: "DescribeShareGroupOffsets",
        min_version: 0,
        max_version: 1,
        flexible_from: 0,
        latest_unstable: false,
    },
    ApiInfo {
        key: ApiKey(91),
        name: "AlterShareGroupOffsets",
        min_version: 0,
        max_version: 0,
        flexible_from: 0,
        latest_unstable: false,
    },
    ApiInfo {
        key: ApiKey(92),
        name: "DeleteShareGroupOffsets",
        min_version: 0,
        max_version: 0,
        flexible_from: 0,
        latest_unstable: false,
    },
    ApiInfo {
        key: ApiKey(95),
        name: "TxnShareAcknowledge",
        min_version: 0,
        max_version: 0,
        flexible_from: 0,
        latest_unstable: false,
    },
    ApiInfo {
        key: ApiKey(96),
        name: "AddShareAcksToTxn",
        min_version: 0,
        max_version: 0,
        flexible_from: 0,
        latest_unstable: false,
    },
];
