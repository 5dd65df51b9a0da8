//! Group settings with their ranges, and what administrators are refused.

use std::net::SocketAddr;

use kafka_share_messages::share_group_describe_response::DescribedGroup;
use kafka_share_messages::{
    DeleteGroupsRequest, DeleteShareGroupOffsetsRequest, DescribeShareGroupOffsetsRequest, ListGroupsRequest,
    ShareGroupDescribeRequest, delete_share_group_offsets_request, describe_share_group_offsets_request,
};
use kafka_share_wire::Str;

use crate::player::{A, B, Player};

/// Settings, one by one, at and beyond the ends of their ranges.
pub(crate) fn settings(address: SocketAddr) -> Vec<String> {
    let mut p = Player::new(address, "settings", 1, 20_000);
    let ranges: &[(&str, &[&str])] = &[
        ("share.record.lock.duration.ms", &["999", "1000", "60000", "60001", "0", "-1", "x", ""]),
        ("share.delivery.count.limit", &["1", "2", "10", "11"]),
        ("share.partition.max.record.locks", &["99", "100", "4000", "4001"]),
        ("share.heartbeat.interval.ms", &["99", "100", "15000", "15001"]),
        ("share.session.timeout.ms", &["999", "1000", "60000", "60001"]),
        ("share.assignment.interval.ms", &["-1", "0", "15000", "15001"]),
        ("share.isolation.level", &["read_committed", "READ_COMMITTED", "none", ""]),
        ("share.renew.acknowledge.enable", &["true", "FALSE", "yes"]),
        ("errors.deadletterqueue.copy.record.enable", &["true", "1"]),
        ("errors.deadletterqueue.topic.name", &["dlq.a", "other", "__x", "a b", ""]),
        (
            "share.auto.offset.reset",
            &[
                "earliest",
                "latest",
                "none",
                "Earliest",
                "by_duration",
                "by_duration:",
                "by_duration:PT1H",
                "by_duration:P1D",
                "by_duration:P1DT2H3M4.5S",
                "by_duration:-PT1H",
                "by_duration:PT-1H",
                "by_duration:P1Y",
                "by_duration:1H",
                "by_duration:PT",
                "by_duration:pt1h",
                "by_duration:PT0S",
                "by_duration:PT1.5H",
                "by_duration:PTinfS",
                "by_duration:PT1,5S",
                "by_duration:PT1H-1M",
                "by_duration:P-1DT25H",
                "by_duration:PT1M1H",
                "by_duration:PT.5S",
                "by_duration:P9223372036854775807D",
                "by_duration: PT1H",
            ],
        ),
        ("no.such.setting", &["1"]),
    ];
    for (name, values) in ranges {
        for value in *values {
            let (code, _) = p.try_configure(&[(name, value)]);
            p.say(format!("{name}={value} -> {code:?}"));
        }
    }
    let (code, _) = p.try_configure(&[("share.delivery.count.limit", "3"), ("share.delivery.count.limit", "4")]);
    p.say(format!("twice -> {code:?}"));
    let (code, _) = p.try_configure(&[("share.delivery.count.limit", "3"), ("share.heartbeat.interval.ms", "1")]);
    p.say(format!("one of two is bad -> {code:?}"));
    p.lines
}

/// Requests about groups that are not there, or named oddly.
pub(crate) fn groups(address: SocketAddr) -> Vec<String> {
    let mut p = Player::new(address, "groups", 1, 20_000);
    let own = p.group.clone();
    let many = [own.as_str(), "", "no-such-group"];
    delete(&mut p, &many);
    describe(&mut p, &many);
    offsets(&mut p, &many);
    p.join(&[A, B]);
    p.say("two members");
    delete(&mut p, &[&own, &own]);
    describe(&mut p, &many);
    for (states, types) in [
        (&["Stable"][..], &["Share"][..]),
        (&["STABLE", "empty"], &[]),
        (&["Dead"], &[]),
        (&["nonsense"], &[]),
        (&[], &["nonsense"]),
        (&[], &["classic", "share"]),
    ] {
        list(&mut p, states, types);
    }
    delete_offsets(&mut p, &["no-such-topic"]);
    let topic = p.topic.clone();
    p.heartbeat(A, -1, None);
    delete_offsets(&mut p, &[&topic]);
    p.heartbeat(B, -1, None);
    p.say("no members");
    offsets(&mut p, &[&own]);
    delete_offsets(&mut p, &[&topic, "no-such-topic"]);
    offsets(&mut p, &[&own]);
    delete_offsets(&mut p, &[&topic]);
    delete_offsets(&mut p, &[]);
    list(&mut p, &["Empty"], &["share"]);
    delete(&mut p, &[&own]);
    list(&mut p, &[], &[]);
    delete_offsets(&mut p, &[&topic]);
    let epoch = p.epoch();
    p.heartbeat(A, epoch, None);
    p.lines
}

fn delete(p: &mut Player, groups: &[&str]) {
    let groups_names = groups.iter().map(|name| Str::from(*name)).collect();
    let answer = p.call(&DeleteGroupsRequest { groups_names, ..Default::default() });
    let codes: Vec<_> = answer.results.iter().map(|result| result.error_code).collect();
    p.say(format!("delete {} groups -> {codes:?}", groups.len()));
}

fn describe(p: &mut Player, groups: &[&str]) {
    let group_ids = groups.iter().map(|name| Str::from(*name)).collect();
    let request = ShareGroupDescribeRequest { group_ids, include_authorized_operations: true, ..Default::default() };
    let answer = p.call(&request);
    let one = |group: &DescribedGroup| {
        let (state, assignor, members) = (&group.group_state, &group.assignor_name, group.members.len());
        let (code, operations) = (group.error_code, group.authorized_operations);
        format!("describe -> {code:?} {state} {assignor} {members} members, may {operations}")
    };
    let mut lines: Vec<String> = answer.groups.iter().map(one).collect();
    // In the order of the coordinator's partitions, which follows from the groups' names.
    lines.sort_unstable();
    lines.into_iter().for_each(|line| p.say(line));
}

fn offsets(p: &mut Player, groups: &[&str]) {
    let group = |name: &&str| describe_share_group_offsets_request::DescribeShareGroupOffsetsRequestGroup {
        group_id: Str::from(*name),
        topics: None,
        ..Default::default()
    };
    let groups = groups.iter().map(group).collect();
    let answer = p.call(&DescribeShareGroupOffsetsRequest { groups, ..Default::default() });
    let shown: Vec<_> = answer.groups.iter().map(|g| (g.error_code, g.topics.len())).collect();
    p.say(format!("offsets -> {shown:?}"));
}

fn list(p: &mut Player, states: &[&str], types: &[&str]) {
    let texts = |list: &[&str]| list.iter().map(|text| Str::from(*text)).collect();
    let request = ListGroupsRequest { states_filter: texts(states), types_filter: texts(types), ..Default::default() };
    let answer = p.call(&request);
    let own = answer.groups.iter().filter(|g| g.group_id.as_str() == p.group);
    let own: Vec<String> = own.map(|g| format!("{} {} {}", g.protocol_type, g.group_state, g.group_type)).collect();
    p.say(format!("list {states:?} {types:?} -> {:?} {own:?}", answer.error_code));
}

fn delete_offsets(p: &mut Player, topics: &[&str]) {
    let topic = |name: &&str| delete_share_group_offsets_request::DeleteShareGroupOffsetsRequestTopic {
        topic_name: Str::from(*name),
        ..Default::default()
    };
    let request = DeleteShareGroupOffsetsRequest {
        group_id: Str::from(&p.group),
        topics: topics.iter().map(topic).collect(),
        ..Default::default()
    };
    let answer = p.call(&request);
    let mut codes: Vec<String> =
        answer.responses.iter().map(|t| format!("{} {:?}", t.topic_name.as_str() == p.topic, t.error_code)).collect();
    codes.sort_unstable();
    p.say(format!("delete offsets -> {:?} {codes:?}", answer.error_code));
}

/// How partitions are shared out as members come and go.
pub(crate) fn assignments(address: SocketAddr) -> Vec<String> {
    let mut p = Player::new(address, "assignments", 4, 20_000);
    let topic = p.topic.clone();
    let names: Vec<String> = (0..7).map(|n| format!("AAAAAAAAQAGAAAAAAAAA{n}A")).collect();
    let mut members: Vec<(String, i32)> = Vec::new();
    for name in &names {
        let epoch = p.heartbeat_quietly(name, 0, Some(&[&topic]));
        members.push((name.clone(), epoch));
        settle(&mut p, &mut members);
    }
    p.say("two leave");
    for (name, _) in members.drain(1..3) {
        p.heartbeat_quietly(&name, -1, None);
    }
    settle(&mut p, &mut members);
    p.lines
}

/// Heartbeats until all members are at the group's epoch; then who shares what, and who has how much.
fn settle(p: &mut Player, members: &mut [(String, i32)]) {
    for _ in 0..3 {
        std::thread::sleep(std::time::Duration::from_millis(1_050));
        for (name, epoch) in &mut *members {
            *epoch = p.heartbeat_quietly(name, *epoch, None);
        }
    }
    let request = ShareGroupDescribeRequest { group_ids: vec![Str::from(&p.group)], ..Default::default() };
    let answer = p.call(&request);
    let group = &answer.groups[0];
    let partitions = |member: &kafka_share_messages::share_group_describe_response::Member| {
        member.assignment.topic_partitions.iter().flat_map(|t| t.partitions.clone()).collect::<Vec<i32>>()
    };
    let all: Vec<Vec<i32>> = group.members.iter().map(partitions).collect();
    let mut sizes: Vec<usize> = all.iter().map(Vec::len).collect();
    sizes.sort_unstable();
    let mut readers: Vec<usize> = (0..4).map(|p| all.iter().filter(|has| has.contains(&p)).count()).collect();
    readers.sort_unstable();
    let level = group.members.iter().all(|member| member.member_epoch == group.assignment_epoch);
    p.say(format!("{} members have {sizes:?}, partitions {readers:?}, level {level}", members.len()));
}
