//! Topics and coordinators.

use crate::player::Player;
use kafka_share_messages::create_partitions_request::{CreatePartitionsAssignment, CreatePartitionsTopic};
use kafka_share_messages::create_topics_request::{CreatableReplicaAssignment, CreatableTopic, CreatableTopicConfig};
use kafka_share_messages::delete_topics_request::DeleteTopicState;
use kafka_share_messages::describe_topic_partitions_request::{Cursor, TopicRequest};
use kafka_share_messages::metadata_request::MetadataRequestTopic;
use kafka_share_messages::*;
use kafka_share_wire::{Str, Uuid};

fn new(name: &str, num_partitions: i32, replication_factor: i16) -> CreatableTopic {
    CreatableTopic { name: Str::from(name), num_partitions, replication_factor, ..Default::default() }
}

fn placed(name: &str, assignments: &[(i32, &[i32])]) -> CreatableTopic {
    let one = |(index, nodes): &(i32, &[i32])| CreatableReplicaAssignment {
        partition_index: *index,
        broker_ids: nodes.to_vec(),
        ..Default::default()
    };
    CreatableTopic { assignments: assignments.iter().map(one).collect(), ..new(name, -1, -1) }
}

fn configured(name: &str, settings: &[(&str, Option<&str>)]) -> CreatableTopic {
    let config = |(name, value): &(&str, Option<&str>)| CreatableTopicConfig {
        name: Str::from(*name),
        value: value.map(Str::from),
        ..Default::default()
    };
    CreatableTopic { configs: settings.iter().map(config).collect(), ..new(name, 1, 1) }
}

/// Names and error codes only: the answers' settings are compared with those of DescribeConfigs.
fn create(p: &mut Player, what: &str, topics: Vec<CreatableTopic>, validate_only: bool) {
    let request = CreateTopicsRequest { topics, timeout_ms: 10_000, validate_only, ..Default::default() };
    let answer = p.call(&request, 7);
    let mut lines: Vec<String> = answer
        .topics
        .iter()
        .map(|t| {
            let id = t.topic_id.is_zero();
            let configs = t.configs.as_ref().map(Vec::len);
            let message = t.error_message.as_ref().map(|m| m.is_empty());
            format!(
                "{} {:?} {message:?} {} {} no id {id} {configs:?} {:?}",
                t.name, t.error_code, t.num_partitions, t.replication_factor, t.topic_config_error_code
            )
        })
        .collect();
    lines.sort();
    p.lines.push(format!("create {what} -> {lines:?}"));
}

pub(crate) fn create_topics(p: &mut Player) {
    p.topic("ct.a", 1, &[]);
    create(p, "colliding", vec![new("ct_a", 1, 1)], false);
    create(p, "colliding with each other", vec![new("ct_x.y", 1, 1), new("ct.x_y", 1, 1)], true);
    create(p, "existing", vec![new("ct.a", 1, 1)], true);
    for (partitions, replicas) in [(0, 1), (-2, 1), (1, 0), (1, -2), (-1, -1), (-1, 1), (0, 0), (1, 2), (0, 2), (-1, 3)]
    {
        create(p, "numbers", vec![new("ct-n", partitions, replicas)], true);
    }
    create(p, "twice", vec![new("ct-n", 1, 1), new("ct-m", 1, 1), new("ct-n", 2, 1)], true);
    for name in
        ["", ".", "..", "a b", "ä", "__consumer_offsets", "__cluster_metadata", &"x".repeat(249), &"x".repeat(250)]
    {
        create(p, "name", vec![new(name, 1, 1)], true);
    }
    let assignments: [&[(i32, &[i32])]; 8] = [
        &[(0, &[1])],
        &[(0, &[1, 1])],
        &[(0, &[])],
        &[(1, &[1])],
        &[(0, &[1]), (0, &[1])],
        &[(0, &[1]), (1, &[])],
        &[(0, &[9])],
        &[(-1, &[1])],
    ];
    for assignment in assignments {
        create(p, "placed", vec![placed("ct-p", assignment)], true);
    }
    create(p, "placed and counted", vec![CreatableTopic { num_partitions: 1, ..placed("ct-p", &[(0, &[1])]) }], true);
    create(
        p,
        "placed and replicated",
        vec![CreatableTopic { replication_factor: 1, ..placed("ct-p", &[(0, &[1])]) }],
        true,
    );
    let settings: [&[(&str, Option<&str>)]; 12] = [
        &[("retention.ms", Some("1"))],
        &[("retention.ms", None)],
        &[("retention.ms", Some(""))],
        &[("retention.ms", Some("x"))],
        &[("retention.ms", Some("-2"))],
        &[("retention.ms", Some("1")), ("retention.ms", Some("2"))],
        &[("no.such", Some("1"))],
        &[("", Some("1"))],
        &[("cleanup.policy", Some("compact,delete"))],
        &[("cleanup.policy", Some(""))],
        &[("cleanup.policy", Some("delete,delete"))],
        &[("segment.bytes", Some("10"))],
    ];
    for settings in settings {
        create(p, &format!("settings {settings:?}"), vec![configured("ct-s", settings)], true);
    }
    let given = vec![configured("ct-given", &[("cleanup.policy", Some("delete,delete"))])];
    create(p, "listed twice", given, false);
    create(
        p,
        "bad settings and bad numbers",
        vec![CreatableTopic { num_partitions: 0, ..configured("ct-s", &[("x", Some("1"))]) }],
        true,
    );
    create(p, "nothing", vec![], false);
}

pub(crate) fn create_partitions(p: &mut Player) {
    p.topic("cp", 2, &[]);
    let topic = |name: &str, count, assignments: Option<&[&[i32]]>| CreatePartitionsTopic {
        name: Str::from(name),
        count,
        assignments: assignments.map(|all| {
            all.iter()
                .map(|ids| CreatePartitionsAssignment { broker_ids: ids.to_vec(), ..Default::default() })
                .collect()
        }),
        ..Default::default()
    };
    let lists = [
        vec![topic("cp", 2, None)],
        vec![topic("cp", 1, None)],
        vec![topic("cp", 0, None)],
        vec![topic("cp", -1, None)],
        vec![topic("cp", 3, None)],
        vec![topic("cp", 4, None), topic("cp", 5, None)],
        vec![topic("no-such", 3, None)],
        vec![topic("", 3, None)],
        vec![topic("cp", 3, Some(&[&[1]]))],
        vec![topic("cp", 3, Some(&[]))],
        vec![topic("cp", 3, Some(&[&[1], &[1]]))],
        vec![topic("cp", 3, Some(&[&[9]]))],
        vec![topic("cp", 3, Some(&[&[1, 1]]))],
        vec![topic("cp", 3, Some(&[&[]]))],
        vec![],
    ];
    for topics in lists {
        let what = format!(
            "{:?}",
            topics.iter().map(|t| (t.name.as_str(), t.count, t.assignments.as_ref().map(Vec::len))).collect::<Vec<_>>()
        );
        p.play_all(
            &what,
            &CreatePartitionsRequest { topics, timeout_ms: 10_000, validate_only: true, ..Default::default() },
            0..=3,
        );
    }
}

pub(crate) fn metadata(p: &mut Player) {
    let id = p.topic("md", 2, &[]);
    let cluster = p.call(&MetadataRequest { topics: Some(vec![]), ..Default::default() }, 12).cluster_id;
    p.mask(format!("{:?}", cluster.expect("an id")), "CLUSTER");
    let named = |name: &str| MetadataRequestTopic { name: Some(Str::from(name)), ..Default::default() };
    let with_id = |topic_id, name: Option<&str>| MetadataRequestTopic {
        topic_id,
        name: name.map(Str::from),
        ..Default::default()
    };
    for version in 1..=13 {
        for (what, topics) in [
            ("none", vec![]),
            ("one", vec![named("md")]),
            ("twice", vec![named("md"), named("md")]),
            ("unknown", vec![named("md-no")]),
            ("unknown twice", vec![named("md-no"), named("md-no")]),
            ("bad names", vec![named(""), named("a b"), named(".")]),
        ] {
            // Before v4 a topic that is asked for is created.
            if version < 4 && what.starts_with("unknown") {
                continue;
            }
            let request =
                MetadataRequest { topics: Some(topics), allow_auto_topic_creation: version < 4, ..Default::default() };
            p.play(what, &request, version);
        }
    }
    for version in 8..=13 {
        let request = MetadataRequest {
            topics: Some(vec![named("md")]),
            include_topic_authorized_operations: true,
            ..Default::default()
        };
        p.play("operations", &request, version);
    }
    for version in 8..=10 {
        let request =
            MetadataRequest { topics: Some(vec![]), include_cluster_authorized_operations: true, ..Default::default() };
        p.play("operations of the cluster", &request, version);
    }
    for version in 10..=13 {
        for (what, topics) in [
            ("by id", vec![with_id(id, None)]),
            ("by id twice", vec![with_id(id, None), with_id(id, None)]),
            ("by id and name", vec![with_id(id, Some("md"))]),
            ("by id and other name", vec![with_id(id, Some("mx"))]),
            ("by unknown id", vec![with_id(Uuid([9; 16]), None)]),
            ("by neither", vec![with_id(Uuid::ZERO, None)]),
            ("by id and another by name", vec![with_id(id, None), named("md")]),
        ] {
            let request =
                MetadataRequest { topics: Some(topics), allow_auto_topic_creation: version < 4, ..Default::default() };
            p.play(what, &request, version);
        }
    }
}

pub(crate) fn describe_topic_partitions(p: &mut Player) {
    p.topic("dtp-a", 3, &[]);
    p.topic("dtp-b", 2, &[]);
    let names = |names: &[&str]| -> Vec<TopicRequest> {
        names.iter().map(|name| TopicRequest { name: Str::from(*name), ..Default::default() }).collect()
    };
    let both: &[&str] = &["dtp-b", "dtp-a"];
    let cursors = [
        None,
        Some(("dtp-a", 0)),
        Some(("dtp-a", 1)),
        Some(("dtp-a", 3)),
        Some(("dtp-a", 9)),
        Some(("dtp-a", -1)),
        Some(("dtp-aa", 0)),
        Some(("dtp-b", 1)),
        Some(("dtp-c", 0)),
        Some(("", 0)),
    ];
    for topics in [both, &["dtp-a"], &["dtp-a", "dtp-a"], &["dtp-no", "dtp-a"], &["a b", "dtp-a"]] {
        for limit in [2000, 3, 1, 0, -1] {
            for cursor in cursors {
                let request = DescribeTopicPartitionsRequest {
                    topics: names(topics),
                    response_partition_limit: limit,
                    cursor: cursor.map(|(name, partition_index)| Cursor {
                        topic_name: Str::from(name),
                        partition_index,
                        ..Default::default()
                    }),
                    ..Default::default()
                };
                p.play(&format!("{topics:?} {limit} {cursor:?}"), &request, 0);
            }
        }
    }
}

pub(crate) fn coordinators(p: &mut Player) {
    // The internal topics must be there.
    for key_type in [0, 1] {
        let end = std::time::Instant::now() + std::time::Duration::from_secs(120);
        loop {
            let request =
                FindCoordinatorRequest { key_type, coordinator_keys: vec![Str::from("k")], ..Default::default() };
            if p.call(&request, 4).coordinators[0].error_code.is_ok() {
                break;
            }
            assert!(std::time::Instant::now() < end);
            std::thread::park_timeout(std::time::Duration::from_millis(50));
        }
    }
    for version in 0..=3 {
        for key_type in [0, 1, 2, 3, -1] {
            if version == 0 && key_type != 0 {
                continue;
            }
            for key in ["k", ""] {
                p.play(
                    &format!("{key_type} {key:?}"),
                    &FindCoordinatorRequest { key: Str::from(key), key_type, ..Default::default() },
                    version,
                );
            }
        }
    }
    for version in 4..=6 {
        for key_type in [0, 1, 3, -1] {
            for keys in [&["k"][..], &[], &["k", "k"], &["", "k"], &["a", "b", "c"]] {
                let coordinator_keys = keys.iter().map(|key| Str::from(*key)).collect();
                p.play(
                    &format!("{key_type} {keys:?}"),
                    &FindCoordinatorRequest { key_type, coordinator_keys, ..Default::default() },
                    version,
                );
            }
        }
    }
    for keys in [
        &["k"][..],
        &["g:x:0"],
        &["g:AAAAAAAAAAAAAAAAAAAAAQ:x"],
        &[""],
        &[":AAAAAAAAAAAAAAAAAAAAAQ:0"],
        &["g:AAAAAAAAAAAAAAAAAAAAAQ:-1x"],
    ] {
        for version in 4..=6 {
            let coordinator_keys = keys.iter().map(|key| Str::from(*key)).collect();
            p.play(
                &format!("2 {keys:?}"),
                &FindCoordinatorRequest { key_type: 2, coordinator_keys, ..Default::default() },
                version,
            );
        }
    }
}

pub(crate) fn delete_topics(p: &mut Player) {
    let id = p.topic("dt", 1, &[]);
    p.topic("dt2", 1, &[]);
    let state =
        |name: Option<&str>, topic_id| DeleteTopicState { name: name.map(Str::from), topic_id, ..Default::default() };
    let lists = [
        vec![state(Some("no-such"), Uuid::ZERO)],
        vec![state(Some("no-such"), Uuid::ZERO), state(Some("no-such"), Uuid::ZERO)],
        vec![state(None, Uuid([9; 16]))],
        vec![state(None, Uuid([9; 16])), state(None, Uuid([9; 16]))],
        vec![state(Some("dt"), id)],
        vec![state(None, Uuid::ZERO)],
        vec![state(Some("dt"), Uuid::ZERO), state(Some("dt"), Uuid::ZERO)],
        vec![state(Some("dt"), Uuid::ZERO), state(None, id)],
        vec![state(Some(""), Uuid::ZERO)],
        vec![],
    ];
    for topics in lists {
        let what =
            format!("{:?}", topics.iter().map(|t| (t.name.as_deref(), t.topic_id.is_zero())).collect::<Vec<_>>());
        p.latest(&what, &DeleteTopicsRequest { topics, timeout_ms: 10_000, ..Default::default() });
    }
    for version in 1..=5 {
        p.play(
            "two",
            &DeleteTopicsRequest {
                topic_names: vec![Str::from("no-such"), Str::from("no-such")],
                timeout_ms: 10_000,
                ..Default::default()
            },
            version,
        );
    }
}
