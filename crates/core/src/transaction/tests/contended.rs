//! Producers whose transactions other members may end. The answers are those that Kafka gives (see the theme `contenders` of
//! the differential test of transactions).

use super::*;

fn fenced(version: i16) -> (Transaction, Instant) {
    let now = Instant::now();
    let mut txn = open(version, now);
    txn.expect_contenders();
    join(&mut txn);
    (txn, now)
}

/// With an intent that is in the ledger, and a commit that was sent.
fn committing(version: i16) -> (Transaction, Instant) {
    let (mut txn, now) = fenced(version);
    txn.expect_verdict();
    txn.start_commit().unwrap();
    assert!(matches!(txn.end(), Ok(End::EndTxn(_))));
    (txn, now)
}

fn given(epoch: i16) -> InitProducerIdResponse {
    InitProducerIdResponse { producer_epoch: epoch, ..init_answer(ErrorCode::NONE) }
}

fn asked(txn: &mut Transaction) -> (i64, i16) {
    match txn.end() {
        Ok(End::NewEpoch(request)) => (request.producer_id, request.producer_epoch),
        other => panic!("{other:?}"),
    }
}

/// Codes of a commit whose transaction somebody else has ended, by transaction.version.
const REFUSALS: [(i16, ErrorCode); 5] = [
    (2, ErrorCode::INVALID_TXN_STATE),
    (2, ErrorCode::PRODUCER_FENCED),
    (2, ErrorCode::INVALID_PRODUCER_EPOCH),
    (1, ErrorCode::PRODUCER_FENCED),
    (1, ErrorCode::INVALID_PRODUCER_EPOCH),
];

#[test]
fn a_refused_commit_is_judged_by_what_is_found_elsewhere() {
    for (version, code) in REFUSALS {
        for committed in [true, false] {
            let (mut txn, now) = committing(version);
            assert_eq!(txn.handle_end(now, &end_answer(code, -1)), Verdict::Undecided, "{version} {code}");
            // Nothing but the same commit may follow.
            assert_eq!(txn.start_abort().unwrap_err().kind, TxnErrorKind::OutcomeUnknown);
            assert_eq!(txn.begin(now).unwrap_err().kind, TxnErrorKind::OutcomeUnknown);
            assert_eq!(txn.handle_end_given_up("late").kind, TxnErrorKind::OutcomeUnknown);
            txn.start_commit().unwrap();
            // A verdict does not count before what is under way is over.
            assert_eq!(txn.handle_verdict(!committed), Verdict::Undecided);
            assert_eq!(asked(&mut txn), (7, 3));
            let busy = init_answer(ErrorCode::CONCURRENT_TRANSACTIONS);
            assert_eq!(txn.handle_init(&busy), Verdict::Retry(ErrorCode::CONCURRENT_TRANSACTIONS));
            assert_eq!(txn.handle_init(&given(4)), Verdict::Done);
            assert!(txn.is_judging());
            assert_eq!(txn.end(), Ok(End::Verdict));
            let verdict = txn.handle_verdict(committed);
            if committed {
                assert_eq!(verdict, Verdict::Done);
            } else {
                assert_eq!(kind(verdict), TxnErrorKind::Aborted);
                assert_eq!(txn.start_commit().unwrap_err().kind, TxnErrorKind::Aborted);
                txn.start_abort().unwrap();
                // It has its new epoch already.
                assert_eq!(txn.end(), Ok(End::Nothing));
            }
            assert_eq!(txn.identity(), ProducerIdentity { id: 7, epoch: 4 });
            txn.begin(now).unwrap();
        }
    }
}

#[test]
fn under_version_1_only_the_next_epoch_leads_back() {
    let (mut txn, now) = committing(1);
    txn.handle_end(now, &end_answer(ErrorCode::PRODUCER_FENCED, -1));
    asked(&mut txn);
    // As the coordinator does not know the epoch before a fence any more.
    assert_eq!(txn.handle_init(&init_answer(ErrorCode::PRODUCER_FENCED)), Verdict::Done);
    assert_eq!(txn.end(), Ok(End::Verdict));
    assert_eq!(txn.handle_verdict(false), Verdict::Undecided);
    assert_eq!(asked(&mut txn), (7, 4));
    assert_eq!(txn.handle_init(&given(5)), Verdict::Done);
    assert!(txn.is_judging());
    let error = txn.end().unwrap_err();
    assert_eq!(error.kind, TxnErrorKind::Aborted);
    assert!(error.text.contains("PRODUCER_FENCED") && error.text.contains("it was aborted"), "{error}");
    txn.start_abort().unwrap();
    assert_eq!(txn.end(), Ok(End::Nothing));
    assert_eq!(txn.identity().epoch, 5);
    txn.begin(now).unwrap();
}

#[test]
fn r055_another_producer_ends_this_one_after_the_verdict() {
    for (version, committed) in [(1, true), (1, false), (2, true), (2, false)] {
        let (mut txn, now) = committing(version);
        txn.handle_end(now, &end_answer(ErrorCode::PRODUCER_FENCED, -1));
        asked(&mut txn);
        assert_eq!(txn.handle_init(&init_answer(ErrorCode::PRODUCER_FENCED)), Verdict::Done);
        assert_eq!(txn.end(), Ok(End::Verdict));
        let verdict = txn.handle_verdict(committed);
        match (version, committed) {
            (_, true) => assert_eq!(verdict, Verdict::Done, "the commit holds all the same"),
            (2, false) => assert_eq!(kind(verdict), TxnErrorKind::Fenced),
            _ => {
                assert_eq!(verdict, Verdict::Undecided);
                assert_eq!(asked(&mut txn), (7, 4));
                let refused = txn.handle_init(&init_answer(ErrorCode::PRODUCER_FENCED));
                assert_eq!(kind(refused), TxnErrorKind::Fenced);
            }
        }
        assert_eq!(txn.begin(now).unwrap_err().kind, TxnErrorKind::Fenced);
    }
}

#[test]
fn without_an_intent_a_commit_is_refused_for_good() {
    for (version, code) in REFUSALS {
        let (mut txn, now) = fenced(version);
        txn.start_commit().unwrap();
        txn.end().unwrap();
        assert_eq!(kind(txn.handle_end(now, &end_answer(code, -1))), TxnErrorKind::Aborted, "{version} {code}");
        txn.start_abort().unwrap();
        assert_eq!(asked(&mut txn), (7, 3));
        assert_eq!(txn.handle_init(&given(4)), Verdict::Done);
        txn.begin(now).unwrap();
        // In doubt it stays what it was without a ledger.
        let (mut txn, now) = fenced(version);
        txn.start_commit().unwrap();
        txn.end().unwrap();
        txn.end().unwrap();
        assert_eq!(kind(txn.handle_end(now, &end_answer(ErrorCode::PRODUCER_FENCED, -1))), TxnErrorKind::Fenced);
    }
}

#[test]
fn a_fence_at_a_produce_is_survived() {
    for version in [1, 2] {
        let (mut txn, now) = fenced(version);
        let code = Some(ErrorCode::PRODUCER_FENCED);
        txn.fail(TxnError { code, ..TxnError::new(TxnErrorKind::Fenced, "producing") }, true);
        assert_eq!(txn.check().unwrap_err().kind, TxnErrorKind::Abortable);
        txn.start_abort().unwrap();
        assert!(matches!(txn.end(), Ok(End::EndTxn(EndTxnRequest { committed: false, .. }))));
        // Version 2 takes the abort of a fenced producer for a repeated one; if it was fenced twice it does not.
        assert_eq!(txn.handle_end(now, &end_answer(ErrorCode::PRODUCER_FENCED, -1)), Verdict::Done);
        assert!(txn.needs_new_epoch());
        assert_eq!(asked(&mut txn), (7, 3));
        if version == 1 {
            let refused = txn.handle_init(&init_answer(ErrorCode::PRODUCER_FENCED));
            assert_eq!(refused, Verdict::Retry(ErrorCode::PRODUCER_FENCED));
            assert_eq!(asked(&mut txn), (7, 4));
        }
        assert_eq!(txn.handle_init(&given(5)), Verdict::Done);
        txn.begin(now).unwrap();
        join(&mut txn);
    }
}

#[test]
fn r055_who_was_idle_does_not_throw_out_who_took_over() {
    let (mut txn, now) = fenced(1);
    txn.start_commit().unwrap();
    txn.end().unwrap();
    assert_eq!(txn.handle_end(now, &end_answer(ErrorCode::NONE, -1)), Verdict::Done);
    txn.begin(now).unwrap();
    assert!(!txn.admit(&TOPIC, 0));
    txn.add_request().unwrap();
    let verdict = txn.handle_added(&added(&[("out", 0, ErrorCode::PRODUCER_FENCED)]));
    assert_eq!(kind(verdict), TxnErrorKind::Abortable);
    txn.start_abort().unwrap();
    txn.end().unwrap();
    assert_eq!(txn.handle_end(now, &end_answer(ErrorCode::PRODUCER_FENCED, -1)), Verdict::Done);
    assert_eq!(asked(&mut txn), (7, 3));
    // Nothing was open: the next epoch may be that of the new producer.
    assert_eq!(kind(txn.handle_init(&init_answer(ErrorCode::PRODUCER_FENCED))), TxnErrorKind::Fenced);
    assert_eq!(txn.begin(now).unwrap_err().kind, TxnErrorKind::Fenced);
}

#[test]
fn without_a_ledger_a_fence_is_the_end() {
    let now = Instant::now();
    let mut txn = open(1, now);
    join(&mut txn);
    let code = Some(ErrorCode::PRODUCER_FENCED);
    txn.fail(TxnError { code, ..TxnError::new(TxnErrorKind::Fenced, "producing") }, true);
    assert_eq!(txn.start_abort().unwrap_err().kind, TxnErrorKind::Fenced);
}
