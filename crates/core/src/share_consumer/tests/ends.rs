//! Ends: of a session that the broker refuses, of a consumer whose brokers are silent, of one whose shell is gone.

use super::*;
use crate::share_acks::AckError;

//= SHARE-ACK-16
#[test]
fn a_consumer_without_a_shell_gives_each_acknowledgement_one_outcome() {
    // Node 1: sent; node 2: in a commit that waits for its turn; node 3: said, and not sent.
    let mut rig = Rig::new(false, &[1, 2, 3]);
    rig.poll();
    for action in rig.requests() {
        let Action::Fetch(node, token, _) = action else { panic!("{action:?}") };
        rig.machine.handle_fetch(rig.now, node, token, Ok(records(&[(node - 1, 0, 9)])));
    }
    let chunks = rig.poll();
    let of = |partition: i32| chunks.iter().filter(|c| c.tp() == tp(partition)).cloned().collect::<Vec<_>>();
    rig.ack_all(&of(0));
    let first = rig.machine.commit(rig.now + LOCK);
    assert_eq!(rig.requests().len(), 1);
    rig.ack_all(&of(1));
    let second = rig.machine.commit(rig.now + LOCK);
    rig.ack_all(&of(2));
    rig.machine.abort(rig.now);
    let mut outcomes = Vec::new();
    while let Some(outcome) = rig.machine.poll_outcome() {
        outcomes.push((outcome.tp.partition, outcome.first_offset, outcome.last_offset, outcome.outcome));
    }
    outcomes.sort_by_key(|o| o.0);
    let lost = Outcome::LockLost;
    assert_eq!(outcomes, [(0, 0, 9, Outcome::Unknown), (1, 0, 9, lost), (2, 0, 9, lost)]);
    assert_eq!(rig.machine.poll_commit(first).unwrap()[&tp(0)], Outcome::Unknown);
    assert_eq!(rig.machine.poll_commit(second).unwrap()[&tp(1)], Outcome::LockLost);
    let record = chunks[0].handle(&chunks[0].entries()[0]);
    assert!(rig.machine.acknowledge(rig.now, record, AckType::Accept).is_err());
    assert_eq!(rig.machine.poll_outcome(), None);
}

#[test]
fn r107_a_refused_session_is_closed_before_the_next_one_so_that_its_records_are_free() {
    for (code, closes) in [
        (ErrorCode::UNKNOWN_SERVER_ERROR, true),
        (ErrorCode::GROUP_AUTHORIZATION_FAILED, true),
        (ErrorCode::INVALID_SHARE_SESSION_EPOCH, true),
        (ErrorCode::SHARE_SESSION_NOT_FOUND, false),
    ] {
        let mut rig = Rig::new(false, &[1]);
        let chunks = rig.receive(0, 1);
        rig.ack_all(&chunks);
        rig.machine.commit(rig.now + LOCK);
        let (node, token, _) = rig.acknowledge();
        let refused = ShareAcknowledgeResponse { error_code: code, ..Default::default() };
        rig.machine.handle_acknowledge(rig.now, node, token, Ok(refused));
        rig.now += Duration::from_secs(2);
        rig.machine.handle_timeout(rig.now);
        rig.poll();
        if closes {
            let (node, token, request) = rig.acknowledge();
            assert_eq!(request.share_session_epoch, -1, "{code}");
            rig.machine.handle_acknowledge(rig.now, node, token, Ok(acked(&[])));
        }
        assert_eq!(rig.fetch().2.share_session_epoch, 0, "{code}");
    }
}

#[test]
fn a_session_that_never_opened_is_not_closed() {
    let mut rig = Rig::new(false, &[1]);
    rig.poll();
    let (node, token, _) = rig.fetch();
    rig.machine.handle_fetch(rig.now, node, token, Ok(refusal(ErrorCode::GROUP_AUTHORIZATION_FAILED)));
    rig.now += Duration::from_secs(2);
    rig.machine.handle_timeout(rig.now);
    assert_eq!(rig.fetch().2.share_session_epoch, 0);
}

#[test]
fn r019_a_silent_broker_does_not_keep_the_member_in_its_group() {
    let mut rig = Rig::new(false, &[1, 2]);
    rig.poll();
    for action in rig.requests() {
        let Action::Fetch(node, token, _) = action else { panic!("{action:?}") };
        rig.machine.handle_fetch(rig.now, node, token, Ok(records(&[(node - 1, 0, 0)])));
    }
    rig.heartbeats.clear();
    rig.machine.close(rig.now);
    let closes = rig.requests();
    let Some(Action::Acknowledge(2, token, _)) = closes.get(1) else { panic!("{closes:?}") };
    rig.machine.handle_acknowledge(rig.now, 2, *token, Ok(acked(&[])));
    assert!(rig.requests().is_empty() && rig.heartbeats.is_empty(), "the other broker may still answer");
    let due = rig.machine.next_deadline().expect("the group is to be left");
    assert!(due > rig.now && due <= rig.now + Duration::from_secs(1));
    rig.now = due;
    rig.machine.handle_timeout(rig.now);
    assert!(rig.requests().is_empty());
    assert_eq!(rig.heartbeats, [-1]);
}

#[test]
fn a_broker_that_is_slow_with_acknowledgements_is_waited_for_before_the_group_is_left() {
    let mut rig = Rig::new(false, &[1]);
    let chunks = rig.receive(0, 3);
    let mut answers = Vec::new();
    for entry in chunks[0].entries() {
        rig.machine.acknowledge(rig.now, chunks[0].handle(entry), AckType::Accept).unwrap();
        rig.machine.commit(rig.now + LOCK);
        answers.extend(rig.requests());
    }
    rig.heartbeats.clear();
    rig.machine.close(rig.now);
    // One at a time, each four seconds after the one before, and no longer than that.
    for answered in 0..3 {
        rig.now += Duration::from_secs(4);
        rig.machine.handle_timeout(rig.now);
        answers.extend(rig.requests());
        assert!(rig.heartbeats.is_empty(), "left after {answered}");
        let Some(Action::Acknowledge(node, token, request)) = answers.pop() else { panic!("{answers:?}") };
        if request.share_session_epoch == -1 {
            break;
        }
        rig.machine.handle_acknowledge(rig.now, node, token, Ok(acked(&[(0, ErrorCode::NONE)])));
        answers.extend(rig.requests());
    }
    rig.now += Duration::from_secs(5);
    rig.machine.handle_timeout(rig.now);
    assert!(rig.requests().is_empty());
    assert_eq!(rig.heartbeats, [-1], "a broker that is silent to the end");
}

//= SHARE-CLIENT-16
#[test]
fn r100_renewals_are_for_brokers_that_have_them() {
    let mut rig = Rig::new(false, &[1, 2]);
    rig.poll();
    for action in rig.requests() {
        let Action::Fetch(node, token, _) = action else { panic!("{action:?}") };
        let answer = FetchAnswer { renewals: node == 2, ..records(&[(node - 1, 0, 0)]) };
        rig.machine.handle_fetch(rig.now, node, token, Ok(answer));
    }
    let chunks = rig.poll();
    assert_eq!(chunks.len(), 2);
    for chunk in &chunks {
        let record = chunk.handle(&chunk.entries()[0]);
        let result = match chunk.tp().partition {
            0 => Err(AckError::NoRenewal),
            _ => Ok(()),
        };
        assert_eq!(rig.machine.acknowledge(rig.now, record, AckType::Renew), result);
        assert_eq!(rig.machine.extend_lock(rig.now, record), result);
    }
    // All or none.
    assert_eq!(rig.machine.acknowledge_chunks(rig.now, &chunks, AckType::Renew), Err(AckError::NoRenewal));
    // The refused record is held as before.
    rig.ack_all(&chunks[..1]);
    rig.machine.commit(rig.now + LOCK);
    let sent: Vec<_> = rig
        .requests()
        .iter()
        .map(|action| match action {
            Action::Acknowledge(node, _, request) => (*node, ranges(request)),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(sent, [(1, vec![(0, 0, vec![1])]), (2, vec![(0, 0, vec![4])])]);
}
