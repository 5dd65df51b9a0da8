//! With an acknowledgement ledger: which request each record came by, what is known of it before it is handed out, and
//! acknowledgements that took effect in a transaction.

use super::*;
use crate::ledger::{Conflict, Run, Standing};
use std::cell::RefCell;

/// What the ledger says.
#[derive(Default)]
struct Book(RefCell<Vec<(i64, i64, Standing)>>);

impl Book {
    fn of(runs: &[(i64, i64, Standing)]) -> Book {
        Book(RefCell::new(runs.to_vec()))
    }

    fn set(&self, runs: &[(i64, i64, Standing)]) {
        *self.0.borrow_mut() = runs.to_vec();
    }
}

impl Standings for Book {
    fn standings(&self, tp: TopicIdPartition, first: i64, last: i64) -> Vec<Run> {
        assert_eq!(tp.topic_id, topic());
        let mut runs: Vec<Run> = Vec::new();
        for offset in first..=last {
            let known = self.0.borrow().iter().find(|(a, b, _)| (*a..=*b).contains(&offset)).map(|k| k.2);
            let standing = known.unwrap_or(Standing::Free);
            match runs.last_mut().filter(|run| run.standing == standing) {
                Some(run) => run.last = offset,
                None => runs.push(Run { first: offset, last: offset, standing }),
            }
        }
        runs
    }
}

const DONE: Standing = Standing::Done(AckType::Accept);

fn offsets(chunks: &[Chunk]) -> Vec<i64> {
    chunks.iter().flat_map(|c| c.entries().iter().map(|e| c.record(e).offset)).collect()
}

fn acked_in(request: &ShareFetchRequest) -> Vec<(i64, i64, Vec<i8>)> {
    let parts = request.topics.iter().flat_map(|t| &t.partitions).flat_map(|p| &p.acknowledgement_batches);
    parts.map(|b| (b.first_offset, b.last_offset, b.acknowledge_types.clone())).collect()
}

impl Rig {
    fn look(&mut self, book: &Book) -> Vec<i64> {
        self.machine.accept_delivered(self.now);
        offsets(&self.machine.take_up_to(self.now, usize::MAX, Some(book)))
    }

    /// Answers the fetch that is due with offsets of partition 0.
    fn answer(&mut self, first: i64, last: i64) -> ShareFetchRequest {
        let (node, token, request) = self.fetch();
        self.machine.handle_fetch(self.now, node, token, Ok(records(&[(0, first, last)])));
        request
    }

    fn quiet(&mut self) -> Vec<(i64, i64, Outcome)> {
        let all = std::iter::from_fn(|| self.machine.poll_quiet_outcome());
        all.map(|o| (o.first_offset, o.last_offset, o.outcome)).collect()
    }

    /// Confirms an acknowledge request of partition 0.
    fn confirm(&mut self) -> Vec<(i64, i64, Vec<i8>)> {
        let (node, token, request) = self.acknowledge();
        self.machine.handle_acknowledge(self.now, node, token, Ok(acked(&[(0, ErrorCode::NONE)])));
        ranges(&request)
    }
}

fn stage(rig: &mut Rig, chunks: &[Chunk]) -> Vec<Taken> {
    rig.machine.stage_chunks(chunks, AckType::Accept).expect("held")
}

#[test]
fn a_request_counts_until_all_it_brought_is_settled() {
    let mut rig = Rig::new(false, &[1]);
    assert_eq!((rig.machine.next_ask(), rig.machine.lowest_ask()), (1, 1));
    assert!(rig.poll().is_empty());
    let (node, token, _) = rig.fetch();
    // From the moment on at which the request was made: its answer may wait in a socket for long.
    assert_eq!((rig.machine.next_ask(), rig.machine.lowest_ask()), (2, 1));
    rig.machine.handle_fetch(rig.now, node, token, Ok(records(&[(0, 0, 9)])));
    assert_eq!(rig.machine.lowest_ask(), 1);
    let chunks = rig.poll();
    rig.ack_all(&chunks);
    assert_eq!(rig.machine.lowest_ask(), 1, "not sent yet");
    assert!(rig.poll().is_empty());
    let (node, token, request) = rig.fetch();
    assert_eq!(acked_in(&request).len(), 1);
    assert_eq!((rig.machine.next_ask(), rig.machine.lowest_ask()), (3, 1));
    rig.machine.handle_fetch(rig.now, node, token, Ok(records(&[(0, 10, 19)])));
    assert_eq!(rig.machine.lowest_ask(), 2);
    let chunks = rig.poll();
    let taken = stage(&mut rig, &chunks);
    assert_eq!(taken.iter().map(|t| t.ask).collect::<Vec<_>>(), [2]);
    rig.machine.finish_transaction(&taken, Outcome::Acknowledged);
    assert_eq!(rig.machine.lowest_ask(), 3);
    // Neither does a lost one count.
    assert!(rig.poll().is_empty());
    let (node, token, _) = rig.fetch();
    assert_eq!(rig.machine.lowest_ask(), 3);
    rig.machine.handle_fetch(rig.now, node, token, Err(lost(true)));
    assert_eq!((rig.machine.next_ask(), rig.machine.lowest_ask()), (4, 4));
}

#[test]
fn done_records_are_only_acknowledged_and_open_ones_wait() {
    for one_by_one in [false, true] {
        let mut rig = Rig::new(false, &[1]);
        let book = Book::of(&[
            (0, 1, DONE),
            (4, 4, Standing::Open),
            (6, 6, Standing::Done(AckType::Reject)),
            (9, 9, Standing::Open),
        ]);
        assert!(rig.look(&book).is_empty());
        rig.answer(0, 9);
        let got = match one_by_one {
            false => rig.look(&book),
            true => std::iter::from_fn(|| rig.machine.take_one(rig.now, Some(&book)))
                .flat_map(|chunk| offsets(&[chunk]))
                .collect(),
        };
        assert_eq!(got, [2, 3, 5, 7, 8]);
        assert_eq!(rig.machine.settled_elsewhere(), 3);
        let waiting: Vec<_> = rig.machine.waiting_in_ledger().map(|w| (w.first, w.last)).collect();
        assert_eq!(waiting, [(4, 4), (9, 9)]);
        // Nothing can be said of what waits.
        let refused = rig.machine.acknowledge_offset(rig.now, tp(0), 4, AckType::Accept);
        assert_eq!(refused, Err(AckError::NotHeld));
        // Others go on: the next fetch is not held up, and tells the broker.
        assert!(rig.look(&book).is_empty());
        let request = rig.answer(10, 10);
        assert_eq!(acked_in(&request), [(0, 1, vec![1]), (6, 6, vec![3])]);
        assert_eq!(rig.outcomes(), []);
        assert_eq!(rig.look(&book), [10]);
        // One ends with an abort, the other with a commit; they are looked at once the ledger says that something ended.
        book.set(&[(9, 9, DONE)]);
        assert!(rig.look(&book).is_empty());
        assert!(rig.machine.ledger_moved());
        assert_eq!(rig.look(&book), [4]);
        assert_eq!(rig.machine.settled_elsewhere(), 4);
        assert!(!rig.machine.ledger_moved());
        assert_eq!(rig.machine.acknowledge_offset(rig.now, tp(0), 4, AckType::Accept), Ok(()));
    }
}

#[test]
fn implicit_mode_accepts_only_what_was_handed_out() {
    let mut rig = Rig::new(true, &[1]);
    rig.machine.attach_ledger();
    let book = Book::of(&[(1, 1, Standing::Open), (2, 2, DONE)]);
    assert!(rig.look(&book).is_empty());
    rig.answer(0, 3);
    assert_eq!(rig.look(&book), [0, 3]);
    assert!(rig.look(&book).is_empty());
    let request = rig.answer(4, 4);
    assert_eq!(acked_in(&request), [(0, 0, vec![1]), (2, 3, vec![1])]);
    assert_eq!(rig.outcomes(), [(0, 0, Outcome::Acknowledged), (3, 3, Outcome::Acknowledged)]);
    assert_eq!(rig.quiet(), [(2, 2, Outcome::Acknowledged)]);
}

#[test]
fn what_waits_is_given_up_when_its_lock_ends() {
    let mut rig = Rig::new(false, &[1]);
    let book = Book::of(&[(0, 9, Standing::Open)]);
    assert!(rig.look(&book).is_empty());
    rig.answer(0, 9);
    assert!(rig.look(&book).is_empty());
    rig.now += LOCK;
    rig.machine.ledger_moved();
    book.set(&[]);
    assert!(rig.look(&book).is_empty());
    assert_eq!(rig.machine.waiting_in_ledger().count(), 0);
    rig.now += LOCK_GRACE + Duration::from_millis(1);
    rig.machine.handle_timeout(rig.now);
    assert_eq!((rig.machine.live_slots(), rig.outcomes()), (0, vec![]));
    assert_eq!(rig.machine.lowest_ask(), rig.machine.next_ask());
}

#[test]
fn a_lost_session_takes_what_waits_along() {
    let mut rig = Rig::new(false, &[1]);
    let book = Book::of(&[(0, 9, Standing::Open)]);
    assert!(rig.look(&book).is_empty());
    rig.answer(0, 9);
    assert!(rig.look(&book).is_empty());
    rig.machine.stop_waiting();
    rig.machine.handle_disconnected(rig.now, 1);
    assert_eq!(rig.machine.waiting_in_ledger().count(), 0);
    assert_eq!(rig.machine.live_slots(), 0);
}

#[test]
fn r2_below_the_floor_nothing_counts() {
    let mut rig = Rig::new(false, &[1]);
    let chunks = rig.receive(0, 9);
    let staged = stage(&mut rig, &chunks);
    assert!(rig.poll().is_empty());
    let (node, token, request) = rig.fetch();
    assert_eq!(request.share_session_epoch, 1);
    let floor = rig.machine.next_ask();
    rig.machine.drop_below(floor);
    assert_eq!(rig.machine.floor(), floor);
    assert!(staged.iter().all(|t| t.ask < floor));
    rig.machine.handle_fetch(rig.now, node, token, Ok(records(&[(0, 10, 19)])));
    assert!(rig.poll().is_empty());
    // The session is closed without a word about the records.
    let (node, token, request) = rig.acknowledge();
    assert_eq!((request.share_session_epoch, ranges(&request).len()), (-1, 0));
    rig.machine.handle_acknowledge(rig.now, node, token, Ok(acked(&[])));
    rig.machine.abort_by_ledger(rig.now, &staged, &[], true);
    assert_eq!(rig.outcomes(), [(0, 9, Outcome::LockLost)]);
    assert_eq!(rig.machine.lowest_ask(), rig.machine.next_ask());
    // And it goes on in a new one.
    let request = rig.answer(0, 9);
    assert_eq!(request.share_session_epoch, 0);
    assert_eq!(offsets(&rig.poll()).len(), 10);
}

#[test]
fn r2_acknowledgements_on_their_way_have_their_outcome() {
    let mut rig = Rig::new(false, &[1]);
    let chunks = rig.receive(0, 9);
    rig.ack_all(&chunks);
    let commit = rig.machine.commit(rig.now + LOCK);
    rig.machine.drop_below(rig.machine.next_ask());
    // Not sent, and not to be.
    assert_eq!(rig.outcomes(), [(0, 9, Outcome::LockLost)]);
    assert_eq!(rig.machine.poll_commit(commit).unwrap()[&tp(0)], Outcome::LockLost);
    let (_, _, request) = rig.acknowledge();
    assert_eq!((request.share_session_epoch, ranges(&request).len()), (-1, 0));
}

#[test]
fn without_a_session_there_is_nothing_to_close() {
    let mut rig = Rig::new(false, &[1]);
    rig.machine.drop_below(rig.machine.next_ask());
    assert!(rig.poll().is_empty());
    assert_eq!(rig.answer(0, 9).share_session_epoch, 0);
    assert_eq!(rig.poll().len(), 1);
}

#[test]
fn nothing_is_fetched_before_the_ledger_is_read() {
    let mut rig = Rig::new(false, &[1]);
    rig.machine.hold_fetches(true);
    assert!(rig.poll().is_empty());
    assert!(rig.requests().is_empty());
    rig.machine.hold_fetches(false);
    rig.answer(0, 0);
    assert_eq!(rig.poll().len(), 1);
}

#[test]
fn a_commit_by_the_ledger_has_one_outcome_and_is_told_to_the_broker() {
    let mut rig = Rig::new(false, &[1]);
    let chunks = rig.receive(0, 9);
    let taken = stage(&mut rig, &chunks);
    rig.machine.commit_by_ledger(rig.now, &taken);
    assert_eq!(rig.outcomes(), [(0, 9, Outcome::Acknowledged)]);
    assert!(rig.machine.take_for_transaction().unwrap().is_empty(), "they are no pending acknowledgements of its own");
    assert!(rig.poll().is_empty());
    let request = rig.answer(10, 19);
    assert_eq!(acked_in(&request), [(0, 9, vec![1])]);
    assert_eq!((rig.outcomes(), rig.quiet()), (vec![], vec![(0, 9, Outcome::Acknowledged)]));
    // Without a fetch they go by age, as others do.
    let chunks = rig.poll();
    let taken = stage(&mut rig, &chunks);
    rig.machine.commit_by_ledger(rig.now, &taken);
    assert!(rig.requests().is_empty());
    rig.now += Duration::from_secs(5);
    let (node, token, request) = rig.acknowledge();
    assert_eq!(ranges(&request), [(10, 19, vec![1])]);
    rig.machine.handle_acknowledge(rig.now, node, token, Ok(acked(&[(0, ErrorCode::INVALID_RECORD_STATE)])));
    assert_eq!(rig.quiet(), [(10, 19, Outcome::Refused(ErrorCode::INVALID_RECORD_STATE))]);
    assert_eq!(rig.outcomes(), [(10, 19, Outcome::Acknowledged)]);
    assert_eq!(rig.machine.lowest_ask(), rig.machine.next_ask());
}

#[test]
fn a_commit_after_the_lock_is_lost_is_a_commit() {
    let mut rig = Rig::new(false, &[1]);
    let chunks = rig.receive(0, 9);
    let taken = stage(&mut rig, &chunks);
    rig.machine.handle_disconnected(rig.now, 1);
    rig.machine.commit_by_ledger(rig.now, &taken);
    assert_eq!((rig.outcomes(), rig.quiet()), (vec![(0, 9, Outcome::Acknowledged)], vec![]));
    assert_eq!((rig.machine.live_slots(), rig.machine.lowest_ask()), (0, rig.machine.next_ask()));
}

#[test]
fn at_close_committed_acknowledgements_go_with_the_session() {
    let mut rig = Rig::new(false, &[1]);
    let chunks = rig.receive(0, 9);
    let taken = stage(&mut rig, &chunks);
    rig.machine.commit_by_ledger(rig.now, &taken);
    rig.machine.close(rig.now);
    let (node, token, request) = rig.acknowledge();
    rig.machine.handle_acknowledge(rig.now, node, token, Ok(acked(&[(0, ErrorCode::NONE)])));
    assert_eq!((request.share_session_epoch, ranges(&request)), (-1, vec![(0, 9, vec![1])]));
    assert_eq!(rig.quiet(), [(0, 9, Outcome::Acknowledged)]);
}

#[test]
fn an_abort_of_the_application_releases_at_once() {
    let mut rig = Rig::new(false, &[1]);
    let chunks = rig.receive(0, 9);
    let taken = stage(&mut rig, &chunks);
    rig.machine.abort_by_ledger(rig.now, &taken, &[], false);
    assert_eq!(rig.confirm(), [(0, 9, vec![2])]);
    assert_eq!((rig.outcomes(), rig.quiet()), (vec![(0, 9, Outcome::LockLost)], vec![]));
}

#[test]
fn after_a_conflict_the_rest_comes_again_under_its_lock() {
    for implicit in [false, true] {
        let mut rig = Rig::new(implicit, &[1]);
        rig.machine.attach_ledger();
        let chunks = rig.receive(0, 9);
        let book = Book::of(&[(2, 3, Standing::Done(AckType::Reject)), (5, 5, Standing::Open)]);
        let conflict = Conflict { tp: tp(0), first: 2, last: 3, ack: AckType::Reject };
        let taken = stage(&mut rig, &chunks);
        rig.machine.abort_by_ledger(rig.now, &taken, &[conflict], true);
        assert_eq!(rig.confirm(), [(2, 3, vec![3])]);
        assert_eq!(
            (rig.outcomes(), rig.quiet()),
            (vec![(0, 9, Outcome::LockLost)], vec![(2, 3, Outcome::Acknowledged)])
        );
        // Nothing of it is accepted by the poll that follows.
        assert_eq!(rig.look(&book), [0, 1, 4, 6, 7, 8, 9]);
        assert_eq!(rig.requests().len(), 0);
        // The next time they pause, as nothing was done.
        let again = rig.machine.stage_ranges([(tp(0), 6, 9, &[AckType::Accept][..])]).expect("held");
        rig.machine.abort_by_ledger(rig.now, &again, &[], true);
        assert!(rig.look(&book).is_empty());
        rig.now += Duration::from_secs(1);
        rig.machine.handle_timeout(rig.now);
        assert!(rig.machine.take_aside_news());
        assert_eq!(rig.look(&book), [6, 7, 8, 9]);
    }
}

#[test]
fn after_a_conflict_near_the_end_of_the_lock_the_rest_is_released() {
    let mut rig = Rig::new(false, &[1]);
    let chunks = rig.receive(0, 9);
    let taken = stage(&mut rig, &chunks);
    rig.now += LOCK - LOCK / 4;
    rig.machine.abort_by_ledger(rig.now, &taken, &[], true);
    assert_eq!(rig.confirm(), [(0, 9, vec![2])]);
    assert!(rig.poll().is_empty());
}

#[test]
fn staged_locks_are_renewed_and_stay_staged() {
    let mut rig = Rig::new(false, &[1]);
    let chunks = rig.receive(0, 9);
    let taken = stage(&mut rig, &chunks);
    assert!(!rig.machine.renew_staged(rig.now, &taken), "there is time enough");
    rig.now += LOCK / 2 + Duration::from_millis(1);
    assert!(rig.machine.renew_staged(rig.now, &taken));
    assert_eq!(rig.confirm(), [(0, 9, vec![4])]);
    assert!(!rig.machine.renew_staged(rig.now, &taken));
    assert_eq!(rig.outcomes(), []);
    // Past the first lock they are there still.
    rig.now += LOCK / 2 + LOCK_GRACE + Duration::from_millis(1);
    rig.machine.handle_timeout(rig.now);
    rig.machine.commit_by_ledger(rig.now, &taken);
    assert_eq!(rig.outcomes(), [(0, 9, Outcome::Acknowledged)]);
    rig.now += Duration::from_secs(5);
    assert_eq!(rig.confirm(), [(0, 9, vec![1])]);
}

#[test]
fn a_refused_renewal_of_staged_records_changes_nothing() {
    let mut rig = Rig::new(false, &[1]);
    let chunks = rig.receive(0, 9);
    let taken = stage(&mut rig, &chunks);
    rig.now += LOCK * 3 / 4;
    assert!(rig.machine.renew_staged(rig.now, &taken));
    let (node, token, request) = rig.acknowledge();
    assert!(request.is_renew_ack);
    rig.machine.handle_acknowledge(rig.now, node, token, Ok(acked(&[(0, ErrorCode::INVALID_RECORD_STATE)])));
    assert_eq!(rig.outcomes(), []);
    // Without a session nothing is sent.
    rig.machine.handle_disconnected(rig.now, 1);
    assert!(!rig.machine.renew_staged(rig.now, &taken));
    rig.machine.commit_by_ledger(rig.now, &taken);
    assert_eq!(rig.outcomes(), [(0, 9, Outcome::Acknowledged)]);
}

#[test]
fn brokers_that_cannot_renew_are_not_asked_to() {
    let mut rig = Rig::new(false, &[1]);
    assert!(rig.poll().is_empty());
    let (node, token, _) = rig.fetch();
    let answer = FetchAnswer { renewals: false, ..records(&[(0, 0, 9)]) };
    rig.machine.handle_fetch(rig.now, node, token, Ok(answer));
    let chunks = rig.poll();
    let taken = stage(&mut rig, &chunks);
    rig.now += LOCK * 3 / 4;
    assert!(!rig.machine.renew_staged(rig.now, &taken));
}

#[test]
fn ranges_that_the_application_names_are_staged_if_they_are_held() {
    let mut rig = Rig::new(false, &[1]);
    let chunks = rig.receive(0, 9);
    assert!(rig.poll().is_empty());
    rig.answer(10, 19);
    rig.poll();
    rig.machine.acknowledge_offset(rig.now, tp(0), 3, AckType::Accept).unwrap();
    rig.machine.acknowledge_offset(rig.now, tp(0), 4, AckType::Reject).unwrap();
    let one = [AckType::Accept];
    assert_eq!(rig.machine.stage_ranges([(tp(0), 0, 4, &one[..])]), None, "4 is rejected");
    let two = [(tp(0), 0, 1, &one[..]), (tp(0), 4, 4, &one[..])];
    assert_eq!(rig.machine.stage_ranges(two), None, "nor is the first staged then");
    assert_eq!(rig.machine.stage_ranges([(tp(0), 15, 20, &one[..])]), None, "20 was not acquired");
    assert_eq!(rig.machine.stage_ranges([(tp(1), 0, 1, &one[..])]), None);
    let types = [AckType::Accept, AckType::Reject, AckType::Accept];
    let mixed = rig.machine.stage_ranges([(tp(0), 3, 5, &types[..])]).unwrap();
    let batches: Vec<_> = mixed.iter().flat_map(|t| &t.batches).map(|b| (b.first, b.last, b.types.clone())).collect();
    assert_eq!(batches, [(3, 3, vec![1]), (4, 4, vec![3]), (5, 5, vec![1])]);
    let both = rig.machine.stage_ranges([(tp(0), 6, 19, &one[..])]).unwrap();
    assert_eq!(both.iter().map(|t| (t.ask, t.batches[0].first)).collect::<Vec<_>>(), [(1, 6), (2, 10)]);
    assert_eq!(rig.machine.stage_ranges([(tp(0), 9, 10, &one[..])]), None, "in a transaction");
    // Nothing of it goes the ordinary way.
    assert_eq!(rig.machine.acknowledge_chunks(rig.now, &chunks[..1], AckType::Accept), Ok(3));
    rig.machine.commit(rig.now + LOCK);
    assert_eq!(rig.confirm(), [(0, 2, vec![1])]);
}

/// The answer to a renewal that went out before the commit says nothing of the acceptance that followed it.
#[test]
fn the_answer_to_a_renewal_confirms_no_acceptance() {
    let mut rig = Rig::new(false, &[1]);
    let chunks = rig.receive(0, 9);
    let taken = stage(&mut rig, &chunks);
    rig.now += LOCK * 3 / 4;
    // A fetch is under way: the renewal waits behind it, and the acceptance behind the renewal.
    rig.poll();
    let (node, fetch, _) = rig.fetch();
    assert!(rig.machine.renew_staged(rig.now, &taken));
    rig.machine.commit_by_ledger(rig.now, &taken);
    assert_eq!(rig.outcomes(), [(0, 9, Outcome::Acknowledged)]);
    let commit = rig.machine.commit(rig.now + LOCK);
    rig.machine.forget_commit(commit);
    rig.machine.handle_fetch(rig.now, node, fetch, Ok(refusal(ErrorCode::NONE)));
    assert_eq!(rig.confirm(), [(0, 9, vec![4])]);
    assert_eq!(rig.quiet(), [], "only a renewal was answered");
    let asks = rig.machine.lowest_ask();
    assert!(asks < rig.machine.next_ask(), "the acceptance is not settled");
    // It is lost: nothing is confirmed, and the ledger keeps its intent.
    let (node, token, request) = rig.acknowledge();
    assert_eq!(ranges(&request), [(0, 9, vec![1])]);
    rig.machine.handle_acknowledge(rig.now, node, token, Err(lost(true)));
    assert_eq!(rig.quiet(), [(0, 9, Outcome::Unknown)]);
}

#[test]
fn ranges_that_the_application_names_hold_nothing_that_it_was_not_given() {
    let mut rig = Rig::new(false, &[1]);
    rig.machine.attach_ledger();
    let book = Book::of(&[(5, 5, Standing::Open)]);
    assert_eq!(rig.look(&book), []);
    rig.answer(0, 9);
    assert_eq!(rig.look(&book), [0, 1, 2, 3, 4, 6, 7, 8, 9]);
    let one = [AckType::Accept];
    assert_eq!(rig.machine.stage_ranges([(tp(0), 0, 9, &one[..])]), None, "another's transaction claims 5");
    let around = [(tp(0), 0, 4, &one[..]), (tp(0), 6, 9, &one[..])];
    assert!(rig.machine.stage_ranges(around).is_some());
}

#[test]
fn locks_of_records_that_wait_are_renewed_where_brokers_can() {
    for renewals in [true, false] {
        let mut rig = Rig::new(false, &[1]);
        let book = Book::of(&[(0, 9, Standing::Open)]);
        assert!(rig.look(&book).is_empty());
        let (node, token, _) = rig.fetch();
        let answer = FetchAnswer { renewals, ..records(&[(0, 0, 9)]) };
        rig.machine.handle_fetch(rig.now, node, token, Ok(answer));
        assert!(rig.look(&book).is_empty());
        rig.machine.stop_waiting();
        let until = rig.now + LOCK;
        if !renewals {
            rig.now = until - Duration::from_millis(1);
            rig.machine.handle_timeout(rig.now);
            assert!(rig.machine.aside_renewal_due().is_none());
            continue;
        }
        // Over and over, as long as the other's transaction is open and the application polls.
        for turn in 1..=4 {
            assert!(rig.look(&book).is_empty());
            rig.machine.stop_waiting();
            let due = rig.now + LOCK / 2;
            assert_eq!(rig.machine.aside_renewal_due(), Some(due), "turn {turn}");
            assert!(rig.machine.next_deadline().is_some_and(|at| at <= due));
            rig.now = due;
            rig.machine.handle_timeout(rig.now);
            assert_eq!(rig.confirm(), [(0, 9, vec![4])], "turn {turn}");
            assert_eq!(rig.machine.waiting_in_ledger().map(|w| w.until).collect::<Vec<_>>(), [rig.now + LOCK]);
        }
        assert!(rig.now > until + LOCK_GRACE);
        // An application that is busy with others does not keep them for ever.
        let mut renewed = 0;
        while let Some(due) = rig.machine.aside_renewal_due() {
            rig.now = due;
            rig.machine.handle_timeout(rig.now);
            rig.confirm();
            renewed += 1;
        }
        assert!(renewed <= 2, "{renewed} renewals without a poll");
        assert_eq!((rig.quiet(), rig.outcomes()), (vec![], vec![]));
        book.set(&[]);
        assert!(rig.machine.ledger_moved());
        assert_eq!(rig.look(&book), (0..10).collect::<Vec<_>>());
        assert!(rig.machine.aside_renewal_due().is_none());
    }
}

#[test]
fn a_refused_renewal_of_records_that_wait_is_not_repeated_at_once() {
    let mut rig = Rig::new(false, &[1]);
    let book = Book::of(&[(0, 9, Standing::Open)]);
    assert!(rig.look(&book).is_empty());
    rig.answer(0, 9);
    assert!(rig.look(&book).is_empty());
    rig.machine.stop_waiting();
    rig.now += LOCK / 2;
    rig.machine.handle_timeout(rig.now);
    let (node, token, request) = rig.acknowledge();
    assert!(request.is_renew_ack);
    rig.machine.handle_acknowledge(rig.now, node, token, Ok(acked(&[(0, ErrorCode::INVALID_RECORD_STATE)])));
    rig.machine.handle_timeout(rig.now);
    assert!(rig.machine.aside_renewal_due().is_some_and(|at| at > rig.now));
    assert_eq!((rig.quiet(), rig.outcomes()), (vec![], vec![]));
}
