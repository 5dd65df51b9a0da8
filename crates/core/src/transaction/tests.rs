//! The transaction machine by field report.

use super::*;
use kafka_share_messages::EndTxnResponse;
use kafka_share_messages::add_partitions_to_txn_response::{
    AddPartitionsToTxnPartitionResult, AddPartitionsToTxnTopicResult,
};

mod contended;

fn init_answer(code: ErrorCode) -> InitProducerIdResponse {
    InitProducerIdResponse { error_code: code, producer_id: 7, producer_epoch: 3, ..Default::default() }
}

fn end_answer(code: ErrorCode, epoch: i16) -> EndTxnResponse {
    EndTxnResponse { error_code: code, producer_id: 7, producer_epoch: epoch, ..Default::default() }
}

fn added(rows: &[(&'static str, i32, ErrorCode)]) -> AddPartitionsToTxnResponse {
    let row = |(name, p, code): &(&'static str, i32, ErrorCode)| AddPartitionsToTxnTopicResult {
        name: Str::from_static(name),
        results_by_partition: vec![AddPartitionsToTxnPartitionResult {
            partition_index: *p,
            partition_error_code: *code,
            ..Default::default()
        }],
        ..Default::default()
    };
    AddPartitionsToTxnResponse { results_by_topic_v3_and_below: rows.iter().map(row).collect(), ..Default::default() }
}

fn open(version: i16, now: Instant) -> Transaction {
    let mut txn = Transaction::new(Str::from_static("t"), 1000);
    txn.handle_feature(version);
    txn.start_init().unwrap();
    assert_eq!(txn.handle_init(&init_answer(ErrorCode::NONE)), Verdict::Done);
    txn.begin(now).unwrap();
    txn
}

const TOPIC: Str = Str::from_static("out");

fn join(txn: &mut Transaction) {
    if !txn.admit(&TOPIC, 0) {
        txn.add_request().unwrap();
        assert_eq!(txn.handle_added(&added(&[("out", 0, ErrorCode::NONE)])), Verdict::Done);
        assert!(txn.admit(&TOPIC, 0));
    }
}

fn kind(verdict: Verdict) -> TxnErrorKind {
    match verdict {
        Verdict::Failed(error) => error.kind,
        other => panic!("{other:?}"),
    }
}

//= TXN-CLIENT-01
#[test]
fn r050_concurrent_transactions_at_init_is_retried() {
    let mut txn = Transaction::new(Str::from_static("t"), 1000);
    txn.start_init().unwrap();
    for _ in 0..5 {
        let verdict = txn.handle_init(&init_answer(ErrorCode::CONCURRENT_TRANSACTIONS));
        assert_eq!(verdict, Verdict::Retry(ErrorCode::CONCURRENT_TRANSACTIONS));
    }
    assert_eq!(txn.handle_init(&init_answer(ErrorCode::NONE)), Verdict::Done);
    assert_eq!(txn.identity(), ProducerIdentity { id: 7, epoch: 3 });
}

//= TXN-CLIENT-03
#[test]
fn r053_a_failed_add_keeps_earlier_partitions_in_the_transaction() {
    let mut txn = open(1, Instant::now());
    join(&mut txn);
    assert!(!txn.admit(&TOPIC, 1));
    txn.add_request().unwrap();
    let verdict = txn.handle_added(&added(&[("out", 1, ErrorCode::TOPIC_AUTHORIZATION_FAILED)]));
    assert_eq!(kind(verdict), TxnErrorKind::Abortable);
    assert_eq!(txn.start_commit().unwrap_err().kind, TxnErrorKind::Abortable);
    txn.start_abort().unwrap();
    assert!(matches!(txn.end(), Ok(End::EndTxn(EndTxnRequest { committed: false, .. }))));
}

//= TXN-CLIENT-04
#[test]
fn r054_r055_after_a_commit_of_unknown_outcome_only_the_same_commit() {
    let now = Instant::now();
    let mut txn = open(2, now);
    join(&mut txn);
    txn.start_commit().unwrap();
    let first = txn.end().unwrap();
    assert_eq!(txn.handle_end_given_up("deadline").kind, TxnErrorKind::OutcomeUnknown);
    assert_eq!(txn.start_abort().unwrap_err().kind, TxnErrorKind::OutcomeUnknown);
    assert_eq!(txn.begin(now).unwrap_err().kind, TxnErrorKind::OutcomeUnknown);
    assert!(txn.check_open().is_err());
    txn.start_commit().unwrap();
    assert_eq!(txn.end().unwrap(), first);
    assert_eq!(txn.handle_end(now, &end_answer(ErrorCode::NONE, 4)), Verdict::Done);
    txn.begin(now).unwrap();
    assert_eq!(txn.identity().epoch, 4);
}

//= TXN-CLIENT-05
#[test]
fn r056_commit_after_the_coordinators_timeout_is_not_committed_and_not_fatal() {
    for code in [ErrorCode::INVALID_TXN_STATE, ErrorCode::PRODUCER_FENCED] {
        let now = Instant::now();
        let mut txn = open(2, now);
        join(&mut txn);
        txn.start_commit().unwrap();
        txn.end().unwrap();
        let late = now + Duration::from_millis(1001);
        assert_eq!(kind(txn.handle_end(late, &end_answer(code, -1))), TxnErrorKind::Aborted, "{code}");
        txn.start_abort().unwrap();
        assert!(matches!(
            txn.end(),
            Ok(End::NewEpoch(InitProducerIdRequest { producer_id: 7, producer_epoch: 3, .. }))
        ));
        assert_eq!(txn.handle_init(&init_answer(ErrorCode::NONE)), Verdict::Done);
        txn.begin(late).unwrap();
    }
}

//= TXN-CLIENT-06
#[test]
fn r058_an_empty_transaction_sends_nothing() {
    for version in [1, 2] {
        let mut txn = open(version, Instant::now());
        txn.start_commit().unwrap();
        assert_eq!(txn.end(), Ok(End::Nothing));
        txn.begin(Instant::now()).unwrap();
        txn.start_abort().unwrap();
        assert_eq!(txn.end(), Ok(End::Nothing));
    }
}

#[test]
fn acknowledgements_alone_need_an_end() {
    let mut txn = open(2, Instant::now());
    txn.handle_joined();
    txn.start_commit().unwrap();
    assert!(matches!(txn.end(), Ok(End::EndTxn(EndTxnRequest { committed: true, .. }))));
}

//= TXN-CLIENT-07
#[test]
fn r068_a_fenced_producer_stays_fenced() {
    let now = Instant::now();
    let mut txn = open(2, now);
    join(&mut txn);
    txn.start_commit().unwrap();
    txn.end().unwrap();
    assert_eq!(kind(txn.handle_end(now, &end_answer(ErrorCode::PRODUCER_FENCED, -1))), TxnErrorKind::Fenced);
    let fenced = txn.check().unwrap_err();
    assert_eq!(txn.start_init().unwrap_err(), fenced);
    assert_eq!(txn.begin(now).unwrap_err(), fenced);
    assert_eq!(txn.check_open().unwrap_err(), fenced);
    assert_eq!(txn.start_commit().unwrap_err(), fenced);
    assert_eq!(txn.start_abort().unwrap_err(), fenced);
    assert_eq!(txn.end().unwrap_err(), fenced);
    assert_eq!(txn.handle_init(&init_answer(ErrorCode::NONE)), Verdict::Failed(fenced));
}

#[test]
fn doubtful_sequences_need_a_new_epoch_after_the_abort_on_version_1_only() {
    for version in [1, 2] {
        let now = Instant::now();
        let mut txn = open(version, now);
        join(&mut txn);
        txn.fail(TxnError::new(TxnErrorKind::Abortable, "a batch was lost"), true);
        txn.start_abort().unwrap();
        assert!(matches!(txn.end(), Ok(End::EndTxn(_))));
        // EndTxn answers carry id and epoch from version 5 on only; before they are -1.
        let answer =
            EndTxnResponse { producer_id: if version == 2 { 7 } else { -1 }, ..end_answer(ErrorCode::NONE, 4) };
        assert_eq!(txn.handle_end(now, &answer), Verdict::Done);
        assert_eq!(txn.needs_new_epoch(), version == 1);
        if txn.needs_new_epoch() {
            assert!(matches!(txn.end(), Ok(End::NewEpoch(_))));
            assert_eq!(txn.handle_init(&init_answer(ErrorCode::NONE)), Verdict::Done);
        }
        txn.begin(now).unwrap();
    }
}

#[test]
fn calls_in_the_wrong_order_change_nothing() {
    let now = Instant::now();
    let mut txn = Transaction::new(Str::from_static("t"), 1000);
    assert!(txn.begin(now).is_err() && txn.start_commit().is_err() && txn.start_abort().is_err() && txn.end().is_err());
    txn.start_init().unwrap();
    txn.handle_init(&init_answer(ErrorCode::NONE));
    assert!(txn.start_init().is_err() && txn.start_commit().is_err() && txn.check_open().is_err());
    txn.begin(now).unwrap();
    assert_eq!(txn.begin(now).unwrap_err().kind, TxnErrorKind::WrongOrder);
    assert!(txn.is_open());
}

//= TXN-PREPARED-07
#[test]
fn a_prepared_transaction_takes_nothing_more_and_is_ended_by_whoever_has_the_paper() {
    for version in [1, 2] {
        let now = Instant::now();
        let mut txn = open(version, now);
        join(&mut txn);
        let prepared = txn.prepare("cluster".into(), 5).unwrap();
        assert_eq!(txn.prepare("cluster".into(), 5), Ok(prepared.clone()), "as often as one likes");
        assert!(txn.is_prepared() && txn.is_unfinished());
        assert_eq!(txn.check_open().unwrap_err().kind, TxnErrorKind::WrongOrder);
        assert_eq!(txn.begin(now).unwrap_err().kind, TxnErrorKind::WrongOrder);
        let mut other = Transaction::resumed(&prepared, 1000);
        assert_eq!((other.identity(), other.is_v2()), (txn.identity(), version == 2));
        other.start_commit().unwrap();
        let Ok(End::EndTxn(request)) = other.end() else { panic!("an end is due") };
        assert_eq!((request.producer_id, request.producer_epoch, request.committed), (7, 3, true));
        assert_eq!(other.handle_end(now, &end_answer(ErrorCode::NONE, 4)), Verdict::Done);
        // The sequence numbers of what the other process sent are not known: a new identity is needed.
        assert!(!other.is_unfinished());
        assert_eq!(other.begin(now).unwrap_err().kind, TxnErrorKind::WrongOrder);
        assert!(other.start_init().is_ok());
        // The first one may still end it too.
        txn.start_abort().unwrap();
        assert!(matches!(txn.end(), Ok(End::EndTxn(request)) if !request.committed));
    }
}

#[test]
fn an_empty_prepared_transaction_ends_without_a_word() {
    let mut txn = open(2, Instant::now());
    let prepared = txn.prepare(String::new(), -1).unwrap();
    assert!(!prepared.started);
    let mut other = Transaction::resumed(&prepared, 1000);
    other.start_commit().unwrap();
    assert_eq!(other.end(), Ok(End::Nothing));
}

//= TXN-PREPARED-08
#[test]
fn a_resumed_transaction_that_was_aborted_or_taken_over_is_not_taken_for_committed() {
    let now = Instant::now();
    for (code, expected) in [
        (ErrorCode::INVALID_TXN_STATE, TxnErrorKind::Aborted),
        (ErrorCode::PRODUCER_FENCED, TxnErrorKind::Fenced),
        (ErrorCode::INVALID_PRODUCER_ID_MAPPING, TxnErrorKind::Fenced),
    ] {
        let mut txn = open(2, now);
        join(&mut txn);
        let mut other = Transaction::resumed(&txn.prepare(String::new(), -1).unwrap(), 1000);
        other.start_commit().unwrap();
        other.end().unwrap();
        let verdict = other.handle_end(now, &end_answer(code, -1));
        assert_eq!(kind(verdict), expected, "{code}");
    }
    let mut failed = open(2, now);
    failed.fail(TxnError::new(TxnErrorKind::Abortable, "a record failed"), false);
    assert_eq!(failed.prepare(String::new(), -1).unwrap_err().kind, TxnErrorKind::Abortable);
}

//= TXN-CLIENT-10
/// After a commit without an answer, or by another process, it may be committed: no later answer may deny it.
#[test]
fn a_commit_that_may_have_happened_is_never_told_as_aborted() {
    let start = Instant::now();
    let late = start + Duration::from_secs(5);
    let codes = [
        ErrorCode::PRODUCER_FENCED,
        ErrorCode::INVALID_PRODUCER_EPOCH,
        ErrorCode::INVALID_PRODUCER_ID_MAPPING,
        ErrorCode::UNKNOWN_PRODUCER_ID,
    ];
    for code in codes {
        let mut lost = open(1, start);
        join(&mut lost);
        lost.start_commit().unwrap();
        lost.end().unwrap();
        // No answer; the same request again.
        lost.end().unwrap();
        let error = lost.handle_end(late, &end_answer(code, 3));
        assert!(matches!(&error, Verdict::Failed(e) if e.text.contains("not known")), "{error:?}");
        assert_eq!(kind(error), TxnErrorKind::Fenced, "{code}");

        let mut first = open(1, start);
        join(&mut first);
        let papers = first.prepare("c".into(), 77).unwrap();
        let mut resumed = Transaction::resumed(&papers, 1000);
        assert_eq!(resumed.prepare("c".into(), 99), Ok(papers), "its time is that of the papers");
        resumed.start_commit().unwrap();
        resumed.end().unwrap();
        assert_eq!(kind(resumed.handle_end(late, &end_answer(code, 3))), TxnErrorKind::Fenced, "{code}");

        // Answered each time, or never sent: nothing is in doubt, and the age tells.
        let mut sure = open(1, start);
        join(&mut sure);
        sure.start_commit().unwrap();
        sure.end().unwrap();
        let busy = sure.handle_end(start, &end_answer(ErrorCode::CONCURRENT_TRANSACTIONS, 3));
        assert_eq!(busy, Verdict::Retry(ErrorCode::CONCURRENT_TRANSACTIONS));
        sure.end().unwrap();
        sure.handle_end_unsent(true);
        sure.end().unwrap();
        assert!(kind(sure.handle_end(late, &end_answer(code, 3))) != TxnErrorKind::Fenced, "{code}");
    }
}

#[test]
fn a_coordinator_that_lost_its_place_may_have_committed() {
    let start = Instant::now();
    for code in [ErrorCode::NOT_COORDINATOR, ErrorCode::COORDINATOR_NOT_AVAILABLE] {
        let mut txn = open(1, start);
        join(&mut txn);
        txn.start_commit().unwrap();
        txn.end().unwrap();
        assert_eq!(txn.handle_end(start, &end_answer(code, 3)), Verdict::Retry(code));
        txn.end().unwrap();
        txn.handle_end_unsent(false);
        assert_eq!(txn.handle_end_given_up("late").kind, TxnErrorKind::OutcomeUnknown, "{code}");
        assert_eq!(txn.start_abort().unwrap_err().kind, TxnErrorKind::OutcomeUnknown, "{code}");
        txn.end().unwrap();
        let verdict = txn.handle_end(start + Duration::from_secs(5), &end_answer(ErrorCode::PRODUCER_FENCED, 3));
        assert_eq!(kind(verdict), TxnErrorKind::Fenced, "{code}");
    }
    // An abort is not in doubt: what it wants is what happens anyway.
    let mut txn = open(1, start);
    join(&mut txn);
    txn.start_abort().unwrap();
    txn.end().unwrap();
    txn.end().unwrap();
    let verdict = txn.handle_end(start, &end_answer(ErrorCode::PRODUCER_FENCED, 3));
    assert!(matches!(&verdict, Verdict::Failed(e) if !e.text.contains("not known")), "{verdict:?}");
}
