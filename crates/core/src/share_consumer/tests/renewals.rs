//! Renewed records come again, locks are kept per record, and the optional renewer.

use super::*;

fn renew(rig: &mut Rig, chunk: &Chunk, at: usize) {
    rig.machine.acknowledge(rig.now, chunk.handle(&chunk.entries()[at]), AckType::Renew).unwrap();
}

fn offsets(chunks: &[Chunk]) -> Vec<(i64, Duration)> {
    let now = chunks.first().map(Chunk::lock_until);
    let row = |c: &Chunk| {
        let ahead = now.map_or(Duration::ZERO, |first| c.lock_until() - first);
        c.entries().iter().map(|e| (c.record(e).offset, ahead)).collect::<Vec<_>>()
    };
    chunks.iter().flat_map(row).collect()
}

fn settle(rig: &mut Rig, code: ErrorCode) -> ShareAcknowledgeRequest {
    let (node, token, request) = rig.acknowledge();
    rig.machine.handle_acknowledge(rig.now, node, token, Ok(acked(&[(0, code)])));
    request
}

#[test]
fn r044_a_renewed_record_comes_back_from_poll_until_its_final_word() {
    let mut rig = Rig::new(false, &[1]);
    let first = rig.receive(0, 3);
    let lock = first[0].lock_until();
    for round in 1..=9_u32 {
        rig.now += LOCK / 3;
        let held = if round == 1 { &first[0] } else { &rig.poll()[0].clone() };
        for offset in [1, 2] {
            let at = held.entries().iter().position(|e| held.record(e).offset == offset).unwrap();
            renew(&mut rig, held, at);
        }
        rig.machine.commit(rig.now + LOCK);
        let request = settle(&mut rig, ErrorCode::NONE);
        assert!(request.is_renew_ack);
        assert_eq!(ranges(&request), [(1, 2, vec![4])]);
        assert!(rig.machine.has_records());
        rig.machine.handle_timeout(rig.now);
    }
    let again = rig.poll();
    assert_eq!(again.iter().map(|c| c.entries().len()).sum::<usize>(), 2);
    assert_eq!(again[0].lock_until(), rig.now + LOCK);
    assert!(again[0].lock_until() > lock + 2 * LOCK);
    assert!(rig.poll().is_empty(), "handed out once for each renewal");
    // The others' locks ended two lock times ago.
    let other = rig.machine.acknowledge(rig.now, first[0].handle(&first[0].entries()[0]), AckType::Accept);
    assert_eq!(other, Err(AckError::LockLost));
    rig.ack_all(&again);
    rig.machine.commit(rig.now + LOCK);
    // The poll in between had a fetch sent.
    let requests = rig.requests();
    let fetched = requests.iter().any(|r| matches!(r, Action::Fetch(..)));
    let acked = requests.iter().find_map(|r| if let Action::Acknowledge(_, _, a) = r { Some(ranges(a)) } else { None });
    assert!(fetched || acked == Some(vec![(1, 2, vec![1])]), "{requests:?}");
}

#[test]
fn renewed_records_come_before_new_ones_and_count_for_the_limit() {
    let mut rig = Rig::with(false, &[1], |c| c.max_poll_records = 3);
    assert!(rig.poll().is_empty());
    let (node, token, _) = rig.fetch();
    rig.machine.handle_fetch(rig.now, node, token, Ok(records(&[(0, 0, 7)])));
    let held = rig.poll();
    renew(&mut rig, &held[0], 0);
    renew(&mut rig, &held[0], 2);
    rig.machine.commit(rig.now + LOCK);
    rig.now += Duration::from_secs(1);
    settle(&mut rig, ErrorCode::NONE);
    let mixed = rig.poll();
    let second = Duration::from_secs(1);
    let found: Vec<i64> = offsets(&mixed).iter().map(|(offset, _)| *offset).collect();
    assert_eq!(found, [0, 2, 3]);
    assert_eq!(mixed[0].lock_until(), mixed[2].lock_until() + second);
}

#[test]
fn the_renewer_keeps_what_the_application_holds_and_stops_at_its_limit() {
    let mut rig = Rig::with(true, &[1], |c| {
        c.max_poll_records = 2;
        c.lock_renewal = Some(2 * LOCK);
    });
    rig.poll();
    let (node, token, _) = rig.fetch();
    rig.machine.handle_fetch(rig.now, node, token, Ok(records(&[(0, 0, 3)])));
    let started = rig.now;
    assert_eq!(rig.poll()[0].entries().len(), 2);
    let mut renewals = Vec::new();
    while rig.now < started + 4 * LOCK {
        rig.now = rig.machine.next_deadline().unwrap().max(rig.now + Duration::from_millis(1));
        rig.machine.handle_timeout(rig.now);
        for action in rig.requests() {
            let Action::Acknowledge(node, token, request) = action else { panic!("{action:?}") };
            if request.is_renew_ack {
                assert_eq!(ranges(&request), [(0, 1, vec![4])], "only what was handed out");
                renewals.push(rig.now - started);
            }
            rig.machine.handle_acknowledge(rig.now, node, token, Ok(acked(&[(0, ErrorCode::NONE)])));
        }
    }
    assert_eq!(renewals[0], LOCK / 2);
    assert!(renewals.windows(2).all(|w| w[1] - w[0] < LOCK), "{renewals:?}");
    assert!(renewals.iter().all(|at| *at <= 2 * LOCK), "{renewals:?}");
    assert!(rig.outcomes().is_empty(), "renewals that nobody asked for have no outcome");
}

#[test]
fn prefetch_is_bounded_and_ends_when_nobody_polls() {
    let mut rig = Rig::with(false, &[1], |c| {
        c.max_poll_records = 10;
        c.prefetch = 40;
    });
    rig.poll();
    // All at once where brokers have it; never less than a poll takes.
    let mut next = 0;
    for (asked, came) in [(40, 15), (25, 20), (10, 10)] {
        let (node, token, request) = rig.fetch();
        assert_eq!((request.max_records, request.batch_size), (asked, 10));
        // Only what the application waits for may be held.
        assert_eq!(request.max_wait_ms, if asked == 40 { 500 } else { 0 });
        rig.machine.handle_fetch(rig.now, node, token, Ok(records(&[(0, next, next + came - 1)])));
        next += came;
    }
    assert!(rig.requests().is_empty(), "the buffer is full");
    assert_eq!(rig.poll().iter().map(|c| c.entries().len()).sum::<usize>(), 10);
    rig.now += LOCK;
    rig.machine.handle_timeout(rig.now);
    assert!(!rig.requests().iter().any(|r| matches!(r, Action::Fetch(..))), "nobody polls");
}

/// All that a broker may lock for a member is less than it would like to have ready: it neither asks in vain without end, nor
/// do its acknowledgements wait behind a request that is held.
#[test]
fn prefetching_at_the_limit_of_locks_goes_on_with_acknowledgements() {
    let mut rig = Rig::with(false, &[1], |c| {
        c.max_poll_records = 10;
        c.prefetch = 100;
    });
    rig.poll();
    let (node, token, _) = rig.fetch();
    rig.machine.handle_fetch(rig.now, node, token, Ok(records(&[(0, 0, 29)])));
    let (node, token, request) = rig.fetch();
    assert_eq!(request.max_wait_ms, 0);
    rig.machine.handle_fetch(rig.now, node, token, Ok(refusal(ErrorCode::NONE)));
    assert!(rig.requests().is_empty(), "it was told that there is nothing");
    for round in 0..20_i64 {
        let chunks = rig.poll();
        assert_eq!(chunks.iter().map(|c| c.entries().len()).sum::<usize>(), 10, "round {round}");
        assert!(rig.requests().is_empty(), "one acknowledgement is worth no request");
        rig.ack_all(&chunks);
        let (node, token, request) = rig.fetch();
        assert_eq!(request.topics[0].partitions[0].acknowledgement_batches[0].first_offset, 10 * round);
        assert_eq!(request.max_wait_ms, 0);
        let first = 30 + 10 * round;
        let mut answer = records(&[(0, first, first + 9)]);
        answer.partitions[0].ack_error = ErrorCode::NONE;
        rig.machine.handle_fetch(rig.now, node, token, Ok(answer));
        let (node, token, _) = rig.fetch();
        rig.machine.handle_fetch(rig.now, node, token, Ok(refusal(ErrorCode::NONE)));
        rig.outcomes();
    }
}

/// The acknowledgement of a whole poll while its locks are being renewed: none of the records is passed over, and a commit
/// waits for what follows the renewals.
#[test]
fn a_whole_poll_is_acknowledged_behind_renewals_that_are_under_way() {
    let mut rig = Rig::new(false, &[1]);
    let held = rig.receive(0, 2);
    assert_eq!(rig.machine.extend_chunks(rig.now, &held), 3);
    let renewing = rig.machine.commit(rig.now + LOCK);
    let (node, token, request) = rig.acknowledge();
    assert!(request.is_renew_ack);
    assert_eq!(ranges(&request), [(0, 2, vec![4])]);
    assert_eq!(rig.machine.extend_chunks(rig.now, &held), 3, "once more is no more");
    assert_eq!(rig.machine.acknowledge_chunks(rig.now, &held, AckType::Accept), Ok(3));
    assert_eq!(rig.machine.extend_chunks(rig.now, &held), 0);
    assert_eq!(rig.machine.acknowledge_chunks(rig.now, &held, AckType::Accept), Ok(0));
    let commit = rig.machine.commit(rig.now + LOCK);
    rig.machine.handle_acknowledge(rig.now, node, token, Ok(acked(&[(0, ErrorCode::NONE)])));
    assert!(rig.machine.poll_commit(commit).is_none(), "what follows is not said yet");
    assert_eq!(ranges(&settle(&mut rig, ErrorCode::NONE)), [(0, 2, vec![1])]);
    let result = rig.machine.poll_commit(commit).unwrap();
    assert!(result.values().all(|outcome| *outcome == Outcome::Acknowledged), "{result:?}");
    assert!(rig.machine.poll_commit(renewing).is_some());
    assert_eq!(rig.outcomes(), [(0, 2, Outcome::Acknowledged)], "renewals that nobody asked for have none");
}

/// Renewals that have not gone out yet give way.
#[test]
fn a_whole_poll_is_acknowledged_in_place_of_renewals_that_have_not_gone_out() {
    let mut rig = Rig::new(true, &[1]);
    let held = rig.receive(0, 2);
    assert_eq!(rig.machine.extend_chunks(rig.now, &held), 3);
    // In implicit mode, coming back accepts.
    rig.machine.accept_delivered(rig.now);
    rig.machine.commit(rig.now + LOCK);
    assert_eq!(ranges(&settle(&mut rig, ErrorCode::NONE)), [(0, 2, vec![1])]);
}
