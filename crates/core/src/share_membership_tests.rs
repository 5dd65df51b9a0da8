//! Membership against scripted coordinators.

use super::*;
use kafka_share_messages::share_group_heartbeat_response::{Assignment, TopicPartitions};
use kafka_share_wire::Uuid;

fn membership(now: Instant) -> Membership {
    let backoff = Backoff { first: Duration::from_millis(100), limit: Duration::from_secs(1) };
    let mut membership = Membership::new("g".into(), "m".into(), None, backoff, now);
    membership.subscribe(now, vec!["t".into()]);
    membership
}

fn answer(epoch: i32, partitions: Option<Vec<i32>>) -> ShareGroupHeartbeatResponse {
    let assignment = partitions.map(|partitions| Assignment {
        topic_partitions: vec![TopicPartitions { topic_id: Uuid::from_halves(1, 1), partitions, ..Default::default() }],
        ..Default::default()
    });
    ShareGroupHeartbeatResponse { member_epoch: epoch, heartbeat_interval_ms: 5000, assignment, ..Default::default() }
}

fn error(code: ErrorCode) -> ShareGroupHeartbeatResponse {
    ShareGroupHeartbeatResponse { error_code: code, ..Default::default() }
}

#[test]
fn asks_often_until_the_first_assignment() {
    let now = Instant::now();
    let mut m = membership(now);
    let (token, join) = m.poll_heartbeat(now).unwrap();
    assert_eq!((join.member_epoch, join.subscribed_topic_names), (0, Some(vec!["t".into()])));
    assert_eq!(
        m.handle_response(now, token, &answer(1, Some(vec![]))),
        Some(MembershipEvent::Assigned(BTreeSet::new()))
    );
    assert_eq!(m.next_deadline(), Some(now + JOIN_INTERVAL));
    let later = now + JOIN_INTERVAL;
    let (token, beat) = m.poll_heartbeat(later).unwrap();
    assert_eq!((beat.member_epoch, beat.subscribed_topic_names), (1, None));
    assert!(
        matches!(m.handle_response(later, token, &answer(2, Some(vec![0, 1]))), Some(MembershipEvent::Assigned(a)) if a.len() == 2)
    );
    assert_eq!(m.next_deadline(), Some(later + Duration::from_secs(5)));
}

//= SHARE-CLIENT-23
#[test]
fn r016_a_group_that_is_gone_is_joined_again_with_growing_pauses() {
    let mut now = Instant::now();
    let mut m = membership(now);
    let (token, _) = m.poll_heartbeat(now).unwrap();
    m.handle_response(now, token, &answer(7, Some(vec![0])));
    now += Duration::from_secs(5);
    for round in 0..4 {
        let (token, _) = m.poll_heartbeat(now).expect("heartbeat");
        assert_eq!(
            m.handle_response(now, token, &error(ErrorCode::GROUP_ID_NOT_FOUND)),
            Some(MembershipEvent::Fenced(ErrorCode::GROUP_ID_NOT_FOUND))
        );
        assert_eq!(m.epoch(), 0);
        let next = m.next_deadline().unwrap();
        assert!(round == 0 || next > now);
        now = next;
    }
}

//= SHARE-CLIENT-21
#[test]
fn r017_late_answers_of_an_earlier_membership_are_ignored() {
    let now = Instant::now();
    let mut m = membership(now);
    let (token, _) = m.poll_heartbeat(now).unwrap();
    m.handle_response(now, token, &answer(3, Some(vec![0])));
    m.leave(now);
    let (leave_token, leave) = m.poll_heartbeat(now).unwrap();
    assert_eq!(leave.member_epoch, LEAVE_EPOCH);
    m.subscribe(now, vec!["t".into()]);
    assert_eq!(m.handle_response(now, leave_token, &answer(-1, None)), None);
    let (_, join) = m.poll_heartbeat(now).unwrap();
    assert_eq!((join.member_epoch, join.subscribed_topic_names.is_some()), (0, true));
}

//= SHARE-CLIENT-22
#[test]
fn r019_a_loading_coordinator_is_asked_again_and_so_is_one_that_misses_a_right() {
    let mut now = Instant::now();
    let mut m = membership(now);
    for _ in 0..3 {
        let (token, _) = m.poll_heartbeat(now).unwrap();
        assert_eq!(m.handle_response(now, token, &error(ErrorCode::COORDINATOR_LOAD_IN_PROGRESS)), None);
        now = m.next_deadline().unwrap();
    }
    let (token, _) = m.poll_heartbeat(now).unwrap();
    assert!(matches!(
        m.handle_response(now, token, &error(ErrorCode::GROUP_AUTHORIZATION_FAILED)),
        Some(MembershipEvent::Refused(ErrorCode::GROUP_AUTHORIZATION_FAILED, _))
    ));
    now = m.next_deadline().unwrap();
    let (token, _) = m.poll_heartbeat(now).unwrap();
    m.handle_response(now, token, &answer(1, Some(vec![0])));
    assert!(m.is_joined());
}

//= SHARE-CLIENT-22
#[test]
fn a_refusal_that_no_retry_heals_is_final_until_the_next_subscription() {
    let now = Instant::now();
    let mut m = membership(now);
    let (token, _) = m.poll_heartbeat(now).unwrap();
    let event = m.handle_response(now, token, &error(ErrorCode::GROUP_MAX_SIZE_REACHED));
    assert!(matches!(event, Some(MembershipEvent::Failed(ErrorCode::GROUP_MAX_SIZE_REACHED, _))));
    assert_eq!((m.next_deadline(), m.is_out(), m.is_joined()), (None, true, false));
    m.subscribe(now, vec!["t".into()]);
    assert_eq!(m.poll_heartbeat(now).unwrap().1.member_epoch, 0);
}

//= SHARE-CLIENT-19 SHARE-CLIENT-20
#[test]
fn a_subscription_changed_during_a_heartbeat_is_told_with_the_next() {
    let now = Instant::now();
    let mut m = membership(now);
    let (token, _) = m.poll_heartbeat(now).unwrap();
    m.subscribe(now, vec!["u".into()]);
    assert!(m.poll_heartbeat(now).is_none(), "one at a time");
    m.handle_response(now, token, &answer(1, Some(vec![0])));
    let (token, beat) = m.poll_heartbeat(now).unwrap();
    assert_eq!((beat.member_epoch, beat.subscribed_topic_names), (1, Some(vec!["u".into()])));
    m.handle_response(now, token, &answer(2, None));
    let (_, beat) = m.poll_heartbeat(now + Duration::from_secs(5)).unwrap();
    assert_eq!(beat.subscribed_topic_names, None);
}

#[test]
fn a_fenced_member_asks_often_for_its_new_assignment() {
    let mut now = Instant::now();
    let mut m = membership(now);
    let (token, _) = m.poll_heartbeat(now).unwrap();
    m.handle_response(now, token, &answer(1, Some(vec![0])));
    now += Duration::from_secs(600);
    let (token, _) = m.poll_heartbeat(now).unwrap();
    m.handle_response(now, token, &error(ErrorCode::UNKNOWN_MEMBER_ID));
    let (token, _) = m.poll_heartbeat(now).unwrap();
    m.handle_response(now, token, &answer(1, None));
    assert_eq!(m.next_deadline(), Some(now + JOIN_INTERVAL));
}

//= SHARE-CLIENT-24
#[test]
fn epochs_and_intervals_of_a_hostile_coordinator_are_not_believed() {
    let mut now = Instant::now();
    let mut m = membership(now);
    for epoch in [-1, 0, i32::MIN] {
        let (token, join) = m.poll_heartbeat(now).unwrap();
        assert_eq!(join.member_epoch, 0);
        assert_eq!(m.handle_response(now, token, &answer(epoch, Some(vec![0]))), None);
        assert!(m.poll_heartbeat(now).is_none(), "not at once again");
        now = m.next_deadline().unwrap();
    }
    for (interval, believed) in [(i32::MAX, LONGEST_INTERVAL), (1, SHORTEST_INTERVAL)] {
        let (token, _) = m.poll_heartbeat(now).unwrap();
        let response = ShareGroupHeartbeatResponse { heartbeat_interval_ms: interval, ..answer(1, Some(vec![0])) };
        assert!(m.handle_response(now, token, &response).is_some());
        assert_eq!(m.next_deadline(), Some(now + believed));
        now += believed;
    }
    // An epoch that goes wrong later neither leaves the group nor joins it again.
    let (token, _) = m.poll_heartbeat(now).unwrap();
    assert_eq!(m.handle_response(now, token, &answer(-1, None)), None);
    now = m.next_deadline().unwrap();
    assert_eq!(m.poll_heartbeat(now).unwrap().1.member_epoch, 1);
}
