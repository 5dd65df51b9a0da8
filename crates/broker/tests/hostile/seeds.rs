//! Valid requests of every kind that the broker serves, about one topic, one group and one transactional id; the topic's id
//! is left open.

use bytes::Bytes;
use kafka_share_messages::*;
use kafka_share_wire::records::{BatchBuilder, BatchOptions};
use kafka_share_wire::{Str, Uuid};

/// Stands for the id of topic `t`.
const TOPIC: Uuid = Uuid([7; 16]);

fn text(text: &'static str) -> Str {
    Str::from_static(text)
}

fn add<R: Request>(all: &mut Vec<Bytes>, request: &R) {
    for version in R::MIN_VERSION..=R::MAX_VERSION {
        // Some fields are not in all versions.
        if let Ok(frame) = frame::encode_request(request, version, 1, &text("c")) {
            all.push(Bytes::from(frame.to_vec()).slice(4..));
        }
    }
}

/// Frames without their size prefix.
pub(crate) fn seeds() -> Vec<Bytes> {
    let mut all = Vec::new();
    transactions(&mut all);
    data(&mut all);
    share_groups(&mut all);
    administration(&mut all);
    all
}

fn transactions(all: &mut Vec<Bytes>) {
    for (producer_id, producer_epoch) in [(-1, -1), (0, 0), (0, 1)] {
        for keep_prepared_txn in [false, true] {
            add(
                all,
                &InitProducerIdRequest {
                    transactional_id: Some(text("x")),
                    transaction_timeout_ms: 1000,
                    producer_id,
                    producer_epoch,
                    keep_prepared_txn,
                    ..Default::default()
                },
            );
        }
    }
    add(all, &InitProducerIdRequest { transactional_id: None, ..Default::default() });
    let topics = || {
        vec![add_partitions_to_txn_request::AddPartitionsToTxnTopic {
            name: text("t"),
            partitions: vec![0, 1],
            ..Default::default()
        }]
    };
    for producer_epoch in 0..3 {
        for committed in [false, true] {
            let transactional_id = text("x");
            add(
                all,
                &EndTxnRequest { transactional_id, producer_id: 0, producer_epoch, committed, ..Default::default() },
            );
        }
        add(
            all,
            &AddPartitionsToTxnRequest {
                v3_and_below_transactional_id: text("x"),
                v3_and_below_producer_id: 0,
                v3_and_below_producer_epoch: producer_epoch,
                v3_and_below_topics: topics(),
                ..Default::default()
            },
        );
    }
    let transactions = vec![add_partitions_to_txn_request::AddPartitionsToTxnTransaction {
        transactional_id: text("x"),
        topics: topics(),
        ..Default::default()
    }];
    add(all, &AddPartitionsToTxnRequest { transactions, ..Default::default() });
    let topics = vec![write_txn_markers_request::WritableTxnMarkerTopic {
        name: text("t"),
        partition_indexes: vec![0, 1],
        ..Default::default()
    }];
    let markers = vec![write_txn_markers_request::WritableTxnMarker { topics, ..Default::default() }];
    add(all, &WriteTxnMarkersRequest { markers, ..Default::default() });
    add(all, &DescribeTransactionsRequest { transactional_ids: vec![text("x")], ..Default::default() });
    add(all, &ListTransactionsRequest { transactional_id_pattern: Some(text("x.*")), ..Default::default() });
    let topics = vec![describe_producers_request::TopicRequest {
        name: text("t"),
        partition_indexes: vec![0, 1],
        ..Default::default()
    }];
    add(all, &DescribeProducersRequest { topics, ..Default::default() });
}

fn batch(options: BatchOptions) -> Option<Bytes> {
    let mut builder = BatchBuilder::new(options);
    for value in [&b"a"[..], b"b"] {
        builder.append(1_700_000_000_000, None, Some(value), []).ok()?;
    }
    Some(builder.finish().ok()?.freeze())
}

fn data(all: &mut Vec<Bytes>) {
    let transactional =
        BatchOptions { producer_id: 0, producer_epoch: 0, base_sequence: 0, transactional: true, ..Default::default() };
    let idempotent = BatchOptions { transactional: false, producer_id: 5, ..transactional };
    for (options, id) in [(BatchOptions::default(), None), (idempotent, None), (transactional, Some(text("x")))] {
        for acks in [0, -1] {
            let data = produce_request::PartitionProduceData { records: batch(options), ..Default::default() };
            let topic = produce_request::TopicProduceData {
                name: text("t"),
                topic_id: TOPIC,
                partition_data: vec![data],
                ..Default::default()
            };
            let transactional_id = id.clone();
            add(all, &ProduceRequest { transactional_id, acks, topic_data: vec![topic], ..Default::default() });
        }
    }
    for (session_epoch, max_wait_ms) in [(-1, 0), (0, 5000), (1, 5000), (2, 100)] {
        let partition =
            |partition| fetch_request::FetchPartition { partition, partition_max_bytes: 1 << 16, ..Default::default() };
        let topic = fetch_request::FetchTopic {
            topic: text("t"),
            topic_id: TOPIC,
            partitions: vec![partition(0), partition(1)],
            ..Default::default()
        };
        let request = FetchRequest {
            replica_id: -1,
            max_wait_ms,
            min_bytes: 1000,
            max_bytes: 1 << 20,
            isolation_level: 1,
            session_epoch,
            topics: vec![topic],
            ..Default::default()
        };
        add(all, &request);
    }
    let partitions = vec![list_offsets_request::ListOffsetsPartition { timestamp: -1, ..Default::default() }];
    let topics = vec![list_offsets_request::ListOffsetsTopic { name: text("t"), partitions, ..Default::default() }];
    add(all, &ListOffsetsRequest { replica_id: -1, topics, ..Default::default() });
    let partitions = vec![delete_records_request::DeleteRecordsPartition { offset: 1, ..Default::default() }];
    let topics = vec![delete_records_request::DeleteRecordsTopic { name: text("t"), partitions, ..Default::default() }];
    add(all, &DeleteRecordsRequest { topics, ..Default::default() });
}

fn share_groups(all: &mut Vec<Bytes>) {
    for member_epoch in [0, 1, -1] {
        let subscribed_topic_names = Some(vec![text("t")]);
        let (group_id, member_id) = (text("g"), text("m"));
        add(
            all,
            &ShareGroupHeartbeatRequest {
                group_id,
                member_id,
                member_epoch,
                subscribed_topic_names,
                ..Default::default()
            },
        );
    }
    for share_session_epoch in [0, 1, 2, -1] {
        for acknowledge_type in 0..=4 {
            let acks = share_fetch_request::AcknowledgementBatch {
                last_offset: 1,
                acknowledge_types: vec![acknowledge_type],
                ..Default::default()
            };
            let partition = share_fetch_request::FetchPartition {
                acknowledgement_batches: if share_session_epoch == 0 { Vec::new() } else { vec![acks] },
                ..Default::default()
            };
            let topic =
                share_fetch_request::FetchTopic { topic_id: TOPIC, partitions: vec![partition], ..Default::default() };
            add(
                all,
                &ShareFetchRequest {
                    group_id: Some(text("g")),
                    member_id: Some(text("m")),
                    share_session_epoch,
                    max_wait_ms: 1000,
                    min_bytes: 1,
                    max_bytes: 1 << 20,
                    max_records: 100,
                    batch_size: 100,
                    topics: vec![topic],
                    ..Default::default()
                },
            );
        }
    }
    staged_acks(all);
    other_acks(all);
    add(all, &ShareGroupDescribeRequest { group_ids: vec![text("g")], ..Default::default() });
    let groups = vec![describe_share_group_offsets_request::DescribeShareGroupOffsetsRequestGroup {
        group_id: text("g"),
        topics: None,
        ..Default::default()
    }];
    add(all, &DescribeShareGroupOffsetsRequest { groups, ..Default::default() });
}

fn other_acks(all: &mut Vec<Bytes>) {
    for (share_session_epoch, acknowledge_type) in [(1, 1), (2, 2), (1, 3), (1, 4), (-1, 1), (0, 1)] {
        let batch = share_acknowledge_request::AcknowledgementBatch {
            last_offset: 1,
            acknowledge_types: vec![acknowledge_type],
            ..Default::default()
        };
        let partition = share_acknowledge_request::AcknowledgePartition {
            acknowledgement_batches: vec![batch],
            ..Default::default()
        };
        let topic = share_acknowledge_request::AcknowledgeTopic {
            topic_id: TOPIC,
            partitions: vec![partition],
            ..Default::default()
        };
        let request = ShareAcknowledgeRequest {
            group_id: Some(text("g")),
            member_id: Some(text("m")),
            share_session_epoch,
            is_renew_ack: acknowledge_type == 4,
            topics: vec![topic],
            ..Default::default()
        };
        add(all, &request);
    }
    let topics = vec![alter_share_group_offsets_request::AlterShareGroupOffsetsRequestTopic {
        topic_name: text("t"),
        partitions: vec![Default::default()],
        ..Default::default()
    }];
    add(all, &AlterShareGroupOffsetsRequest { group_id: text("g"), topics, ..Default::default() });
    let topics = vec![delete_share_group_offsets_request::DeleteShareGroupOffsetsRequestTopic {
        topic_name: text("t"),
        ..Default::default()
    }];
    add(all, &DeleteShareGroupOffsetsRequest { group_id: text("g"), topics, ..Default::default() });
}

fn staged_acks(all: &mut Vec<Bytes>) {
    let batch = txn_share_acknowledge_request::AcknowledgementBatch {
        last_offset: 1,
        acknowledge_types: vec![1],
        ..Default::default()
    };
    let partition = txn_share_acknowledge_request::AcknowledgePartition {
        acknowledgement_batches: vec![batch],
        ..Default::default()
    };
    let topic = txn_share_acknowledge_request::AcknowledgeTopic {
        topic_id: TOPIC,
        partitions: vec![partition],
        ..Default::default()
    };
    add(
        all,
        &TxnShareAcknowledgeRequest {
            transactional_id: Some(text("x")),
            group_id: text("g"),
            member_id: text("m"),
            member_epoch: 1,
            topics: vec![topic],
            ..Default::default()
        },
    );
    let topics = vec![add_share_acks_to_txn_request::AddShareAcksToTxnTopic {
        topic_id: TOPIC,
        partitions: vec![0],
        ..Default::default()
    }];
    let (transactional_id, group_id) = (text("x"), text("g"));
    add(all, &AddShareAcksToTxnRequest { transactional_id, group_id, topics, ..Default::default() });
}

fn administration(all: &mut Vec<Bytes>) {
    add(all, &ApiVersionsRequest::default());
    let topic = |name| metadata_request::MetadataRequestTopic { name: Some(text(name)), ..Default::default() };
    for name in ["t", "u"] {
        let topics = Some(vec![topic(name)]);
        add(all, &MetadataRequest { topics, allow_auto_topic_creation: true, ..Default::default() });
        let topics = vec![create_topics_request::CreatableTopic {
            name: text(name),
            num_partitions: 2,
            replication_factor: 1,
            ..Default::default()
        }];
        add(all, &CreateTopicsRequest { topics, ..Default::default() });
        let topic = delete_topics_request::DeleteTopicState { name: Some(text(name)), ..Default::default() };
        let topic_names = vec![text(name)];
        add(all, &DeleteTopicsRequest { topics: vec![topic], topic_names, ..Default::default() });
    }
    add(all, &MetadataRequest { topics: None, ..Default::default() });
    let topics = vec![describe_topic_partitions_request::TopicRequest { name: text("t"), ..Default::default() }];
    add(all, &DescribeTopicPartitionsRequest { topics, response_partition_limit: 10, ..Default::default() });
    for key_type in 0..3 {
        let coordinator_keys = vec![text("x")];
        // By one key in old versions, by several in new ones.
        add(all, &FindCoordinatorRequest { key_type, coordinator_keys, ..Default::default() });
        add(all, &FindCoordinatorRequest { key: text("x"), key_type, ..Default::default() });
    }
    add(all, &DescribeClusterRequest::default());
    add(all, &ListGroupsRequest::default());
    add(all, &DeleteGroupsRequest { groups_names: vec![text("g")], ..Default::default() });
    add(all, &ListConfigResourcesRequest::default());
    for (resource_type, name, key) in [(2, "t", "retention.ms"), (32, "g", "share.record.lock.duration.ms")] {
        let resource = describe_configs_request::DescribeConfigsResource {
            resource_type,
            resource_name: text(name),
            configuration_keys: None,
            ..Default::default()
        };
        add(all, &DescribeConfigsRequest { resources: vec![resource], ..Default::default() });
        let config = incremental_alter_configs_request::AlterableConfig {
            name: text(key),
            value: Some(text("20000")),
            ..Default::default()
        };
        let resource = incremental_alter_configs_request::AlterConfigsResource {
            resource_type,
            resource_name: text(name),
            configs: vec![config],
            ..Default::default()
        };
        add(all, &IncrementalAlterConfigsRequest { resources: vec![resource], ..Default::default() });
    }
    let topics = vec![create_partitions_request::CreatePartitionsTopic {
        name: text("t"),
        count: 3,
        assignments: None,
        ..Default::default()
    }];
    add(all, &CreatePartitionsRequest { topics, ..Default::default() });
}
