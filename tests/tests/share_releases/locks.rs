//! Acquisition locks: renewed, lost, and how many there are.

use crate::lab::{Counts, EXPLICIT, LONG, Lab, SHORT, assert_numbers, numbers, receive, total};
use kafka_share::admin::ShareGroupSettings;
use kafka_share::{AckType, AcquireMode, ErrorCode, ErrorKind, Outcome};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

fn short_locks(time: Duration) -> ShareGroupSettings {
    ShareGroupSettings::new().record_lock_duration(time)
}

pub(crate) async fn renewed_locks_hold(lab: &Lab) {
    const LOCK: Duration = Duration::from_secs(12);
    let place = lab.place_with(1, short_locks(LOCK)).await;
    lab.produce(&place, 0..1).await;
    let consumer = lab.member(&place, EXPLICIT);
    let records = receive(&consumer, 1).await;
    let record = records.iter().flatten().next().unwrap();
    if !lab.second_version() {
        let error = consumer.acknowledge_with(&record, AckType::Renew).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.to_string().contains("Kafka 4.2"), "{error}");
        // It spoils nothing.
        consumer.acknowledge(&record).unwrap();
        assert_eq!(consumer.commit_sync(LONG).await.unwrap()[&(place.topic.clone(), 0)], Outcome::Acknowledged);
        return consumer.close(LONG).await.unwrap();
    }
    let other = lab.member(&place, EXPLICIT);
    let started = Instant::now();
    while started.elapsed() < LOCK + LOCK / 4 {
        consumer.acknowledge_with(&record, AckType::Renew).unwrap();
        assert_eq!(consumer.commit_sync(LONG).await.unwrap()[&(place.topic.clone(), 0)], Outcome::Acknowledged);
        assert!(other.poll(SHORT).await.unwrap().is_empty(), "the record is locked");
    }
    consumer.acknowledge(&record).unwrap();
    assert_eq!(consumer.commit_sync(LONG).await.unwrap()[&(place.topic.clone(), 0)], Outcome::Acknowledged);
    lab.produce(&place, 1..2).await;
    let (mut next, until) = (Vec::new(), Instant::now() + LONG);
    while next.is_empty() && Instant::now() < until {
        next = numbers(&[other.poll(SHORT).await.unwrap(), consumer.poll(SHORT).await.unwrap()]);
    }
    assert_eq!(next, [(1, 1)], "the renewed record was accepted");
    consumer.close(LONG).await.unwrap();
    other.close(LONG).await.unwrap();
}

/// As in Java: who renews a record gets it again, with the count that it has.
pub(crate) async fn a_renewed_record_comes_again(lab: &Lab) {
    let place = lab.place(1).await;
    lab.produce(&place, 0..2).await;
    if !lab.second_version() {
        let renewing = lab.builder(&place).acknowledgement_mode(EXPLICIT).lock_renewal(LONG);
        let consumer = lab.subscribed(&place, renewing);
        let error = consumer.poll(LONG).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.to_string().contains("lock_renewal") && error.to_string().contains("Kafka 4.2"), "{error}");
        return;
    }
    let consumer = lab.member(&place, EXPLICIT);
    receive(&consumer, 2).await;
    assert!(consumer.acquisition_lock_timeout().unwrap() >= Duration::from_secs(1));
    consumer.acknowledge_offset(&place.topic, 0, 1, AckType::Renew).unwrap();
    consumer.acknowledge_offset(&place.topic, 0, 0, AckType::Accept).unwrap();
    consumer.commit_sync(LONG).await.unwrap();
    let again = receive(&consumer, 1).await;
    assert_eq!(numbers(&again), [(1, 1)], "renewed, not delivered anew");
    assert_eq!(consumer.acknowledge_all(&again[0], AckType::Accept).unwrap(), 1);
    assert_eq!(consumer.commit_sync(LONG).await.unwrap()[&(place.topic.clone(), 0)], Outcome::Acknowledged);
    consumer.close(LONG).await.unwrap();
}

pub(crate) async fn lost_locks_have_outcomes(lab: &Lab) {
    let place = lab.place_with(1, short_locks(Duration::from_secs(5))).await;
    lab.produce(&place, 0..5).await;
    let late = lab.member(&place, EXPLICIT);
    let records = receive(&late, 5).await;
    let other = lab.member(&place, EXPLICIT);
    // Those that came first may come once more, if the others are so late.
    let (mut again, until) = (BTreeSet::new(), Instant::now() + LONG);
    while again.len() < 5 {
        assert!(Instant::now() < until, "{again:?}");
        for (number, count) in numbers(&[other.poll(SHORT).await.unwrap()]) {
            assert!(count > 1 || lab.counts == Counts::AtMost, "{number} for the first time again");
            again.insert(number);
        }
    }
    // Either it is known already that they are lost, or the broker says so.
    let taken = records.iter().flatten().filter(|r| match late.acknowledge(r) {
        Ok(()) => true,
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::Fenced, "{error}");
            false
        }
    });
    let taken = taken.count() as i64;
    late.commit_sync(LONG).await.unwrap();
    let mut told = 0;
    for outcome in late.poll_outcomes() {
        let lost = [Outcome::LockLost, Outcome::Refused(ErrorCode::INVALID_RECORD_STATE)];
        assert!(lost.contains(&outcome.outcome), "{outcome:?}");
        told += outcome.last_offset - outcome.first_offset + 1;
    }
    assert_eq!(told, taken, "one outcome for each acknowledgement that was taken");
    late.close(LONG).await.unwrap();
    other.close(LONG).await.unwrap();
}

pub(crate) async fn record_limit_locks_no_more_than_asked_for(lab: &Lab) {
    let place = lab.place(1).await;
    lab.produce(&place, 0..100).await;
    let builder = lab.builder(&place).acknowledgement_mode(EXPLICIT);
    let strict = lab.subscribed(&place, builder.acquire_mode(AcquireMode::RecordLimit).max_poll_records(10));
    if !lab.second_version() {
        let started = Instant::now();
        let error = loop {
            match strict.poll(SHORT).await {
                Ok(records) => assert!(records.is_empty() && started.elapsed() < LONG),
                Err(error) => break error,
            }
        };
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.to_string().contains("record_limit") && error.to_string().contains("Kafka 4.2"), "{error}");
        return;
    }
    let held = receive(&strict, 10).await;
    assert!(held.iter().all(|records| records.len() <= 10));
    // All others are free, although they are of the same batch.
    let other = lab.member(&place, EXPLICIT);
    let rest = receive(&other, 100 - total(&held)).await;
    let all = [numbers(&held), numbers(&rest)].concat();
    assert_numbers(&all, 0..100, 1, lab.counts);
    strict.close(LONG).await.unwrap();
    other.close(LONG).await.unwrap();
}
