//! What upsets a consumer in the middle of something: fencing, renewals, redelivery to itself, closing with trouble.

use super::*;
use kafka_share_messages::ShareFetchResponse;
use kafka_share_messages::share_fetch_response::{PartitionData, ShareFetchableTopicResponse};

/// Has the coordinator fence the member; answers nothing else.
fn fence(rig: &mut Rig) {
    rig.now += Duration::from_secs(5);
    let fenced = ShareGroupHeartbeatResponse { error_code: ErrorCode::FENCED_MEMBER_EPOCH, ..Default::default() };
    let Some(Action::Heartbeat(token, _)) = rig.machine.poll_action(rig.now) else { panic!("heartbeat expected") };
    rig.machine.handle_heartbeat(rig.now, token, Ok(&fenced));
}

//= SHARE-MEMBER-11
#[test]
fn a_fenced_member_sends_what_it_was_told_and_joins_again() {
    let mut rig = Rig::new(false, &[1]);
    let chunks = rig.receive(0, 1);
    rig.ack_all(&chunks[..1]);
    fence(&mut rig);
    let Some(Action::Heartbeat(token, request)) = rig.machine.poll_action(rig.now) else { panic!("join expected") };
    assert_eq!(request.member_epoch, 0);
    let (node, close, request) = rig.acknowledge();
    assert_eq!((request.share_session_epoch, ranges(&request)), (-1, vec![(0, 1, vec![1])]));
    rig.machine.handle_acknowledge(rig.now, node, close, Ok(acked(&[(0, ErrorCode::NONE)])));
    assert_eq!(rig.outcomes(), [(0, 1, Outcome::Acknowledged)]);
    rig.machine.handle_heartbeat(rig.now, token, Ok(&heartbeat(&[0])));
    rig.poll();
    assert_eq!(rig.fetch().2.share_session_epoch, 0);
}

#[test]
fn an_answer_to_a_fetch_from_before_the_fencing_keeps_the_session_in_step() {
    let mut rig = Rig::new(false, &[1]);
    rig.receive(0, 1);
    rig.poll();
    let (node, token, request) = rig.fetch();
    assert_eq!(request.share_session_epoch, 1);
    fence(&mut rig);
    let Some(Action::Heartbeat(join, _)) = rig.machine.poll_action(rig.now) else { panic!("join expected") };
    rig.machine.handle_heartbeat(rig.now, join, Ok(&heartbeat(&[0])));
    rig.machine.handle_fetch(rig.now, node, token, Ok(records(&[(0, 2, 3)])));
    let chunks = rig.poll();
    rig.ack_all(&chunks);
    let commit = rig.machine.commit(rig.now + LOCK);
    let (node, token, request) = rig.acknowledge();
    assert_eq!((request.share_session_epoch, ranges(&request)), (2, vec![(2, 3, vec![1])]));
    rig.machine.handle_acknowledge(rig.now, node, token, Ok(acked(&[(0, ErrorCode::NONE)])));
    assert_eq!(rig.machine.poll_commit(commit).unwrap()[&tp(0)], Outcome::Acknowledged);
}

#[test]
fn r044_renewals_go_out_while_the_application_keeps_polling() {
    let mut rig = Rig::new(false, &[1]);
    let chunks = rig.receive(0, 0);
    let handle = chunks[0].handle(&chunks[0].entries()[0]);
    rig.poll();
    let (node, token, _) = rig.fetch();
    rig.machine.acknowledge(rig.now, handle, AckType::Renew).unwrap();
    rig.machine.handle_fetch(rig.now, node, token, Ok(refusal(ErrorCode::NONE)));
    let (node, token, request) = rig.acknowledge();
    assert!(request.is_renew_ack);
    rig.machine.handle_acknowledge(rig.now, node, token, Ok(acked(&[(0, ErrorCode::NONE)])));
    rig.fetch();
}

#[test]
fn r026_the_final_word_follows_a_renewal_that_is_on_its_way() {
    for (answer, expected) in [
        (ErrorCode::NONE, Outcome::Acknowledged),
        (ErrorCode::INVALID_RECORD_STATE, Outcome::Refused(ErrorCode::INVALID_RECORD_STATE)),
    ] {
        let mut rig = Rig::new(false, &[1]);
        let chunks = rig.receive(0, 0);
        let handle = chunks[0].handle(&chunks[0].entries()[0]);
        rig.machine.acknowledge(rig.now, handle, AckType::Renew).unwrap();
        rig.machine.commit(rig.now + LOCK);
        let (node, token, _) = rig.acknowledge();
        rig.machine.acknowledge(rig.now, handle, AckType::Accept).unwrap();
        let again = rig.machine.acknowledge(rig.now, handle, AckType::Reject);
        assert_eq!(again, Err(AckError::AlreadyAcknowledged));
        rig.machine.handle_acknowledge(rig.now, node, token, Ok(acked(&[(0, answer)])));
        assert_eq!(rig.machine.poll_outcome().unwrap().outcome, expected);
        let commit = rig.machine.commit(rig.now + LOCK);
        let (node, token, request) = rig.acknowledge();
        assert_eq!(ranges(&request), [(0, 0, vec![1])]);
        rig.machine.handle_acknowledge(rig.now, node, token, Ok(acked(&[(0, ErrorCode::NONE)])));
        assert_eq!(rig.machine.poll_commit(commit).unwrap()[&tp(0)], Outcome::Acknowledged);
        assert_eq!(rig.outcomes(), [(0, 0, Outcome::Acknowledged)]);
    }
}

#[test]
fn a_record_that_comes_again_before_its_lock_ended_here_is_acknowledged_once() {
    let mut rig = Rig::new(false, &[1]);
    let old = rig.receive(0, 3);
    let again = rig.receive(2, 5);
    let handle = |chunk: &Chunk, at: usize| chunk.handle(&chunk.entries()[at]);
    assert_eq!(rig.machine.acknowledge(rig.now, handle(&old[0], 3), AckType::Accept), Err(AckError::LockLost));
    rig.machine.acknowledge(rig.now, handle(&old[0], 0), AckType::Accept).unwrap();
    rig.ack_all(&again);
    rig.machine.commit(rig.now + LOCK);
    let (_, _, request) = rig.acknowledge();
    assert_eq!(ranges(&request), [(0, 0, vec![1]), (2, 5, vec![1])]);
}

#[test]
fn closing_does_not_repeat_a_refused_acknowledgement_without_end() {
    let mut rig = Rig::new(false, &[1]);
    let chunks = rig.receive(0, 1);
    rig.ack_all(&chunks);
    rig.machine.commit(rig.now + LOCK);
    rig.machine.close(rig.now);
    let (node, token, request) = rig.acknowledge();
    assert_eq!(request.share_session_epoch, 1);
    let refused = acked(&[(0, ErrorCode::COORDINATOR_NOT_AVAILABLE)]);
    rig.machine.handle_acknowledge(rig.now, node, token, Ok(refused.clone()));
    let (node, token, request) = rig.acknowledge();
    assert_eq!((request.share_session_epoch, ranges(&request)), (-1, vec![(0, 1, vec![1])]));
    rig.machine.handle_acknowledge(rig.now, node, token, Ok(refused));
    assert_eq!(rig.outcomes(), [(0, 1, Outcome::Refused(ErrorCode::COORDINATOR_NOT_AVAILABLE))]);
    assert!(rig.requests().is_empty());
    assert!(rig.machine.is_closed());
}

#[test]
fn closing_sleeps_while_a_fetch_is_under_way() {
    let mut rig = Rig::new(false, &[1]);
    rig.receive(0, 0);
    rig.poll();
    let (node, token, _) = rig.fetch();
    rig.machine.close(rig.now);
    assert!(rig.requests().is_empty());
    assert!(rig.machine.next_deadline().is_none_or(|at| at > rig.now), "it spins until the fetch is answered");
    rig.machine.handle_fetch(rig.now, node, token, Ok(refusal(ErrorCode::NONE)));
    rig.acknowledge();
}

#[test]
fn metadata_asked_for_during_a_refresh_is_refreshed_again() {
    let mut rig = Rig::new(false, &[1, 1]);
    rig.now += Duration::from_secs(300);
    let mut requests = 0;
    while let Some(action) = rig.machine.poll_action(rig.now) {
        requests += u32::from(matches!(action, Action::RefreshMetadata(_)));
    }
    assert_eq!(requests, 1);
    rig.machine.subscribe(rig.now, vec!["t".into(), "u".into()]);
    // The answer was asked for before the new topic.
    let other = TopicLeaders { id: Uuid::from_halves(8, 8), name: "u".into(), leaders: vec![] };
    let leaders = vec![Leader { id: 1, epoch: 1 }; 2];
    rig.machine.handle_metadata(rig.now, &[TopicLeaders { id: topic(), name: "t".into(), leaders }, other]);
    assert!(matches!(rig.machine.poll_action(rig.now), Some(Action::RefreshMetadata(topics)) if topics.len() == 2));
}

#[test]
fn a_small_answer_that_claims_many_acquired_offsets_is_bounded() {
    let row = |partition_index| PartitionData {
        partition_index,
        acquired_records: vec![AcquiredRecords { first_offset: 0, last_offset: i64::MAX, ..Default::default() }],
        ..Default::default()
    };
    let topic =
        ShareFetchableTopicResponse { topic_id: topic(), partitions: (0..50).map(row).collect(), ..Default::default() };
    let answer = decode_fetch(ShareFetchResponse { responses: vec![topic], ..Default::default() }, LIMITS, true);
    let claimed: usize = answer.partitions.iter().map(|p| p.delivery.gaps.len() + p.delivery.missing.len()).sum();
    assert_eq!(claimed, 1 << 20);
}

#[test]
fn a_member_that_is_refused_for_good_closes_its_sessions_and_says_why_until_it_subscribes_again() {
    let mut rig = Rig::new(false, &[1]);
    let chunks = rig.receive(0, 1);
    rig.ack_all(&chunks);
    rig.now += Duration::from_secs(5);
    let heartbeat = std::iter::from_fn(|| rig.machine.poll_action(rig.now))
        .find_map(|action| if let Action::Heartbeat(token, _) = action { Some(token) } else { None });
    let refused = ShareGroupHeartbeatResponse {
        error_code: ErrorCode::GROUP_MAX_SIZE_REACHED,
        ..ShareGroupHeartbeatResponse::default()
    };
    rig.machine.handle_heartbeat(rig.now, heartbeat.unwrap(), Ok(&refused));
    assert_eq!(rig.machine.failure().map(|f| f.0), Some(ErrorCode::GROUP_MAX_SIZE_REACHED));
    rig.poll();
    let (node, token, request) = rig.acknowledge();
    assert_eq!((request.share_session_epoch, ranges(&request)), (-1, vec![(0, 1, vec![1])]), "its word still counts");
    rig.machine.handle_acknowledge(rig.now, node, token, Ok(acked(&[(0, ErrorCode::NONE)])));
    assert_eq!(rig.outcomes(), [(0, 1, Outcome::Acknowledged)]);
    assert!(rig.requests().is_empty(), "it does not fetch as a stranger");
    rig.machine.subscribe(rig.now, vec!["t".into()]);
    assert!(rig.machine.failure().is_none());
    rig.requests();
    assert_eq!(rig.heartbeats, [0]);
}

#[test]
fn an_error_without_a_code_of_its_own_is_shown_only_where_it_lasts() {
    let mut rig = Rig::new(false, &[1]);
    let mut shown = Vec::new();
    let started = rig.now;
    for _ in 0..40 {
        rig.poll();
        let (node, token, _) = rig.fetch();
        rig.machine.handle_fetch(rig.now, node, token, Ok(refusal(ErrorCode::UNKNOWN_SERVER_ERROR)));
        shown.push(rig.machine.poll_event().is_some());
        rig.now += Duration::from_secs(2);
        rig.machine.handle_timeout(rig.now);
        assert!(shown.ends_with(&[shown.len() >= 30]), "{:?}: {shown:?}", rig.now - started);
    }
}
