//! Requests of administrators: describing, listing and deleting groups, and their offsets.

use std::net::SocketAddr;

use kafka_share_messages::{
    AlterShareGroupOffsetsRequest, DeleteGroupsRequest, DeleteShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequest, ListGroupsRequest, ShareGroupDescribeRequest,
    alter_share_group_offsets_request as alter, delete_share_group_offsets_request as delete,
    describe_share_group_offsets_request as describe,
};
use kafka_share_wire::Str;

use crate::player::{A, Fetch, Player};

/// Plays the script.
pub(crate) fn admin(address: SocketAddr) -> Vec<String> {
    let mut p = Player::new(address, "admin", 2, 20_000);
    p.say("a group that does not exist");
    everything(&mut p);
    alter(&mut p, &[(0, 1)]);
    p.say("after the attempt to set offsets of no group");
    everything(&mut p);
    delete_group(&mut p);
    p.join(&[A]);
    p.say("joined");
    everything(&mut p);
    alter(&mut p, &[(0, 1)]);
    delete_group(&mut p);
    delete_offsets(&mut p, &[]);
    p.produce(0, 10);
    p.fetch_with(A, 0, &[(0, &[])], &Fetch { wait_ms: 5_000, ..Fetch::default() });
    p.ack(A, 1, &[(0, &[(1, 3, &[1]), (5, 5, &[3])])]);
    p.say("in use");
    offsets(&mut p);
    p.fetch(A, -1, &[]);
    p.heartbeat(A, -1, None);
    p.say("empty");
    everything(&mut p);
    alter(&mut p, &[(0, 2), (1, 0), (7, 0)]);
    offsets(&mut p);
    alter(&mut p, &[(0, 100)]);
    alter(&mut p, &[(0, -5)]);
    offsets(&mut p);
    delete_offsets(&mut p, &["no-such-topic"]);
    offsets(&mut p);
    delete_group(&mut p);
    delete_group(&mut p);
    everything(&mut p);
    p.lines
}

fn everything(p: &mut Player) {
    let ids = vec![Str::from(&p.group)];
    let answer = p.call(&ShareGroupDescribeRequest { group_ids: ids, ..Default::default() });
    for group in answer.groups {
        let member = |m: &kafka_share_messages::share_group_describe_response::Member| {
            let partitions: Vec<_> = m.assignment.topic_partitions.iter().map(|t| t.partitions.clone()).collect();
            format!("{} topics {} {partitions:?} host {}", m.client_id, m.subscribed_topic_names.len(), m.client_host)
        };
        let members: Vec<String> = group.members.iter().map(member).collect();
        let (code, state, assignor) = (group.error_code, group.group_state, group.assignor_name);
        let operations = group.authorized_operations;
        p.say(format!("describe -> {code:?} {state} {assignor} {members:?} {operations}"));
    }
    for (states, types) in [(&[][..], &[][..]), (&["empty"], &["share"]), (&["Stable"], &[]), (&[], &["consumer"])] {
        let request = ListGroupsRequest {
            states_filter: states.iter().map(|s| Str::from(*s)).collect(),
            types_filter: types.iter().map(|t| Str::from(*t)).collect(),
            ..Default::default()
        };
        let answer = p.call(&request);
        let own = answer.groups.iter().filter(|g| g.group_id.as_str() == p.group);
        let own: Vec<String> = own.map(|g| format!("{} {} {}", g.protocol_type, g.group_state, g.group_type)).collect();
        p.say(format!("list {states:?} {types:?} -> {:?} {own:?}", answer.error_code));
    }
    offsets(p);
}

/// Not asked: topics and partitions that do not exist, which a real broker answers with -1 after a long wait.
fn offsets(p: &mut Player) {
    let topic = |name: &str, partitions: &[i32]| describe::DescribeShareGroupOffsetsRequestTopic {
        topic_name: Str::from(name),
        partitions: partitions.to_vec(),
        ..Default::default()
    };
    let asked = [None, Some(vec![topic(&p.topic, &[0, 1])])];
    for topics in asked {
        let named = topics.is_some();
        let group = describe::DescribeShareGroupOffsetsRequestGroup {
            group_id: Str::from(&p.group),
            topics,
            ..Default::default()
        };
        let answer = p.call(&DescribeShareGroupOffsetsRequest { groups: vec![group], ..Default::default() });
        let mut parts = Vec::new();
        for topic in &answer.groups[0].topics {
            for part in &topic.partitions {
                let own = topic.topic_name.as_str() == p.topic;
                let (index, start, lag, code) = (part.partition_index, part.start_offset, part.lag, part.error_code);
                parts.push(format!("{own} {index}: {code:?} start {start} lag {lag} epoch {}", part.leader_epoch));
            }
        }
        parts.sort_unstable();
        p.say(format!("offsets, named {named} -> {:?} {parts:?}", answer.groups[0].error_code));
    }
}

fn alter(p: &mut Player, starts: &[(i32, i64)]) {
    let partition = |(index, start): &(i32, i64)| alter::AlterShareGroupOffsetsRequestPartition {
        partition_index: *index,
        start_offset: *start,
        ..Default::default()
    };
    let topic = |name: &str| alter::AlterShareGroupOffsetsRequestTopic {
        topic_name: Str::from(name),
        partitions: starts.iter().map(partition).collect(),
        ..Default::default()
    };
    let topics = vec![topic(&p.topic.clone()), topic("no-such-topic")];
    let request = AlterShareGroupOffsetsRequest { group_id: Str::from(&p.group), topics, ..Default::default() };
    let answer = p.call(&request);
    let mut parts = Vec::new();
    for topic in &answer.responses {
        let own = topic.topic_name.as_str() == p.topic;
        parts.extend(
            topic.partitions.iter().map(|part| format!("{own} {}: {:?}", part.partition_index, part.error_code)),
        );
    }
    parts.sort_unstable();
    p.say(format!("alter {starts:?} -> {:?} {parts:?}", answer.error_code));
}

fn delete_offsets(p: &mut Player, others: &[&str]) {
    let own = p.topic.clone();
    let topic =
        |name: &str| delete::DeleteShareGroupOffsetsRequestTopic { topic_name: Str::from(name), ..Default::default() };
    let topics = std::iter::once(own.as_str()).chain(others.iter().copied()).map(topic).collect();
    let request = DeleteShareGroupOffsetsRequest { group_id: Str::from(&p.group), topics, ..Default::default() };
    let answer = p.call(&request);
    let mut parts: Vec<String> =
        answer.responses.iter().map(|t| format!("{} {:?}", t.topic_name.as_str() == own, t.error_code)).collect();
    parts.sort_unstable();
    p.say(format!("delete offsets -> {:?} {parts:?}", answer.error_code));
}

fn delete_group(p: &mut Player) {
    let request = DeleteGroupsRequest { groups_names: vec![Str::from(&p.group)], ..Default::default() };
    let answer = p.call(&request);
    p.say(format!("delete group -> {:?}", answer.results[0].error_code));
}
