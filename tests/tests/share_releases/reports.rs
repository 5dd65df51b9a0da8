//! Field reports that can be provoked on a real Kafka too, on every release.

use crate::lab::{EXPLICIT, IMPLICIT, LONG, Lab, SHORT, numbers, receive, total};
use kafka_share::admin::NewTopic;
use kafka_share::{AckType, Outcome};
use std::time::{Duration, Instant};

pub(crate) async fn r014_partitions_added_later_are_consumed(lab: &Lab) {
    let place = lab.place(1).await;
    lab.produce(&place, 0..1).await;
    let consumer = lab.member(&place, IMPLICIT);
    assert_eq!(numbers(&receive(&consumer, 1).await), [(0, 1)]);
    lab.admin.create_partitions(&place.topic, 3).await.unwrap();
    for partition in 1..3 {
        lab.produce_to(&place, partition, partition as u32..partition as u32 + 1).await;
    }
    let mut seen = numbers(&receive(&consumer, 2).await);
    seen.sort_unstable();
    assert_eq!(seen, [(1, 1), (2, 1)]);
    consumer.close(LONG).await.unwrap();
}

/// The tail that an implicit member got and did not come back for is delivered again; with a commit it is not.
pub(crate) async fn r022_r023_closing_accepts_nothing_and_a_commit_does(lab: &Lab) {
    let place = lab.place(1).await;
    lab.produce(&place, 0..10).await;
    let first = lab.member(&place, IMPLICIT);
    assert_eq!(total(&receive(&first, 10).await), 10);
    first.close(LONG).await.unwrap();
    let second = lab.member(&place, IMPLICIT);
    let seen: Vec<u32> = numbers(&receive(&second, 10).await).iter().map(|(number, _)| *number).collect();
    assert_eq!(seen, (0..10).collect::<Vec<_>>());
    second.commit_sync(LONG).await.unwrap();
    second.close(LONG).await.unwrap();
    lab.produce(&place, 10..11).await;
    let third = lab.member(&place, IMPLICIT);
    assert_eq!(numbers(&receive(&third, 1).await), [(10, 1)]);
    third.close(LONG).await.unwrap();
}

/// Brokers acquire whole batches, beyond `max.poll.records`: the surplus is kept and comes with the next polls.
pub(crate) async fn r028_a_backlog_of_large_batches_comes_once_and_without_a_wait_for_locks(lab: &Lab) {
    const RECORDS: u32 = 16_384;
    let place = lab.place(1).await;
    lab.produce(&place, 0..RECORDS).await;
    let consumer = lab.member(&place, EXPLICIT);
    let started = Instant::now();
    let mut seen = Vec::new();
    while seen.len() < RECORDS as usize {
        assert!(started.elapsed() < LONG, "{} records came", seen.len());
        let records = consumer.poll(SHORT).await.unwrap();
        assert!(records.len() <= 500);
        consumer.acknowledge_all(&records, AckType::Accept).unwrap();
        seen.extend(numbers(std::slice::from_ref(&records)));
    }
    assert!(seen.iter().all(|(_, count)| *count == 1), "some were delivered again");
    seen.sort_unstable();
    assert_eq!(seen.iter().map(|(number, _)| *number).collect::<Vec<_>>(), (0..RECORDS).collect::<Vec<_>>());
    consumer.close(LONG).await.unwrap();
}

pub(crate) async fn r034_acknowledgements_in_any_order_have_one_outcome_each(lab: &Lab) {
    let place = lab.place(1).await;
    lab.produce(&place, 0..10).await;
    let consumer = lab.member(&place, EXPLICIT);
    let records = receive(&consumer, 10).await;
    for offset in [7, 3, 4, 5, 9] {
        consumer.acknowledge_offset(&place.topic, 0, offset, AckType::Accept).unwrap();
    }
    assert!(consumer.acknowledge_offset(&place.topic, 0, 3, AckType::Accept).is_err(), "it was acknowledged before");
    assert_eq!(consumer.commit_sync(LONG).await.unwrap()[&(place.topic.clone(), 0)], Outcome::Acknowledged);
    let mut told: Vec<(i64, Outcome)> = consumer
        .poll_outcomes()
        .iter()
        .flat_map(|o| (o.first_offset..=o.last_offset).map(|offset| (offset, o.outcome)))
        .collect();
    told.sort_unstable_by_key(|(offset, _)| *offset);
    assert_eq!(told, [3, 4, 5, 7, 9].map(|offset| (offset, Outcome::Acknowledged)));
    for records in &records {
        consumer.acknowledge_all(records, AckType::Release).unwrap();
    }
    consumer.commit_sync(LONG).await.unwrap();
    let again: Vec<u32> = numbers(&receive(&consumer, 5).await).iter().map(|(number, _)| *number).collect();
    assert_eq!(again, [0, 1, 2, 6, 8]);
    consumer.close(LONG).await.unwrap();
}

pub(crate) async fn r041_r107_a_topic_deleted_and_created_again_under_the_consumer(lab: &Lab) {
    let place = lab.place(1).await;
    lab.produce(&place, 0..5).await;
    let builder = lab.builder(&place).acknowledgement_mode(EXPLICIT).allow_auto_create_topics(false);
    let consumer = lab.subscribed(&place, builder);
    let records = receive(&consumer, 5).await;
    lab.admin.delete_topics(&[&place.topic]).await.unwrap();
    // The client may know already that the locks are gone.
    let taken =
        records.iter().map(|records| consumer.acknowledge_all(records, AckType::Accept).unwrap()).sum::<usize>();
    let started = Instant::now();
    let outcomes = consumer.commit_sync(LONG).await.unwrap();
    assert!(outcomes.values().all(|outcome| *outcome != Outcome::Acknowledged), "{outcomes:?}");
    let told = consumer.poll_outcomes();
    assert!(told.iter().all(|o| o.outcome != Outcome::Acknowledged), "{told:?}");
    let told: i64 = told.iter().map(|o| o.last_offset - o.first_offset + 1).sum();
    assert_eq!(told, taken as i64, "each that was taken has its outcome");
    assert!(started.elapsed() < Duration::from_secs(20), "retried to the end: {:?}", started.elapsed());
    // Deletion takes its time on a real broker.
    while lab.admin.create_topic(NewTopic::new(&place.topic, 1)).await.is_err() {
        assert!(started.elapsed() < LONG, "the topic cannot be created again");
        tokio::time::sleep(SHORT).await;
    }
    lab.produce(&place, 5..10).await;
    let seen: Vec<u32> = numbers(&receive(&consumer, 5).await).iter().map(|(number, _)| *number).collect();
    assert_eq!(seen, (5..10).collect::<Vec<_>>());
    consumer.close(LONG).await.unwrap();
}

/// Kafka refuses whole requests while a session has a topic that was deleted: what was said of another topic's records may
/// be refused with it, and then they come again at once, not when their locks end.
pub(crate) async fn r107_a_deleted_topic_does_not_hold_up_the_records_of_another(lab: &Lab) {
    let (gone, kept) = (lab.place(1).await, lab.place(1).await);
    lab.produce(&gone, 0..5).await;
    lab.produce(&kept, 5..10).await;
    let consumer = lab.builder(&gone).acknowledgement_mode(EXPLICIT).allow_auto_create_topics(false).build().unwrap();
    consumer.subscribe([&gone.topic, &kept.topic]).unwrap();
    let records = receive(&consumer, 10).await;
    lab.admin.delete_topics(&[&gone.topic]).await.unwrap();
    let started = Instant::now();
    let mut said = 0;
    for records in &records {
        said += consumer.acknowledge_all(records, AckType::Accept).unwrap();
    }
    let place = (kept.topic.clone(), 0);
    let mut committed = consumer.commit_sync(LONG).await.unwrap();
    let told: Vec<_> = consumer.poll_outcomes();
    let count = |o: &kafka_share::AckOutcome| (o.last_offset - o.first_offset + 1) as usize;
    assert_eq!(told.iter().map(count).sum::<usize>(), said, "each has its outcome: {told:?}");
    while committed.get(&place) != Some(&Outcome::Acknowledged) {
        assert!(started.elapsed() < Duration::from_secs(20), "they wait for their locks: {committed:?}");
        let records = consumer.poll(SHORT).await.unwrap();
        consumer.acknowledge_all(&records, AckType::Accept).unwrap();
        committed = consumer.commit_sync(LONG).await.unwrap();
    }
    lab.produce(&kept, 10..11).await;
    let next: Vec<u32> = numbers(&receive(&consumer, 1).await).iter().map(|(number, _)| *number).collect();
    assert_eq!(next, [10]);
    consumer.unsubscribe();
    consumer.close(LONG).await.unwrap();
}
