//! Records, their offsets, their producers.

use crate::player::{Player, batch, produce as request};
use kafka_share_messages::delete_records_request::{DeleteRecordsPartition, DeleteRecordsTopic};
use kafka_share_messages::fetch_request::{FetchPartition, FetchTopic};
use kafka_share_messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
use kafka_share_messages::produce_request::{PartitionProduceData, TopicProduceData};
use kafka_share_messages::*;
use kafka_share_wire::records::BatchOptions;
use kafka_share_wire::{Str, Uuid};

fn numbered(producer_id: i64, producer_epoch: i16, base_sequence: i32) -> BatchOptions {
    BatchOptions { producer_id, producer_epoch, base_sequence, ..Default::default() }
}

pub(crate) fn produce(p: &mut Player) {
    let id = p.topic("pr", 2, &[]);
    p.append(id, &[1000]);
    let plain = |times: &[i64]| batch(BatchOptions::default(), times);
    for version in 3..=12 {
        let mut by_name = request(Uuid::ZERO, plain(&[1000]));
        by_name.topic_data[0].name = Str::from("pr");
        p.play("by name", &by_name, version);
    }
    for acks in [1, -1, 2, -2] {
        p.play(&format!("acks {acks}"), &ProduceRequest { acks, ..request(id, plain(&[1])) }, 13);
    }
    p.play("nothing", &request(id, bytes::Bytes::new()), 13);
    p.play("two batches", &request(id, [plain(&[1]), plain(&[2])].concat().into()), 13);
    p.play("no records", &request(id, plain(&[])), 13);
    p.play("an unknown topic", &request(Uuid([9; 16]), plain(&[1])), 13);
    let part = |index| PartitionProduceData { index, records: Some(plain(&[1])), ..Default::default() };
    let of = |parts: &[i32]| TopicProduceData {
        topic_id: id,
        partition_data: parts.iter().map(|i| part(*i)).collect(),
        ..Default::default()
    };
    let with = |topic_data| ProduceRequest { topic_data, ..request(id, plain(&[1])) };
    p.play("an unknown partition", &with(vec![of(&[7])]), 13);
    p.play("a partition twice", &with(vec![of(&[0, 0])]), 13);
    p.play("a topic twice", &with(vec![of(&[0]), of(&[0])]), 13);
    p.play("no topics", &with(vec![]), 13);
    for (what, options) in [
        ("first at 5", numbered(900, 0, 5)),
        ("next", numbered(900, 0, 6)),
        ("again", numbered(900, 0, 6)),
        ("gap", numbered(900, 0, 9)),
        ("older", numbered(900, 0, 4)),
        ("next epoch at 3", numbered(900, 1, 3)),
        ("next epoch at 0", numbered(900, 1, 0)),
        ("old epoch", numbered(900, 0, 7)),
        ("last sequence", numbered(901, 0, i32::MAX)),
        ("wrapped", numbered(901, 0, 0)),
        ("no sequence", numbered(902, 0, -1)),
        ("no epoch", numbered(903, -1, 0)),
        ("transactional without an id", BatchOptions { transactional: true, ..numbered(904, 0, 0) }),
    ] {
        for version in [12, 13] {
            let mut both = request(id, batch(options, &[1000]));
            both.topic_data[0].name = Str::from("pr");
            p.play(what, &both, version);
        }
    }
    let mut both = ProduceRequest {
        transactional_id: Some(Str::from("unknown")),
        ..request(id, batch(BatchOptions { transactional: true, ..numbered(905, 0, 0) }, &[1]))
    };
    both.topic_data[0].name = Str::from("pr");
    for version in [9, 10, 11, 12, 13] {
        p.play("unknown transactional id", &both, version);
    }
    let times = p.topic("pr-times", 1, &[("message.timestamp.before.max.ms", "1000")]);
    p.append(times, &[std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis() as i64]);
    p.play("no time", &request(times, plain(&[-1])), 13);
    let small = p.topic("pr-small", 1, &[("max.message.bytes", "80")]);
    p.append(small, &[1]);
    p.play("too large", &request(small, plain(&[1, 2, 3, 4, 5, 6, 7])), 13);
}

fn offsets(name: &str, parts: &[(i32, i32, i64)]) -> ListOffsetsTopic {
    let part = |(partition_index, current_leader_epoch, timestamp): &(i32, i32, i64)| ListOffsetsPartition {
        partition_index: *partition_index,
        current_leader_epoch: *current_leader_epoch,
        timestamp: *timestamp,
        ..Default::default()
    };
    ListOffsetsTopic { name: Str::from(name), partitions: parts.iter().map(part).collect(), ..Default::default() }
}

fn list(p: &mut Player, topics: Vec<ListOffsetsTopic>, versions: std::ops::RangeInclusive<i16>) {
    let what = format!(
        "{:?}",
        topics
            .iter()
            .map(|t| (
                t.name.as_str(),
                t.partitions
                    .iter()
                    .map(|p| (p.partition_index, p.current_leader_epoch, p.timestamp))
                    .collect::<Vec<_>>()
            ))
            .collect::<Vec<_>>()
    );
    for isolation_level in [0, 1] {
        let request = ListOffsetsRequest {
            isolation_level,
            topics: topics.clone(),
            replica_id: -1,
            timeout_ms: 1000,
            ..Default::default()
        };
        for version in versions.clone() {
            if version < 2 && isolation_level == 1 {
                continue;
            }
            p.play_as(&what, &request, version, |answer| {
                // In the order of a hash map.
                answer.topics.sort_by(|a, b| a.name.as_str().cmp(b.name.as_str()));
                answer.topics.iter_mut().for_each(|topic| topic.partitions.sort_by_key(|p| p.partition_index));
            });
        }
    }
}

fn delete_to(p: &mut Player, name: &str, offset: i64) {
    let part = DeleteRecordsPartition { offset, ..Default::default() };
    let topic = DeleteRecordsTopic { name: Str::from(name), partitions: vec![part], ..Default::default() };
    let answer = p.call(&DeleteRecordsRequest { topics: vec![topic], timeout_ms: 10_000, ..Default::default() }, 2);
    assert!(answer.topics[0].partitions[0].error_code.is_ok());
}

pub(crate) fn list_offsets(p: &mut Player) {
    p.topic("lo-empty", 1, &[]);
    let times = [i64::MIN, -7, -6, -5, -4, -3, -2, -1, 0, 50, 100, 150, 200, 201, i64::MAX];
    for time in times {
        list(p, vec![offsets("lo-empty", &[(0, -1, time)])], 1..=11);
    }
    let id = p.topic("lo", 1, &[]);
    for batch in [&[100, 50, 60][..], &[90], &[200, 200], &[10, 200]] {
        p.append(id, batch);
    }
    for time in times {
        list(p, vec![offsets("lo", &[(0, -1, time)])], 4..=11);
    }
    list(p, vec![offsets("lo", &[(0, -1, -1), (0, -1, -2)])], 9..=11);
    list(p, vec![offsets("lo", &[(0, -1, -1)]), offsets("lo", &[(0, -1, -2)])], 9..=11);
    list(p, vec![offsets("lo", &[(0, 0, -1), (1, -1, -1), (-1, -1, -1)])], 9..=11);
    list(p, vec![offsets("lo", &[(0, 5, -1)]), offsets("lo-no", &[(0, -1, -1)]), offsets("", &[(0, -1, -1)])], 9..=11);
    list(p, vec![], 9..=11);
    // The batch's greatest time is deleted, the batch is not.
    delete_to(p, "lo", 1);
    for time in [80, 100, 55, -3, -2] {
        list(p, vec![offsets("lo", &[(0, -1, time)])], 9..=11);
    }
    delete_to(p, "lo", 5);
    for time in [80, 200, 201, -3, -2] {
        list(p, vec![offsets("lo", &[(0, -1, time)])], 9..=11);
    }
    let own = p.topic("lo-append", 1, &[("message.timestamp.type", "LogAppendTime")]);
    p.append(own, &[1, 2, 3]);
    delete_to(p, "lo-append", 1);
    for time in [0, 5, -3] {
        let request = ListOffsetsRequest {
            topics: vec![offsets("lo-append", &[(0, -1, time)])],
            replica_id: -1,
            ..Default::default()
        };
        let answer = p.call(&request, 11);
        let part = &answer.topics[0].partitions[0];
        p.lines.push(format!(
            "append time {time} -> {:?} {} {} {}",
            part.error_code,
            part.offset,
            part.timestamp > 5,
            part.leader_epoch
        ));
    }
    let none = p.topic("lo-untimed", 1, &[]);
    p.append(none, &[-1, -1]);
    for time in [0, -3, -2, -1] {
        list(p, vec![offsets("lo-untimed", &[(0, -1, time)])], 9..=11);
    }
}

pub(crate) fn delete_records(p: &mut Player) {
    let id = p.topic("dr", 1, &[]);
    p.append(id, &[1, 2, 3]);
    p.append(id, &[1, 2, 3]);
    p.topic("dr-compact", 1, &[("cleanup.policy", "compact")]);
    let part = |(partition_index, offset): &(i32, i64)| DeleteRecordsPartition {
        partition_index: *partition_index,
        offset: *offset,
        ..Default::default()
    };
    let topic = |name: &str, parts: &[(i32, i64)]| DeleteRecordsTopic {
        name: Str::from(name),
        partitions: parts.iter().map(part).collect(),
        ..Default::default()
    };
    let lists = [
        vec![topic("dr", &[(0, 7)])],
        vec![topic("dr", &[(0, -2)])],
        vec![topic("dr", &[(0, 0)])],
        vec![topic("dr", &[(0, 2)])],
        vec![topic("dr", &[(0, 1)])],
        vec![topic("dr", &[(1, 1), (-1, 0)])],
        vec![topic("dr-no", &[(0, 1)])],
        vec![topic("dr", &[(0, 3), (0, 4)])],
        vec![topic("dr", &[(0, -1)])],
        vec![topic("dr-compact", &[(0, 0)])],
        vec![topic("", &[(0, 0)])],
        vec![],
    ];
    for topics in lists {
        let what = format!(
            "{:?}",
            topics
                .iter()
                .map(|t| (
                    t.name.as_str(),
                    t.partitions.iter().map(|p| (p.partition_index, p.offset)).collect::<Vec<_>>()
                ))
                .collect::<Vec<_>>()
        );
        for version in 0..=2 {
            let request = DeleteRecordsRequest { topics: topics.clone(), timeout_ms: 10_000, ..Default::default() };
            let mut answer = p.call(&request, version);
            answer.topics.sort_by(|a, b| a.name.as_str().cmp(b.name.as_str()));
            answer.topics.iter_mut().for_each(|t| t.partitions.sort_by_key(|p| p.partition_index));
            let lines: Vec<_> = answer
                .topics
                .iter()
                .map(|t| {
                    (
                        t.name.as_str().to_owned(),
                        t.partitions
                            .iter()
                            .map(|p| (p.partition_index, p.low_watermark, p.error_code))
                            .collect::<Vec<_>>(),
                    )
                })
                .collect();
            p.lines.push(format!("delete v{version} {what} -> {lines:?}"));
        }
    }
}

pub(crate) fn fetch(p: &mut Player) {
    let id = p.topic("fe", 2, &[]);
    for times in [[1, 2], [3, 4], [5, 6]] {
        p.append(id, &times);
    }
    let part = |partition: i32, fetch_offset: i64, partition_max_bytes: i32| FetchPartition {
        partition,
        fetch_offset,
        partition_max_bytes,
        current_leader_epoch: -1,
        last_fetched_epoch: -1,
        ..Default::default()
    };
    let of = |partitions: Vec<FetchPartition>| FetchTopic {
        topic_id: id,
        topic: Str::from("fe"),
        partitions,
        ..Default::default()
    };
    let big = 1 << 20;
    let cases = [
        ("all", vec![of(vec![part(0, 0, big)])], big),
        ("inside a batch", vec![of(vec![part(0, 3, big)])], big),
        ("the end", vec![of(vec![part(0, 6, big)])], big),
        ("beyond", vec![of(vec![part(0, 7, big)])], big),
        ("negative", vec![of(vec![part(0, -1, big)])], big),
        ("no bytes of the partition", vec![of(vec![part(0, 0, 0)])], big),
        ("one byte of the partition", vec![of(vec![part(0, 0, 1)])], big),
        ("no bytes", vec![of(vec![part(0, 0, big)])], 0),
        ("twice", vec![of(vec![part(0, 0, big), part(0, 2, big)])], big),
        ("topic twice", vec![of(vec![part(0, 4, big)]), of(vec![part(1, 0, big), part(0, 2, big)])], big),
        ("unknown partition", vec![of(vec![part(5, 0, big), part(-1, 0, big)])], big),
        ("future epoch", vec![of(vec![FetchPartition { current_leader_epoch: 9, ..part(0, 0, big) }])], big),
        ("present epoch", vec![of(vec![FetchPartition { current_leader_epoch: 0, ..part(0, 0, 1) }])], big),
        ("diverging", vec![of(vec![FetchPartition { last_fetched_epoch: 7, ..part(0, 2, 1) }])], big),
        ("a known past", vec![of(vec![FetchPartition { last_fetched_epoch: 0, ..part(0, 2, 1) }])], big),
        ("nothing", vec![], big),
    ];
    for (what, topics, max_bytes) in cases {
        for isolation_level in [0, 1] {
            for version in 4..=18 {
                let mut topics = topics.clone();
                for topic in &mut topics {
                    if version >= 13 {
                        topic.topic = Str::default()
                    } else {
                        topic.topic_id = Uuid::ZERO
                    }
                    for part in &mut topic.partitions {
                        if version < 9 {
                            part.current_leader_epoch = -1
                        }
                        if version < 12 {
                            part.last_fetched_epoch = -1
                        }
                    }
                }
                let request = FetchRequest {
                    session_epoch: -1,
                    max_bytes,
                    isolation_level,
                    topics,
                    replica_id: -1,
                    ..Default::default()
                };
                p.play(what, &request, version);
            }
        }
    }
}

pub(crate) fn producers(p: &mut Player) {
    let id = p.topic("po", 1, &[]);
    p.append(id, &[1]);
    p.play("old record", &request(id, batch(numbered(950, 0, 0), &[5_000, 4_000])), 13);
    let topic = describe_producers_request::TopicRequest {
        name: Str::from("po"),
        partition_indexes: vec![0, 0, 3],
        ..Default::default()
    };
    p.play("", &DescribeProducersRequest { topics: vec![topic], ..Default::default() }, 0);
    let ids = |ids: &[&str]| ids.iter().map(|id| Str::from(*id)).collect();
    for names in [&["no-such", "no-such"][..], &[""], &[]] {
        p.play(
            &format!("{names:?}"),
            &DescribeTransactionsRequest { transactional_ids: ids(names), ..Default::default() },
            0,
        );
    }
}
