//! Tests of the coordinator. The expected codes and epochs were seen on Kafka 4.4.0.

use super::*;
use kafka_share_wire::Uuid;

const TIMEOUT: i32 = 60_000;

fn member(index: i32) -> Participant {
    Participant::Partition(Uuid([1; 16]), index)
}

struct Rig {
    txns: Transactions,
    now: Now,
    id: Str,
}

impl Rig {
    fn new() -> Self {
        let limits = Limits {
            max_timeout_ms: 900_000,
            two_phase_commit: false,
            keep_prepared: false,
            marker_delay: Duration::ZERO,
            max_ids: 3,
        };
        Rig { txns: Transactions::new(limits), now: Now::default(), id: Str::from_static("t") }
    }

    fn init(&mut self, current: Option<(i64, i16)>) -> Result<(i64, i16), ErrorCode> {
        let id = self.id.clone();
        let request = InitRequest {
            txn_id: Some(&id),
            timeout_ms: TIMEOUT,
            current,
            enable_two_phase_commit: false,
            keep_prepared: false,
        };
        let result = self.txns.init(self.now, &request);
        self.complete();
        result.map(|identity| (identity.producer_id, identity.epoch))
    }

    fn complete(&mut self) -> Vec<Completion> {
        let mut all = Vec::new();
        while let Some(completion) = self.txns.poll_completion(self.now) {
            self.txns.completed(self.now, &completion.txn_id);
            all.push(completion);
        }
        all
    }

    fn enrol(&mut self, producer: (i64, i16), v2: bool) -> Result<(), ErrorCode> {
        self.txns.enrol(self.now, &self.id, producer, &[member(0)], v2)
    }

    fn end(&mut self, producer: (i64, i16), commit: bool, v2: bool) -> Result<(i64, i16), ErrorCode> {
        let result = self.txns.end(self.now, &self.id, producer, commit, v2);
        self.complete();
        result.map(|ended| (ended.producer_id, ended.epoch))
    }

    fn status(&self) -> Status {
        self.txns.get("t").unwrap().status
    }
}

#[test]
fn tv2_takes_an_epoch_per_transaction_and_knows_repeats() {
    let mut rig = Rig::new();
    let (id, epoch) = rig.init(None).unwrap();
    assert_eq!((id, epoch), (0, 0));
    rig.enrol((id, 0), true).unwrap();
    assert_eq!(rig.end((id, 0), true, true), Ok((id, 1)));
    assert_eq!(rig.end((id, 0), true, true), Ok((id, 1)), "repeated");
    assert_eq!(rig.end((id, 0), false, true), Err(ErrorCode::INVALID_TXN_STATE));
    assert_eq!(rig.end((id, 1), true, true), Err(ErrorCode::INVALID_TXN_STATE), "nothing was begun");
    assert_eq!(rig.end((id, 1), false, true), Ok((id, 2)));
    assert_eq!(rig.end((id, 7), true, true), Err(ErrorCode::PRODUCER_FENCED));
    assert_eq!(rig.end((id, 0), true, true), Err(ErrorCode::PRODUCER_FENCED));
    assert_eq!(rig.end((id + 9, 2), true, true), Err(ErrorCode::INVALID_PRODUCER_ID_MAPPING));
}

#[test]
fn tv1_keeps_the_epoch() {
    let mut rig = Rig::new();
    let producer = rig.init(None).unwrap();
    assert_eq!(rig.end(producer, false, false), Err(ErrorCode::INVALID_TXN_STATE));
    rig.enrol(producer, false).unwrap();
    assert_eq!(rig.end(producer, true, false), Ok(producer));
    assert_eq!(rig.end(producer, true, false), Ok(producer), "repeated");
    assert_eq!(rig.end(producer, false, false), Err(ErrorCode::INVALID_TXN_STATE));
    assert_eq!(rig.status(), Status::CompleteCommit);
}

#[test]
fn r050_an_open_transaction_is_aborted_by_the_next_producer() {
    for v2 in [false, true] {
        let mut rig = Rig::new();
        let old = rig.init(None).unwrap();
        rig.enrol(old, v2).unwrap();
        assert_eq!(rig.init(None), Err(ErrorCode::CONCURRENT_TRANSACTIONS));
        assert_eq!(rig.status(), Status::CompleteAbort);
        // One step for the fence, one for the new producer: as a real 4.4.0 counts, on TV2 too.
        assert_eq!(rig.init(None), Ok((old.0, 2)));
        assert_eq!(rig.enrol(old, v2), Err(ErrorCode::PRODUCER_FENCED));
        assert_eq!(rig.end(old, true, v2), Err(ErrorCode::PRODUCER_FENCED));
    }
}

#[test]
fn r056_a_timeout_aborts_and_a_late_commit_is_refused() {
    for v2 in [false, true] {
        let mut rig = Rig::new();
        let producer = rig.init(None).unwrap();
        rig.enrol(producer, v2).unwrap();
        assert_eq!(rig.txns.next_deadline(), Some(Duration::from_millis(TIMEOUT as u64)));
        rig.now.mono = Duration::from_millis(TIMEOUT as u64);
        rig.txns.handle_timeout(rig.now);
        let completions = rig.complete();
        assert_eq!((completions.len(), completions[0].committed, completions[0].epoch), (1, false, 1));
        if v2 {
            assert_eq!(rig.end(producer, true, true), Err(ErrorCode::INVALID_TXN_STATE));
            assert_eq!(rig.end(producer, false, true), Ok((0, 1)));
            assert_eq!(rig.init(Some(producer)), Ok((0, 1)), "the fence is what the producer is owed");
        } else {
            assert_eq!(rig.end(producer, true, false), Err(ErrorCode::PRODUCER_FENCED));
            assert_eq!(rig.init(Some(producer)), Err(ErrorCode::PRODUCER_FENCED));
        }
        assert_eq!(rig.txns.next_deadline(), None);
    }
}

#[test]
fn resumption_gives_the_next_epoch_once() {
    let mut rig = Rig::new();
    let (id, epoch) = rig.init(None).unwrap();
    assert_eq!(rig.init(Some((id, epoch))), Ok((id, 1)));
    assert_eq!(rig.init(Some((id, epoch))), Ok((id, 1)), "the answer was lost");
    assert_eq!(rig.init(Some((id, 7))), Err(ErrorCode::PRODUCER_FENCED));
    assert_eq!(rig.init(Some((id + 7, 1))), Err(ErrorCode::PRODUCER_FENCED));
}

#[test]
fn r181_the_last_epoch_hands_over_to_a_new_producer_id() {
    let mut rig = Rig::new();
    let (id, _) = rig.init(None).unwrap();
    rig.txns.txns.get_mut("t").unwrap().epoch = 32_766;
    rig.enrol((id, 32_766), true).unwrap();
    let (next, epoch) = rig.end((id, 32_766), true, true).unwrap();
    assert_eq!((next, epoch), (id + 1, 0));
    assert_eq!(rig.end((id, 32_766), true, true), Ok((next, 0)), "repeated");
    rig.enrol((next, 0), true).unwrap();
    assert_eq!(rig.end((next, 0), true, true), Ok((next, 1)));
    // The same by InitProducerId.
    rig.txns.txns.get_mut("t").unwrap().epoch = 32_766;
    assert_eq!(rig.init(None), Ok((next + 1, 0)));
}

#[test]
fn markers_under_way_hold_everything_up() {
    let mut rig = Rig::new();
    rig.txns.limits.marker_delay = Duration::from_millis(100);
    let producer = rig.init(None).unwrap();
    rig.enrol(producer, true).unwrap();
    assert_eq!(rig.end(producer, true, true), Ok((0, 1)));
    assert_eq!(rig.end(producer, true, true), Err(ErrorCode::CONCURRENT_TRANSACTIONS));
    assert_eq!(rig.enrol((0, 1), true), Err(ErrorCode::CONCURRENT_TRANSACTIONS));
    assert_eq!(rig.init(None), Err(ErrorCode::CONCURRENT_TRANSACTIONS));
    rig.now.mono = Duration::from_millis(100);
    assert_eq!(rig.complete().len(), 1);
    assert_eq!(rig.enrol((0, 1), true), Ok(()));
}

#[test]
fn membership_is_verified() {
    let mut rig = Rig::new();
    let producer = rig.init(None).unwrap();
    rig.enrol(producer, false).unwrap();
    let id = rig.id.clone();
    assert_eq!(rig.txns.verify(&id, producer, member(0)), Ok(()));
    assert_eq!(rig.txns.verify(&id, producer, member(1)), Err(ErrorCode::TRANSACTION_ABORTABLE));
    assert_eq!(rig.txns.verify(&id, (0, 9), member(0)), Err(ErrorCode::PRODUCER_FENCED));
    let other = Str::from_static("other");
    assert_eq!(rig.txns.verify(&other, producer, member(0)), Err(ErrorCode::INVALID_PRODUCER_ID_MAPPING));
}

//= TXN-PREPARED-01
#[test]
fn bad_requests_for_an_identity_are_refused() {
    let mut rig = Rig::new();
    let (id, empty) = (rig.id.clone(), Str::default());
    let base = InitRequest {
        txn_id: Some(&id),
        timeout_ms: TIMEOUT,
        current: None,
        enable_two_phase_commit: false,
        keep_prepared: false,
    };
    let mut code = |request: InitRequest<'_>| rig.txns.init(Now::default(), &request).unwrap_err();
    assert_eq!(code(InitRequest { txn_id: Some(&empty), ..base }), ErrorCode::INVALID_REQUEST);
    assert_eq!(code(InitRequest { timeout_ms: 0, ..base }), ErrorCode::INVALID_TRANSACTION_TIMEOUT);
    assert_eq!(code(InitRequest { timeout_ms: 900_001, ..base }), ErrorCode::INVALID_TRANSACTION_TIMEOUT);
    assert_eq!(code(InitRequest { keep_prepared: true, ..base }), ErrorCode::UNSUPPORTED_VERSION);
    let two_phase = InitRequest { enable_two_phase_commit: true, ..base };
    assert_eq!(code(two_phase), ErrorCode::TRANSACTIONAL_ID_AUTHORIZATION_FAILED);
    assert!(rig.txns.init(Now::default(), &InitRequest { txn_id: None, ..base }).is_ok());
}

/// Two-phase commit of KIP-939.
mod kept {
    use super::*;

    fn rig() -> Rig {
        let mut rig = Rig::new();
        rig.txns.limits.two_phase_commit = true;
        rig.txns.limits.keep_prepared = true;
        rig
    }

    impl Rig {
        fn keep(&mut self) -> Result<Identity, ErrorCode> {
            let id = self.id.clone();
            let request = InitRequest {
                txn_id: Some(&id),
                timeout_ms: TIMEOUT,
                current: None,
                enable_two_phase_commit: true,
                keep_prepared: true,
            };
            self.txns.init(self.now, &request)
        }
    }

    //= TXN-PREPARED-02 TXN-PREPARED-03 TXN-PREPARED-04
    #[test]
    fn a_kept_transaction_ends_under_its_old_identity() {
        for commit in [true, false] {
            let mut rig = rig();
            assert_eq!(rig.keep().unwrap(), Identity { producer_id: 0, epoch: 0, ongoing: None }, "nothing to keep");
            rig.enrol((0, 0), true).unwrap();
            assert_eq!(rig.txns.next_deadline(), None, "two-phase transactions have no timeout");
            assert_eq!(rig.keep().unwrap(), Identity { producer_id: 0, epoch: 1, ongoing: Some((0, 0)) });
            assert_eq!(rig.keep().unwrap(), Identity { producer_id: 0, epoch: 2, ongoing: Some((0, 0)) }, "again");
            assert_eq!((rig.status(), rig.txns.get("t").unwrap().epoch), (Status::Ongoing, 0));
            for stale in [(0, 0), (0, 1), (0, 3)] {
                assert_eq!(rig.end(stale, commit, true), Err(ErrorCode::PRODUCER_FENCED));
                assert_eq!(rig.enrol(stale, true), Err(ErrorCode::PRODUCER_FENCED));
            }
            assert_eq!(rig.enrol((0, 2), true), Err(ErrorCode::INVALID_TXN_STATE), "only to be ended");
            assert_eq!(rig.end((0, 2), commit, false), Err(ErrorCode::INVALID_TXN_STATE), "not in an old version");
            let ended = rig.txns.end(rig.now, &rig.id.clone(), (0, 2), commit, true).unwrap();
            assert_eq!((ended.producer_id, ended.epoch), (0, 3));
            let id = rig.id.clone();
            let again = rig.txns.end(rig.now, &id, (0, 2), commit, true);
            assert_eq!(again, Err(ErrorCode::CONCURRENT_TRANSACTIONS), "markers are under way");
            let markers = rig.complete();
            assert_eq!((markers[0].producer_id, markers[0].epoch, markers[0].committed), (0, 1, commit));
            assert_eq!(rig.end((0, 2), commit, true), Ok((0, 3)), "repeated");
            rig.enrol((0, 3), true).unwrap();
        }
    }

    #[test]
    fn the_end_of_the_epochs_hands_over_to_a_new_producer_id() {
        let mut rig = rig();
        rig.keep().unwrap();
        rig.txns.txns.get_mut("t").unwrap().epoch = 32_766;
        rig.enrol((0, 32_766), true).unwrap();
        assert_eq!(rig.keep().unwrap(), Identity { producer_id: 1, epoch: 0, ongoing: Some((0, 32_766)) });
        assert_eq!(rig.end((0, 32_766), true, true), Err(ErrorCode::INVALID_PRODUCER_ID_MAPPING));
        let id = rig.id.clone();
        assert!(rig.txns.end(rig.now, &id, (1, 0), true, true).is_ok());
        assert_eq!((rig.complete()[0].producer_id, rig.txns.get("t").unwrap().epoch), (0, 1));
        assert_eq!(rig.end((1, 0), true, true), Ok((1, 1)), "repeated");
        assert_eq!(rig.init(Some((1, 1))), Ok((1, 2)));
    }

    //= TXN-PREPARED-05 TXN-PREPARED-06
    #[test]
    fn a_producer_that_does_not_keep_aborts() {
        let mut rig = rig();
        rig.keep().unwrap();
        rig.enrol((0, 0), true).unwrap();
        rig.keep().unwrap();
        assert_eq!(rig.init(None), Err(ErrorCode::CONCURRENT_TRANSACTIONS));
        assert_eq!(rig.status(), Status::CompleteAbort);
        assert_eq!(rig.end((0, 1), true, true), Err(ErrorCode::INVALID_TXN_STATE), "the keeper's commit came too late");
        assert_eq!(rig.init(None), Ok((0, 3)));
        let id = rig.id.clone();
        let again = InitRequest {
            txn_id: Some(&id),
            timeout_ms: TIMEOUT,
            current: Some((0, 3)),
            enable_two_phase_commit: false,
            keep_prepared: true,
        };
        assert_eq!(rig.txns.init(rig.now, &again), Err(ErrorCode::INVALID_REQUEST), "only who comes back may keep");
    }
}

#[test]
fn idle_ids_expire_and_their_number_is_limited() {
    let mut rig = Rig::new();
    let producer = rig.init(None).unwrap();
    rig.enrol(producer, true).unwrap();
    for id in ["u", "v"] {
        rig.id = Str::from_static(id);
        rig.init(None).unwrap();
    }
    rig.id = Str::from_static("w");
    assert_eq!(rig.init(None), Err(ErrorCode::POLICY_VIOLATION));
    rig.txns.expire_ids(999, 1000);
    assert_eq!(rig.txns.iter().count(), 3);
    rig.txns.expire_ids(1000, 1000);
    assert_eq!(rig.txns.iter().map(|txn| txn.id.as_str()).collect::<Vec<_>>(), ["t"], "it is open");
    assert!(rig.init(None).is_ok());
}
