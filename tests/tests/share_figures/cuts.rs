//! Connections cut with records buffered, and with acknowledgements pending.

use crate::lab::{Counts, LONG, Lab, accept_all, assert_came, assert_numbers, outcomes, receive, subscribed, until};
use kafka_share::{AckType, Outcome};
use kafka_share_messages::ApiKey;
use kafka_share_tests::proxy::{Cut, Proxy};
use std::sync::Arc;
use std::time::Instant;

/// Brokers acquire whole batches, so a poll of 10 leaves 90 waiting in the client.
pub(crate) async fn cut_with_records_buffered(lab: Arc<Lab>, proxy: Arc<Proxy>) {
    let place = lab.place(1).await;
    lab.produce(&place, 0, 0..100).await;
    let consumer = subscribed(&place, lab.builder(&place).max_poll_records(10));
    let first = receive(&consumer, 10).await;
    assert_came(&first, 0..10, 1, lab.counts);
    let fetched = consumer.metrics().get("records-per-request-max").unwrap();
    assert!(fetched > 10.0, "nothing is buffered: {fetched} records fetched");
    let started = Instant::now();
    assert!(proxy.cut(ApiKey::SHARE_FETCH) > 0);
    let held = first.iter().flatten().next().unwrap();
    until("the client notices", || consumer.lock_deadline(held.id()).is_none()).await;
    consumer.acknowledge(&held).expect_err("its lock is lost");
    // What is stale would come with delivery count 1, and its acknowledgement be refused.
    let again = accept_all(&lab, &consumer, 100).await;
    lab.show("all records after a cut with some buffered", format_args!("{:?}", started.elapsed()));
    anew(&lab, &again, 0..100);
    lab.show("stale records delivered after a cut, of 90 buffered", 0);
    consumer.close(LONG).await.unwrap();
}

pub(crate) async fn cut_with_acks_pending(lab: Arc<Lab>, proxy: Arc<Proxy>) {
    let place = lab.place(1).await;
    lab.produce(&place, 0, 0..10).await;
    let consumer = lab.member(&place);
    let records = receive(&consumer, 10).await;
    records.iter().for_each(|r| assert!(consumer.acknowledge_all(r, AckType::Accept).unwrap() > 0));
    let started = Instant::now();
    assert!(proxy.cut(ApiKey::SHARE_FETCH) > 0);
    consumer.commit_sync(LONG).await.unwrap();
    assert_eq!(outcomes(&consumer, &[Outcome::LockLost, Outcome::Unknown]), 10, "one outcome each");
    let again = accept_all(&lab, &consumer, 10).await;
    lab.show("records again after a cut with acks pending", format_args!("{:?}", started.elapsed()));
    anew(&lab, &again, 0..10);
    consumer.close(LONG).await.unwrap();
}

/// Each came for the second time. What real brokers count of ended sessions is theirs to know.
fn anew(lab: &Lab, came: &[(u32, i16)], numbers: std::ops::Range<u32>) {
    match lab.counts {
        Counts::Exact => assert_numbers(came, numbers, 2, lab.counts),
        Counts::AtMost => assert_numbers(came, numbers, i16::MAX, lab.counts),
    }
}

/// The request that carries them is lost, or its answer is.
pub(crate) async fn cut_with_acks_on_their_way(lab: Arc<Lab>, proxy: Arc<Proxy>) {
    for cut in [Cut::Before, Cut::After] {
        let place = lab.place(1).await;
        lab.produce(&place, 0, 0..10).await;
        let consumer = lab.member(&place);
        let records = receive(&consumer, 10).await;
        records.iter().for_each(|r| assert!(consumer.acknowledge_all(r, AckType::Accept).unwrap() > 0));
        proxy.cut_at_next(ApiKey::SHARE_ACKNOWLEDGE, cut);
        let outcome = consumer.commit_sync(LONG).await.unwrap()[&(place.topic.clone(), 0)];
        assert_eq!(outcome, Outcome::Unknown, "{cut:?}");
        assert_eq!(outcomes(&consumer, &[Outcome::Unknown]), 10, "{cut:?}: one outcome each");
        let started = Instant::now();
        lab.produce(&place, 0, 10..11).await;
        // Those that are lost may come before the new one or after it.
        let lost = if cut == Cut::Before { 10 } else { 0 };
        let (again, new): (Vec<_>, Vec<_>) =
            accept_all(&lab, &consumer, lost + 1).await.into_iter().partition(|(number, _)| *number < 10);
        lab.show("all records after a cut with acks on their way", format_args!("{:?} ({cut:?})", started.elapsed()));
        anew(&lab, &again, 10 - lost as u32..10);
        assert_numbers(&new, [10], 1, lab.counts);
        consumer.close(LONG).await.unwrap();
    }
}
