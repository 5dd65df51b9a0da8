//! Connections cut with records buffered, and with acknowledgements pending.

use crate::lab::{LONG, Lab, SHORT, numbers, outcomes, receive, subscribed, until};
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
    assert_eq!(numbers(&first), (0..10).map(|n| (n, 1)).collect::<Vec<_>>());
    let fetched = consumer.metrics().get("records-per-request-max").unwrap();
    assert!(fetched > 10.0, "nothing is buffered: {fetched} records fetched");
    let started = Instant::now();
    assert!(proxy.cut(ApiKey::SHARE_FETCH) > 0);
    let held = first.iter().flatten().next().unwrap();
    until("the client notices", || consumer.lock_deadline(held.id()).is_none()).await;
    consumer.acknowledge(&held).expect_err("its lock is lost");
    // What is stale would come with delivery count 1, and once more afterwards.
    let mut again = Vec::new();
    while again.len() < 100 {
        let records = receive(&consumer, 1).await;
        if again.is_empty() {
            lab.show("first record after a cut with records buffered", format_args!("{:?}", started.elapsed()));
        }
        records.iter().for_each(|r| assert!(consumer.acknowledge_all(r, AckType::Accept).unwrap() > 0));
        again.extend(numbers(&records));
    }
    again.sort_unstable();
    assert_eq!(again, (0..100).map(|n| (n, 2)).collect::<Vec<_>>(), "each once, and fetched anew");
    consumer.commit_sync(LONG).await.unwrap();
    assert_eq!(outcomes(&consumer, &[Outcome::Acknowledged]), 100);
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
    let again = receive(&consumer, 10).await;
    lab.show("records again after a cut with acks pending", format_args!("{:?}", started.elapsed()));
    assert_eq!(numbers(&again), (0..10).map(|n| (n, 2)).collect::<Vec<_>>());
    again.iter().for_each(|r| assert!(consumer.acknowledge_all(r, AckType::Accept).unwrap() > 0));
    consumer.commit_sync(LONG).await.unwrap();
    assert_eq!(outcomes(&consumer, &[Outcome::Acknowledged]), 10);
    consumer.close(LONG).await.unwrap();
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
        let mut got = Vec::new();
        while !got.contains(&(10, 1)) {
            assert!(started.elapsed() < LONG, "{cut:?}: it does not recover: {got:?}");
            got.extend(numbers(&[consumer.poll(SHORT).await.unwrap()]));
        }
        let lost = (0..10).map(|n| (n, 2)).filter(|_| cut == Cut::Before);
        let mut expected: Vec<_> = lost.chain([(10, 1)]).collect();
        got.sort_unstable();
        expected.sort_unstable();
        assert_eq!(got, expected, "{cut:?}");
        lab.show("next record after a cut with acks on their way", format_args!("{:?} ({cut:?})", started.elapsed()));
        consumer.close(LONG).await.unwrap();
    }
}
