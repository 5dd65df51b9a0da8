//! Kafka's error codes (generated from protocol-specs; do not edit).

use crate::ErrorCode;

impl ErrorCode {
    /// The broker met an error it has no code for; its log says more.
    pub const UNKNOWN_SERVER_ERROR: ErrorCode = ErrorCode(-1);
    /// No error.
    pub const NONE: ErrorCode = ErrorCode(0);
    /// The offset lies outside what the partition holds.
    pub const OFFSET_OUT_OF_RANGE: ErrorCode = ErrorCode(1);
    /// A record batch failed its checksum or its structure is broken.
    pub const CORRUPT_MESSAGE: ErrorCode = ErrorCode(2);
    /// This broker does not host the topic or partition, or does not know it yet.
    pub const UNKNOWN_TOPIC_OR_PARTITION: ErrorCode = ErrorCode(3);
    /// `INVALID_FETCH_SIZE`
    pub const INVALID_FETCH_SIZE: ErrorCode = ErrorCode(4);
    /// No leader is elected at the moment.
    pub const LEADER_NOT_AVAILABLE: ErrorCode = ErrorCode(5);
    /// Another broker leads the partition; refresh the metadata.
    pub const NOT_LEADER_OR_FOLLOWER: ErrorCode = ErrorCode(6);
    /// The broker could not finish within the request's time.
    pub const REQUEST_TIMED_OUT: ErrorCode = ErrorCode(7);
    /// The broker asked for is not alive.
    pub const BROKER_NOT_AVAILABLE: ErrorCode = ErrorCode(8);
    /// The broker asked has no copy of the partition.
    pub const REPLICA_NOT_AVAILABLE: ErrorCode = ErrorCode(9);
    /// A batch is larger than the topic allows (max.message.bytes).
    pub const MESSAGE_TOO_LARGE: ErrorCode = ErrorCode(10);
    /// `STALE_CONTROLLER_EPOCH`
    pub const STALE_CONTROLLER_EPOCH: ErrorCode = ErrorCode(11);
    /// The text beside a committed offset is too long.
    pub const OFFSET_METADATA_TOO_LARGE: ErrorCode = ErrorCode(12);
    /// The broker lost a connection while it worked on the request.
    pub const NETWORK_EXCEPTION: ErrorCode = ErrorCode(13);
    /// The coordinator is still reading its state; try again shortly.
    pub const COORDINATOR_LOAD_IN_PROGRESS: ErrorCode = ErrorCode(14);
    /// No coordinator serves the group or transactional id at the moment.
    pub const COORDINATOR_NOT_AVAILABLE: ErrorCode = ErrorCode(15);
    /// Another broker coordinates this; look the coordinator up again.
    pub const NOT_COORDINATOR: ErrorCode = ErrorCode(16);
    /// The topic's name is not allowed, or the operation is not allowed on it.
    pub const INVALID_TOPIC_EXCEPTION: ErrorCode = ErrorCode(17);
    /// The batch exceeds the broker's segment size.
    pub const RECORD_LIST_TOO_LARGE: ErrorCode = ErrorCode(18);
    /// Too few replicas are in sync; nothing was written.
    pub const NOT_ENOUGH_REPLICAS: ErrorCode = ErrorCode(19);
    /// The records were written, but to fewer in-sync replicas than required.
    pub const NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode = ErrorCode(20);
    /// The number of acknowledgements asked for is not 0, 1 or -1.
    pub const INVALID_REQUIRED_ACKS: ErrorCode = ErrorCode(21);
    /// The group has moved on to another generation.
    pub const ILLEGAL_GENERATION: ErrorCode = ErrorCode(22);
    /// `INCONSISTENT_GROUP_PROTOCOL`
    pub const INCONSISTENT_GROUP_PROTOCOL: ErrorCode = ErrorCode(23);
    /// The group id is empty or not allowed.
    pub const INVALID_GROUP_ID: ErrorCode = ErrorCode(24);
    /// The group does not know this member; join again.
    pub const UNKNOWN_MEMBER_ID: ErrorCode = ErrorCode(25);
    /// The session timeout lies outside the broker's bounds.
    pub const INVALID_SESSION_TIMEOUT: ErrorCode = ErrorCode(26);
    /// The group is being rebalanced.
    pub const REBALANCE_IN_PROGRESS: ErrorCode = ErrorCode(27);
    /// `INVALID_COMMIT_OFFSET_SIZE`
    pub const INVALID_COMMIT_OFFSET_SIZE: ErrorCode = ErrorCode(28);
    /// The principal may not do this with the topic.
    pub const TOPIC_AUTHORIZATION_FAILED: ErrorCode = ErrorCode(29);
    /// The principal may not do this with the group.
    pub const GROUP_AUTHORIZATION_FAILED: ErrorCode = ErrorCode(30);
    /// The principal may not do this with the cluster.
    pub const CLUSTER_AUTHORIZATION_FAILED: ErrorCode = ErrorCode(31);
    /// A record's timestamp is too far from the broker's time.
    pub const INVALID_TIMESTAMP: ErrorCode = ErrorCode(32);
    /// The broker does not offer this SASL mechanism on the listener.
    pub const UNSUPPORTED_SASL_MECHANISM: ErrorCode = ErrorCode(33);
    /// This request may not be sent in the present state of authentication.
    pub const ILLEGAL_SASL_STATE: ErrorCode = ErrorCode(34);
    /// The broker does not speak this version, or a feature it needs is off.
    pub const UNSUPPORTED_VERSION: ErrorCode = ErrorCode(35);
    /// A topic of this name exists.
    pub const TOPIC_ALREADY_EXISTS: ErrorCode = ErrorCode(36);
    /// The partition count is not allowed.
    pub const INVALID_PARTITIONS: ErrorCode = ErrorCode(37);
    /// The replication factor is not allowed, or there are too few brokers.
    pub const INVALID_REPLICATION_FACTOR: ErrorCode = ErrorCode(38);
    /// The replica placement is not allowed.
    pub const INVALID_REPLICA_ASSIGNMENT: ErrorCode = ErrorCode(39);
    /// A setting has an unknown name or a value that is not allowed.
    pub const INVALID_CONFIG: ErrorCode = ErrorCode(40);
    /// Another node is the controller.
    pub const NOT_CONTROLLER: ErrorCode = ErrorCode(41);
    /// The request contradicts itself or breaks a rule of the protocol.
    pub const INVALID_REQUEST: ErrorCode = ErrorCode(42);
    /// The stored record format cannot do this.
    pub const UNSUPPORTED_FOR_MESSAGE_FORMAT: ErrorCode = ErrorCode(43);
    /// A policy of the cluster forbids it.
    pub const POLICY_VIOLATION: ErrorCode = ErrorCode(44);
    /// A producer's sequence number leaves a gap or goes back.
    pub const OUT_OF_ORDER_SEQUENCE_NUMBER: ErrorCode = ErrorCode(45);
    /// The batch is already stored; its offset is no longer remembered.
    pub const DUPLICATE_SEQUENCE_NUMBER: ErrorCode = ErrorCode(46);
    /// The producer's epoch is older than the one the partition knows; abort and start over.
    pub const INVALID_PRODUCER_EPOCH: ErrorCode = ErrorCode(47);
    /// The transaction's state does not allow this.
    pub const INVALID_TXN_STATE: ErrorCode = ErrorCode(48);
    /// The producer id does not belong to this transactional id.
    pub const INVALID_PRODUCER_ID_MAPPING: ErrorCode = ErrorCode(49);
    /// The transaction timeout exceeds what the broker allows.
    pub const INVALID_TRANSACTION_TIMEOUT: ErrorCode = ErrorCode(50);
    /// The coordinator is still ending the transaction before; try again shortly.
    pub const CONCURRENT_TRANSACTIONS: ErrorCode = ErrorCode(51);
    /// A newer transaction coordinator has taken over.
    pub const TRANSACTION_COORDINATOR_FENCED: ErrorCode = ErrorCode(52);
    /// The principal may not use the transactional id, or not in this way.
    pub const TRANSACTIONAL_ID_AUTHORIZATION_FAILED: ErrorCode = ErrorCode(53);
    /// The cluster has no authorizer.
    pub const SECURITY_DISABLED: ErrorCode = ErrorCode(54);
    /// Left undone because another part of the request failed.
    pub const OPERATION_NOT_ATTEMPTED: ErrorCode = ErrorCode(55);
    /// The broker's disk failed.
    pub const KAFKA_STORAGE_ERROR: ErrorCode = ErrorCode(56);
    /// `LOG_DIR_NOT_FOUND`
    pub const LOG_DIR_NOT_FOUND: ErrorCode = ErrorCode(57);
    /// The credentials were refused.
    pub const SASL_AUTHENTICATION_FAILED: ErrorCode = ErrorCode(58);
    /// The partition remembers nothing of this producer.
    pub const UNKNOWN_PRODUCER_ID: ErrorCode = ErrorCode(59);
    /// `REASSIGNMENT_IN_PROGRESS`
    pub const REASSIGNMENT_IN_PROGRESS: ErrorCode = ErrorCode(60);
    /// `DELEGATION_TOKEN_AUTH_DISABLED`
    pub const DELEGATION_TOKEN_AUTH_DISABLED: ErrorCode = ErrorCode(61);
    /// `DELEGATION_TOKEN_NOT_FOUND`
    pub const DELEGATION_TOKEN_NOT_FOUND: ErrorCode = ErrorCode(62);
    /// `DELEGATION_TOKEN_OWNER_MISMATCH`
    pub const DELEGATION_TOKEN_OWNER_MISMATCH: ErrorCode = ErrorCode(63);
    /// `DELEGATION_TOKEN_REQUEST_NOT_ALLOWED`
    pub const DELEGATION_TOKEN_REQUEST_NOT_ALLOWED: ErrorCode = ErrorCode(64);
    /// `DELEGATION_TOKEN_AUTHORIZATION_FAILED`
    pub const DELEGATION_TOKEN_AUTHORIZATION_FAILED: ErrorCode = ErrorCode(65);
    /// `DELEGATION_TOKEN_EXPIRED`
    pub const DELEGATION_TOKEN_EXPIRED: ErrorCode = ErrorCode(66);
    /// `INVALID_PRINCIPAL_TYPE`
    pub const INVALID_PRINCIPAL_TYPE: ErrorCode = ErrorCode(67);
    /// The group still has members.
    pub const NON_EMPTY_GROUP: ErrorCode = ErrorCode(68);
    /// There is no such group, or it is of another kind.
    pub const GROUP_ID_NOT_FOUND: ErrorCode = ErrorCode(69);
    /// The fetch session is gone; open a new one.
    pub const FETCH_SESSION_ID_NOT_FOUND: ErrorCode = ErrorCode(70);
    /// The fetch session is at another epoch; open a new one.
    pub const INVALID_FETCH_SESSION_EPOCH: ErrorCode = ErrorCode(71);
    /// `LISTENER_NOT_FOUND`
    pub const LISTENER_NOT_FOUND: ErrorCode = ErrorCode(72);
    /// `TOPIC_DELETION_DISABLED`
    pub const TOPIC_DELETION_DISABLED: ErrorCode = ErrorCode(73);
    /// The leader epoch known to the client is outdated.
    pub const FENCED_LEADER_EPOCH: ErrorCode = ErrorCode(74);
    /// The client knows a newer leader epoch than this broker does.
    pub const UNKNOWN_LEADER_EPOCH: ErrorCode = ErrorCode(75);
    /// The compression is not allowed in this version of the request.
    pub const UNSUPPORTED_COMPRESSION_TYPE: ErrorCode = ErrorCode(76);
    /// `STALE_BROKER_EPOCH`
    pub const STALE_BROKER_EPOCH: ErrorCode = ErrorCode(77);
    /// A new leader does not know its high watermark yet.
    pub const OFFSET_NOT_AVAILABLE: ErrorCode = ErrorCode(78);
    /// `MEMBER_ID_REQUIRED`
    pub const MEMBER_ID_REQUIRED: ErrorCode = ErrorCode(79);
    /// `PREFERRED_LEADER_NOT_AVAILABLE`
    pub const PREFERRED_LEADER_NOT_AVAILABLE: ErrorCode = ErrorCode(80);
    /// The group has as many members as it may.
    pub const GROUP_MAX_SIZE_REACHED: ErrorCode = ErrorCode(81);
    /// `FENCED_INSTANCE_ID`
    pub const FENCED_INSTANCE_ID: ErrorCode = ErrorCode(82);
    /// `ELIGIBLE_LEADERS_NOT_AVAILABLE`
    pub const ELIGIBLE_LEADERS_NOT_AVAILABLE: ErrorCode = ErrorCode(83);
    /// `ELECTION_NOT_NEEDED`
    pub const ELECTION_NOT_NEEDED: ErrorCode = ErrorCode(84);
    /// `NO_REASSIGNMENT_IN_PROGRESS`
    pub const NO_REASSIGNMENT_IN_PROGRESS: ErrorCode = ErrorCode(85);
    /// The group still subscribes to the topic.
    pub const GROUP_SUBSCRIBED_TO_TOPIC: ErrorCode = ErrorCode(86);
    /// The broker's checks refused a record.
    pub const INVALID_RECORD: ErrorCode = ErrorCode(87);
    /// A transaction has offsets pending.
    pub const UNSTABLE_OFFSET_COMMIT: ErrorCode = ErrorCode(88);
    /// A quota is used up; wait for the throttle time.
    pub const THROTTLING_QUOTA_EXCEEDED: ErrorCode = ErrorCode(89);
    /// A newer producer uses the transactional id; this one is finished.
    pub const PRODUCER_FENCED: ErrorCode = ErrorCode(90);
    /// The request names something that does not exist.
    pub const RESOURCE_NOT_FOUND: ErrorCode = ErrorCode(91);
    /// The request names something twice.
    pub const DUPLICATE_RESOURCE: ErrorCode = ErrorCode(92);
    /// The credential breaks the rules for its mechanism.
    pub const UNACCEPTABLE_CREDENTIAL: ErrorCode = ErrorCode(93);
    /// `INCONSISTENT_VOTER_SET`
    pub const INCONSISTENT_VOTER_SET: ErrorCode = ErrorCode(94);
    /// `INVALID_UPDATE_VERSION`
    pub const INVALID_UPDATE_VERSION: ErrorCode = ErrorCode(95);
    /// `FEATURE_UPDATE_FAILED`
    pub const FEATURE_UPDATE_FAILED: ErrorCode = ErrorCode(96);
    /// `PRINCIPAL_DESERIALIZATION_FAILURE`
    pub const PRINCIPAL_DESERIALIZATION_FAILURE: ErrorCode = ErrorCode(97);
    /// `SNAPSHOT_NOT_FOUND`
    pub const SNAPSHOT_NOT_FOUND: ErrorCode = ErrorCode(98);
    /// `POSITION_OUT_OF_RANGE`
    pub const POSITION_OUT_OF_RANGE: ErrorCode = ErrorCode(99);
    /// This broker does not know the topic id, or not yet.
    pub const UNKNOWN_TOPIC_ID: ErrorCode = ErrorCode(100);
    /// `DUPLICATE_BROKER_REGISTRATION`
    pub const DUPLICATE_BROKER_REGISTRATION: ErrorCode = ErrorCode(101);
    /// `BROKER_ID_NOT_REGISTERED`
    pub const BROKER_ID_NOT_REGISTERED: ErrorCode = ErrorCode(102);
    /// The topic id belongs to another topic, as after deletion and re-creation.
    pub const INCONSISTENT_TOPIC_ID: ErrorCode = ErrorCode(103);
    /// `INCONSISTENT_CLUSTER_ID`
    pub const INCONSISTENT_CLUSTER_ID: ErrorCode = ErrorCode(104);
    /// The coordinator knows no such transactional id.
    pub const TRANSACTIONAL_ID_NOT_FOUND: ErrorCode = ErrorCode(105);
    /// The fetch session and the request disagree on topic ids.
    pub const FETCH_SESSION_TOPIC_ID_ERROR: ErrorCode = ErrorCode(106);
    /// `INELIGIBLE_REPLICA`
    pub const INELIGIBLE_REPLICA: ErrorCode = ErrorCode(107);
    /// `NEW_LEADER_ELECTED`
    pub const NEW_LEADER_ELECTED: ErrorCode = ErrorCode(108);
    /// `OFFSET_MOVED_TO_TIERED_STORAGE`
    pub const OFFSET_MOVED_TO_TIERED_STORAGE: ErrorCode = ErrorCode(109);
    /// The member's epoch is not the coordinator's; join again.
    pub const FENCED_MEMBER_EPOCH: ErrorCode = ErrorCode(110);
    /// `UNRELEASED_INSTANCE_ID`
    pub const UNRELEASED_INSTANCE_ID: ErrorCode = ErrorCode(111);
    /// The coordinator does not have the assignor asked for.
    pub const UNSUPPORTED_ASSIGNOR: ErrorCode = ErrorCode(112);
    /// The member's epoch is outdated; try again with the one of the next heartbeat.
    pub const STALE_MEMBER_EPOCH: ErrorCode = ErrorCode(113);
    /// `MISMATCHED_ENDPOINT_TYPE`
    pub const MISMATCHED_ENDPOINT_TYPE: ErrorCode = ErrorCode(114);
    /// `UNSUPPORTED_ENDPOINT_TYPE`
    pub const UNSUPPORTED_ENDPOINT_TYPE: ErrorCode = ErrorCode(115);
    /// `UNKNOWN_CONTROLLER_ID`
    pub const UNKNOWN_CONTROLLER_ID: ErrorCode = ErrorCode(116);
    /// The metrics subscription has changed; ask for it again.
    pub const UNKNOWN_SUBSCRIPTION_ID: ErrorCode = ErrorCode(117);
    /// The metrics exceed the size the broker takes.
    pub const TELEMETRY_TOO_LARGE: ErrorCode = ErrorCode(118);
    /// `INVALID_REGISTRATION`
    pub const INVALID_REGISTRATION: ErrorCode = ErrorCode(119);
    /// The transaction failed and must be aborted; the producer stays usable.
    pub const TRANSACTION_ABORTABLE: ErrorCode = ErrorCode(120);
    /// The records are not acquired by this member, or their state forbids the acknowledgement.
    pub const INVALID_RECORD_STATE: ErrorCode = ErrorCode(121);
    /// The share session is gone, and its acquired records are released; open a new one.
    pub const SHARE_SESSION_NOT_FOUND: ErrorCode = ErrorCode(122);
    /// The share session is at another epoch; open a new one.
    pub const INVALID_SHARE_SESSION_EPOCH: ErrorCode = ErrorCode(123);
    /// The share coordinator knows a newer state epoch for the share-partition.
    pub const FENCED_STATE_EPOCH: ErrorCode = ErrorCode(124);
    /// `INVALID_VOTER_KEY`
    pub const INVALID_VOTER_KEY: ErrorCode = ErrorCode(125);
    /// `DUPLICATE_VOTER`
    pub const DUPLICATE_VOTER: ErrorCode = ErrorCode(126);
    /// `VOTER_NOT_FOUND`
    pub const VOTER_NOT_FOUND: ErrorCode = ErrorCode(127);
    /// The regular expression does not parse.
    pub const INVALID_REGULAR_EXPRESSION: ErrorCode = ErrorCode(128);
    /// The client should forget the cluster's nodes and start again from its bootstrap servers.
    pub const REBOOTSTRAP_REQUIRED: ErrorCode = ErrorCode(129);
    /// `STREAMS_INVALID_TOPOLOGY`
    pub const STREAMS_INVALID_TOPOLOGY: ErrorCode = ErrorCode(130);
    /// `STREAMS_INVALID_TOPOLOGY_EPOCH`
    pub const STREAMS_INVALID_TOPOLOGY_EPOCH: ErrorCode = ErrorCode(131);
    /// `STREAMS_TOPOLOGY_FENCED`
    pub const STREAMS_TOPOLOGY_FENCED: ErrorCode = ErrorCode(132);
    /// The broker has as many share sessions as it may; try again later.
    pub const SHARE_SESSION_LIMIT_REACHED: ErrorCode = ErrorCode(133);
    /// The group could not be deleted.
    pub const GROUP_DELETION_FAILED: ErrorCode = ErrorCode(134);
    /// `STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED`
    pub const STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED: ErrorCode = ErrorCode(135);
    /// `CONTROLLER_ID_NOT_REGISTERED`
    pub const CONTROLLER_ID_NOT_REGISTERED: ErrorCode = ErrorCode(136);
}

/// Code, name, whether Kafka's clients may try again, whether metadata is stale, meaning.
pub(crate) const ERRORS: &[(i16, &str, bool, bool, &str)] = &[
    (-1, "UNKNOWN_SERVER_ERROR", false, false, "The broker met an error it has no code for; its log says more."),
    (0, "NONE", false, false, "No error."),
    (1, "OFFSET_OUT_OF_RANGE", false, false, "The offset lies outside what the partition holds."),
    (2, "CORRUPT_MESSAGE", true, false, "A record batch failed its checksum or its structure is broken."),
    (
        3,
        "UNKNOWN_TOPIC_OR_PARTITION",
        true,
        true,
        "This broker does not host the topic or partition, or does not know it yet.",
    ),
    (4, "INVALID_FETCH_SIZE", false, false, ""),
    (5, "LEADER_NOT_AVAILABLE", true, true, "No leader is elected at the moment."),
    (6, "NOT_LEADER_OR_FOLLOWER", true, true, "Another broker leads the partition; refresh the metadata."),
    (7, "REQUEST_TIMED_OUT", true, false, "The broker could not finish within the request's time."),
    (8, "BROKER_NOT_AVAILABLE", false, false, "The broker asked for is not alive."),
    (9, "REPLICA_NOT_AVAILABLE", true, true, "The broker asked has no copy of the partition."),
    (10, "MESSAGE_TOO_LARGE", false, false, "A batch is larger than the topic allows (max.message.bytes)."),
    (11, "STALE_CONTROLLER_EPOCH", false, false, ""),
    (12, "OFFSET_METADATA_TOO_LARGE", false, false, "The text beside a committed offset is too long."),
    (13, "NETWORK_EXCEPTION", true, true, "The broker lost a connection while it worked on the request."),
    (14, "COORDINATOR_LOAD_IN_PROGRESS", true, false, "The coordinator is still reading its state; try again shortly."),
    (
        15,
        "COORDINATOR_NOT_AVAILABLE",
        true,
        false,
        "No coordinator serves the group or transactional id at the moment.",
    ),
    (16, "NOT_COORDINATOR", true, false, "Another broker coordinates this; look the coordinator up again."),
    (
        17,
        "INVALID_TOPIC_EXCEPTION",
        false,
        false,
        "The topic's name is not allowed, or the operation is not allowed on it.",
    ),
    (18, "RECORD_LIST_TOO_LARGE", false, false, "The batch exceeds the broker's segment size."),
    (19, "NOT_ENOUGH_REPLICAS", true, false, "Too few replicas are in sync; nothing was written."),
    (
        20,
        "NOT_ENOUGH_REPLICAS_AFTER_APPEND",
        true,
        false,
        "The records were written, but to fewer in-sync replicas than required.",
    ),
    (21, "INVALID_REQUIRED_ACKS", false, false, "The number of acknowledgements asked for is not 0, 1 or -1."),
    (22, "ILLEGAL_GENERATION", false, false, "The group has moved on to another generation."),
    (23, "INCONSISTENT_GROUP_PROTOCOL", false, false, ""),
    (24, "INVALID_GROUP_ID", false, false, "The group id is empty or not allowed."),
    (25, "UNKNOWN_MEMBER_ID", false, false, "The group does not know this member; join again."),
    (26, "INVALID_SESSION_TIMEOUT", false, false, "The session timeout lies outside the broker's bounds."),
    (27, "REBALANCE_IN_PROGRESS", false, false, "The group is being rebalanced."),
    (28, "INVALID_COMMIT_OFFSET_SIZE", false, false, ""),
    (29, "TOPIC_AUTHORIZATION_FAILED", false, false, "The principal may not do this with the topic."),
    (30, "GROUP_AUTHORIZATION_FAILED", false, false, "The principal may not do this with the group."),
    (31, "CLUSTER_AUTHORIZATION_FAILED", false, false, "The principal may not do this with the cluster."),
    (32, "INVALID_TIMESTAMP", false, false, "A record's timestamp is too far from the broker's time."),
    (33, "UNSUPPORTED_SASL_MECHANISM", false, false, "The broker does not offer this SASL mechanism on the listener."),
    (34, "ILLEGAL_SASL_STATE", false, false, "This request may not be sent in the present state of authentication."),
    (35, "UNSUPPORTED_VERSION", false, false, "The broker does not speak this version, or a feature it needs is off."),
    (36, "TOPIC_ALREADY_EXISTS", false, false, "A topic of this name exists."),
    (37, "INVALID_PARTITIONS", false, false, "The partition count is not allowed."),
    (
        38,
        "INVALID_REPLICATION_FACTOR",
        false,
        false,
        "The replication factor is not allowed, or there are too few brokers.",
    ),
    (39, "INVALID_REPLICA_ASSIGNMENT", false, false, "The replica placement is not allowed."),
    (40, "INVALID_CONFIG", false, false, "A setting has an unknown name or a value that is not allowed."),
    (41, "NOT_CONTROLLER", true, false, "Another node is the controller."),
    (42, "INVALID_REQUEST", false, false, "The request contradicts itself or breaks a rule of the protocol."),
    (43, "UNSUPPORTED_FOR_MESSAGE_FORMAT", false, false, "The stored record format cannot do this."),
    (44, "POLICY_VIOLATION", false, false, "A policy of the cluster forbids it."),
    (45, "OUT_OF_ORDER_SEQUENCE_NUMBER", false, false, "A producer's sequence number leaves a gap or goes back."),
    (46, "DUPLICATE_SEQUENCE_NUMBER", false, false, "The batch is already stored; its offset is no longer remembered."),
    (
        47,
        "INVALID_PRODUCER_EPOCH",
        false,
        false,
        "The producer's epoch is older than the one the partition knows; abort and start over.",
    ),
    (48, "INVALID_TXN_STATE", false, false, "The transaction's state does not allow this."),
    (49, "INVALID_PRODUCER_ID_MAPPING", false, false, "The producer id does not belong to this transactional id."),
    (50, "INVALID_TRANSACTION_TIMEOUT", false, false, "The transaction timeout exceeds what the broker allows."),
    (
        51,
        "CONCURRENT_TRANSACTIONS",
        true,
        false,
        "The coordinator is still ending the transaction before; try again shortly.",
    ),
    (52, "TRANSACTION_COORDINATOR_FENCED", false, false, "A newer transaction coordinator has taken over."),
    (
        53,
        "TRANSACTIONAL_ID_AUTHORIZATION_FAILED",
        false,
        false,
        "The principal may not use the transactional id, or not in this way.",
    ),
    (54, "SECURITY_DISABLED", false, false, "The cluster has no authorizer."),
    (55, "OPERATION_NOT_ATTEMPTED", false, false, "Left undone because another part of the request failed."),
    (56, "KAFKA_STORAGE_ERROR", true, true, "The broker's disk failed."),
    (57, "LOG_DIR_NOT_FOUND", false, false, ""),
    (58, "SASL_AUTHENTICATION_FAILED", false, false, "The credentials were refused."),
    (59, "UNKNOWN_PRODUCER_ID", false, false, "The partition remembers nothing of this producer."),
    (60, "REASSIGNMENT_IN_PROGRESS", false, false, ""),
    (61, "DELEGATION_TOKEN_AUTH_DISABLED", false, false, ""),
    (62, "DELEGATION_TOKEN_NOT_FOUND", false, false, ""),
    (63, "DELEGATION_TOKEN_OWNER_MISMATCH", false, false, ""),
    (64, "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED", false, false, ""),
    (65, "DELEGATION_TOKEN_AUTHORIZATION_FAILED", false, false, ""),
    (66, "DELEGATION_TOKEN_EXPIRED", false, false, ""),
    (67, "INVALID_PRINCIPAL_TYPE", false, false, ""),
    (68, "NON_EMPTY_GROUP", false, false, "The group still has members."),
    (69, "GROUP_ID_NOT_FOUND", false, false, "There is no such group, or it is of another kind."),
    (70, "FETCH_SESSION_ID_NOT_FOUND", true, false, "The fetch session is gone; open a new one."),
    (71, "INVALID_FETCH_SESSION_EPOCH", true, false, "The fetch session is at another epoch; open a new one."),
    (72, "LISTENER_NOT_FOUND", true, true, ""),
    (73, "TOPIC_DELETION_DISABLED", false, false, ""),
    (74, "FENCED_LEADER_EPOCH", true, true, "The leader epoch known to the client is outdated."),
    (75, "UNKNOWN_LEADER_EPOCH", true, false, "The client knows a newer leader epoch than this broker does."),
    (
        76,
        "UNSUPPORTED_COMPRESSION_TYPE",
        false,
        false,
        "The compression is not allowed in this version of the request.",
    ),
    (77, "STALE_BROKER_EPOCH", false, false, ""),
    (78, "OFFSET_NOT_AVAILABLE", true, false, "A new leader does not know its high watermark yet."),
    (79, "MEMBER_ID_REQUIRED", false, false, ""),
    (80, "PREFERRED_LEADER_NOT_AVAILABLE", true, true, ""),
    (81, "GROUP_MAX_SIZE_REACHED", false, false, "The group has as many members as it may."),
    (82, "FENCED_INSTANCE_ID", false, false, ""),
    (83, "ELIGIBLE_LEADERS_NOT_AVAILABLE", true, true, ""),
    (84, "ELECTION_NOT_NEEDED", true, true, ""),
    (85, "NO_REASSIGNMENT_IN_PROGRESS", false, false, ""),
    (86, "GROUP_SUBSCRIBED_TO_TOPIC", false, false, "The group still subscribes to the topic."),
    (87, "INVALID_RECORD", false, false, "The broker's checks refused a record."),
    (88, "UNSTABLE_OFFSET_COMMIT", true, false, "A transaction has offsets pending."),
    (89, "THROTTLING_QUOTA_EXCEEDED", true, false, "A quota is used up; wait for the throttle time."),
    (90, "PRODUCER_FENCED", false, false, "A newer producer uses the transactional id; this one is finished."),
    (91, "RESOURCE_NOT_FOUND", false, false, "The request names something that does not exist."),
    (92, "DUPLICATE_RESOURCE", false, false, "The request names something twice."),
    (93, "UNACCEPTABLE_CREDENTIAL", false, false, "The credential breaks the rules for its mechanism."),
    (94, "INCONSISTENT_VOTER_SET", false, false, ""),
    (95, "INVALID_UPDATE_VERSION", false, false, ""),
    (96, "FEATURE_UPDATE_FAILED", false, false, ""),
    (97, "PRINCIPAL_DESERIALIZATION_FAILURE", false, false, ""),
    (98, "SNAPSHOT_NOT_FOUND", false, false, ""),
    (99, "POSITION_OUT_OF_RANGE", false, false, ""),
    (100, "UNKNOWN_TOPIC_ID", true, true, "This broker does not know the topic id, or not yet."),
    (101, "DUPLICATE_BROKER_REGISTRATION", false, false, ""),
    (102, "BROKER_ID_NOT_REGISTERED", false, false, ""),
    (
        103,
        "INCONSISTENT_TOPIC_ID",
        true,
        true,
        "The topic id belongs to another topic, as after deletion and re-creation.",
    ),
    (104, "INCONSISTENT_CLUSTER_ID", false, false, ""),
    (105, "TRANSACTIONAL_ID_NOT_FOUND", false, false, "The coordinator knows no such transactional id."),
    (106, "FETCH_SESSION_TOPIC_ID_ERROR", true, false, "The fetch session and the request disagree on topic ids."),
    (107, "INELIGIBLE_REPLICA", false, false, ""),
    (108, "NEW_LEADER_ELECTED", false, false, ""),
    (109, "OFFSET_MOVED_TO_TIERED_STORAGE", false, false, ""),
    (110, "FENCED_MEMBER_EPOCH", false, false, "The member's epoch is not the coordinator's; join again."),
    (111, "UNRELEASED_INSTANCE_ID", false, false, ""),
    (112, "UNSUPPORTED_ASSIGNOR", false, false, "The coordinator does not have the assignor asked for."),
    (
        113,
        "STALE_MEMBER_EPOCH",
        false,
        false,
        "The member's epoch is outdated; try again with the one of the next heartbeat.",
    ),
    (114, "MISMATCHED_ENDPOINT_TYPE", false, false, ""),
    (115, "UNSUPPORTED_ENDPOINT_TYPE", false, false, ""),
    (116, "UNKNOWN_CONTROLLER_ID", false, false, ""),
    (117, "UNKNOWN_SUBSCRIPTION_ID", false, false, "The metrics subscription has changed; ask for it again."),
    (118, "TELEMETRY_TOO_LARGE", false, false, "The metrics exceed the size the broker takes."),
    (119, "INVALID_REGISTRATION", false, false, ""),
    (
        120,
        "TRANSACTION_ABORTABLE",
        false,
        false,
        "The transaction failed and must be aborted; the producer stays usable.",
    ),
    (
        121,
        "INVALID_RECORD_STATE",
        false,
        false,
        "The records are not acquired by this member, or their state forbids the acknowledgement.",
    ),
    (
        122,
        "SHARE_SESSION_NOT_FOUND",
        true,
        false,
        "The share session is gone, and its acquired records are released; open a new one.",
    ),
    (123, "INVALID_SHARE_SESSION_EPOCH", true, false, "The share session is at another epoch; open a new one."),
    (
        124,
        "FENCED_STATE_EPOCH",
        false,
        false,
        "The share coordinator knows a newer state epoch for the share-partition.",
    ),
    (125, "INVALID_VOTER_KEY", false, false, ""),
    (126, "DUPLICATE_VOTER", false, false, ""),
    (127, "VOTER_NOT_FOUND", false, false, ""),
    (128, "INVALID_REGULAR_EXPRESSION", false, false, "The regular expression does not parse."),
    (
        129,
        "REBOOTSTRAP_REQUIRED",
        false,
        false,
        "The client should forget the cluster's nodes and start again from its bootstrap servers.",
    ),
    (130, "STREAMS_INVALID_TOPOLOGY", false, false, ""),
    (131, "STREAMS_INVALID_TOPOLOGY_EPOCH", false, false, ""),
    (132, "STREAMS_TOPOLOGY_FENCED", false, false, ""),
    (
        133,
        "SHARE_SESSION_LIMIT_REACHED",
        true,
        false,
        "The broker has as many share sessions as it may; try again later.",
    ),
    (134, "GROUP_DELETION_FAILED", false, false, "The group could not be deleted."),
    (135, "STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED", false, false, ""),
    (136, "CONTROLLER_ID_NOT_REGISTERED", false, false, ""),
];
