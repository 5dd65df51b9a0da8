//! Answers that no honest broker gives: the machine neither spins nor sleeps for ever.

use super::*;

#[test]
fn a_lock_time_of_zero_delivers_all_the_same() {
    let mut rig = Rig::new(false, &[1]);
    rig.poll();
    let (node, token, _) = rig.fetch();
    let answer = FetchAnswer { lock: Duration::ZERO, ..records(&[(0, 0, 4)]) };
    rig.machine.handle_fetch(rig.now, node, token, Ok(answer));
    let chunks = rig.poll();
    assert_eq!(chunks[0].entries().len(), 5);
    assert!(chunks[0].lock_until() > rig.now);
    assert_eq!(rig.machine.lock_timeout(), None, "none was told");
    rig.ack_all(&chunks);
    assert!(rig.requests().is_empty(), "acknowledgements wait for company as ever");
}

#[test]
fn leader_hints_that_rise_for_ever_are_followed_slower_and_slower() {
    let mut rig = Rig::new(false, &[1]);
    let mut requests = 0;
    let end = rig.now + Duration::from_secs(5);
    let mut epoch = 1;
    while rig.now < end {
        rig.poll();
        for action in rig.requests() {
            let Action::Fetch(node, token, _) = action else {
                let Action::Acknowledge(node, token, _) = action else { panic!("{action:?}") };
                rig.machine.handle_acknowledge(rig.now, node, token, Ok(acked(&[])));
                continue;
            };
            requests += 1;
            epoch += 1;
            let mut refused = partition(0, ErrorCode::NOT_LEADER_OR_FOLLOWER, share_fetch::decode(tp(0), None, &[], 1));
            refused.leader = Leader { id: 3 - node, epoch };
            let answer = FetchAnswer { partitions: vec![refused], ..refusal(ErrorCode::NONE) };
            rig.machine.handle_fetch(rig.now, node, token, Ok(answer));
        }
        rig.now += Duration::from_millis(5);
        rig.machine.handle_timeout(rig.now);
    }
    assert!((3..=15).contains(&requests), "{requests} fetches in five seconds");
}

#[test]
fn r011_one_leader_hint_is_followed_at_once() {
    let mut rig = Rig::new(false, &[1]);
    rig.poll();
    let (node, token, _) = rig.fetch();
    let mut refused = partition(0, ErrorCode::NOT_LEADER_OR_FOLLOWER, share_fetch::decode(tp(0), None, &[], 1));
    refused.leader = Leader { id: 2, epoch: 9 };
    let answer = FetchAnswer { partitions: vec![refused], ..refusal(ErrorCode::NONE) };
    rig.machine.handle_fetch(rig.now, node, token, Ok(answer));
    let requests = rig.requests();
    assert!(requests.iter().any(|r| matches!(r, Action::Fetch(2, _, _))), "{requests:?}");
    assert!(!requests.iter().any(|r| matches!(r, Action::Fetch(1, _, _))), "{requests:?}");
}

#[test]
fn a_poll_that_never_waits_has_its_fetch_sent() {
    let mut rig = Rig::new(false, &[1]);
    assert!(rig.poll().is_empty());
    rig.machine.stop_waiting();
    let (node, token, _) = rig.fetch();
    rig.machine.handle_fetch(rig.now, node, token, Ok(refusal(ErrorCode::NONE)));
    assert!(rig.requests().is_empty(), "one fetch for one poll");
    // A poll that gets its records, or whose fetch is out, leaves nothing to do.
    rig.receive(0, 4);
    rig.machine.stop_waiting();
    assert!(rig.requests().is_empty(), "nobody waits");
    rig.poll();
    let (node, token, _) = rig.fetch();
    rig.poll();
    rig.machine.stop_waiting();
    rig.machine.handle_fetch(rig.now, node, token, Ok(refusal(ErrorCode::NONE)));
    assert!(rig.requests().is_empty(), "nobody waits");
}

#[test]
fn acknowledgements_for_a_transaction_are_not_taken_beside_a_commit() {
    let mut rig = Rig::new(false, &[1]);
    let chunks = rig.receive(0, 1);
    let handle = |at: usize| chunks[0].handle(&chunks[0].entries()[at]);
    rig.machine.acknowledge(rig.now, handle(0), AckType::Accept).unwrap();
    let commit = rig.machine.commit(rig.now + LOCK);
    rig.machine.acknowledge(rig.now, handle(1), AckType::Accept).unwrap();
    assert!(rig.machine.take_for_transaction().is_none());
    let (node, token, request) = rig.acknowledge();
    assert_eq!(ranges(&request), [(0, 0, vec![1])]);
    rig.machine.handle_acknowledge(rig.now, node, token, Ok(acked(&[(0, ErrorCode::NONE)])));
    assert!(rig.machine.poll_commit(commit).is_some());
    assert_eq!(rig.machine.take_for_transaction().unwrap()[0].batches[0].first, 1);
}

//= SHARE-CLIENT-26
#[test]
fn r107_a_topic_created_again_is_fetched_under_its_new_id_only() {
    let mut rig = Rig::new(false, &[1]);
    rig.receive(0, 4);
    let new = TopicLeaders { id: Uuid::from_halves(9, 9), name: "t".into(), leaders: vec![Leader { id: 1, epoch: 0 }] };
    rig.machine.handle_metadata(rig.now, std::slice::from_ref(&new));
    let rows = vec![TopicPartitions { topic_id: new.id, partitions: vec![0], ..Default::default() }];
    let mut beat = heartbeat(&[]);
    beat.assignment = Some(Assignment { topic_partitions: rows, ..Default::default() });
    rig.now += Duration::from_secs(6);
    let Some(Action::Heartbeat(token, _)) = rig.machine.poll_action(rig.now) else { panic!("heartbeat expected") };
    rig.machine.handle_heartbeat(rig.now, token, Ok(&beat));
    rig.poll();
    let (_, _, request) = rig.fetch();
    assert_eq!(request.topics.iter().map(|t| t.topic_id).collect::<Vec<_>>(), [new.id]);
    assert_eq!(request.forgotten_topics_data.iter().map(|t| t.topic_id).collect::<Vec<_>>(), [topic()]);
}

/// An answer for partition 0 whose records, one of 300 KiB in each batch, expand to more than the limit of 1 MiB.
fn swollen(first: i64, last: i64) -> FetchAnswer {
    use kafka_share_messages::ShareFetchResponse;
    use kafka_share_messages::share_fetch_response::{PartitionData, ShareFetchableTopicResponse};
    let mut records = bytes::BytesMut::new();
    for offset in first..=last {
        let compression = kafka_share_wire::compression::Compression::Gzip;
        let mut builder = BatchBuilder::new(BatchOptions { base_offset: offset, compression, ..Default::default() });
        builder.append(0, None, Some(&vec![7; 300 << 10]), []).unwrap();
        records.extend_from_slice(&builder.finish().unwrap());
    }
    let acquired = AcquiredRecords { first_offset: first, last_offset: last, delivery_count: 1, ..Default::default() };
    let partition =
        PartitionData { records: Some(records.freeze()), acquired_records: vec![acquired], ..Default::default() };
    let topic = ShareFetchableTopicResponse { topic_id: topic(), partitions: vec![partition], ..Default::default() };
    let response =
        ShareFetchResponse { responses: vec![topic], acquisition_lock_timeout_ms: 30_000, ..Default::default() };
    decode_fetch(response, LIMITS, true)
}

#[test]
fn r130_an_answer_that_expands_to_too_much_is_handed_out_in_parts() {
    let mut rig = Rig::new(false, &[1]);
    rig.poll();
    let (node, token, _) = rig.fetch();
    rig.machine.handle_fetch(rig.now, node, token, Ok(swollen(0, 9)));
    let mut parts = Vec::new();
    while parts.iter().sum::<usize>() < 10 {
        let chunks = rig.poll();
        let bytes: usize = chunks.iter().flat_map(|c| &c.delivery.batches).map(|b| b.payload().len()).sum();
        assert!((1..=1 << 20).contains(&bytes), "{bytes} bytes at a time");
        assert!(chunks.iter().flat_map(Chunk::entries).all(|e| e.delivery_count == 1));
        parts.push(chunks.iter().map(|c| c.entries().len()).sum());
        rig.ack_all(&chunks);
        assert!(parts.len() > 3 || rig.requests().is_empty(), "no fetch while there are records");
    }
    assert_eq!(parts, [3, 3, 3, 1]);
    let commit = rig.machine.commit(rig.now + LOCK);
    let (node, token, request) = rig.acknowledge();
    let accepted: Vec<_> = ranges(&request).into_iter().map(|(first, last, types)| (last - first + 1, types)).collect();
    assert_eq!(accepted, [3, 3, 3, 1].map(|count| (count, vec![1])), "all accepted, none released");
    rig.machine.handle_acknowledge(rig.now, node, token, Ok(acked(&[(0, ErrorCode::NONE)])));
    assert!(rig.machine.poll_commit(commit).is_some());
}

#[test]
fn what_is_left_compressed_goes_with_its_session_its_lock_and_its_assignment() {
    let received = || {
        let mut rig = Rig::new(false, &[1]);
        rig.poll();
        let (node, token, _) = rig.fetch();
        rig.machine.handle_fetch(rig.now, node, token, Ok(swollen(0, 9)));
        let chunks = rig.poll();
        assert_eq!(chunks[0].entries().len(), 3);
        (rig, node)
    };
    // The session is lost.
    let (mut rig, node) = received();
    rig.machine.handle_disconnected(rig.now, node);
    assert!(rig.poll().is_empty() && !rig.machine.has_records());
    // The lock ends before anybody comes back.
    let (mut rig, _) = received();
    rig.now += LOCK + Duration::from_secs(1);
    rig.machine.handle_timeout(rig.now);
    assert!(rig.poll().is_empty() && !rig.machine.has_records());
    // The partition is revoked: what was not handed out is released, so that others may have it.
    let (mut rig, _) = received();
    rig.now += Duration::from_secs(6);
    let Some(Action::Heartbeat(token, _)) = rig.machine.poll_action(rig.now) else { panic!("heartbeat expected") };
    rig.machine.handle_heartbeat(rig.now, token, Ok(&heartbeat(&[])));
    assert!(rig.poll().is_empty());
    let (_, _, request) = rig.acknowledge();
    assert_eq!(ranges(&request), [(3, 9, vec![2])]);
}
