//! Field reports that can be provoked on a real Kafka too, on every release.

use crate::lab::{AT_ONCE, EXPLICIT, IMPLICIT, LONG, Lab, SHORT, joined, numbers, receive, total};
use kafka_share::admin::{NewTopic, ShareGroupSettings};
use kafka_share::{AckType, ErrorKind, Outcome, ProducerRecord, TimestampType, TransactionalProducer};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

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
    let records = receive(&first, 10).await;
    assert_eq!(total(&records), 10);
    // What came with earlier polls was accepted by the later ones.
    let tail: Vec<u32> = numbers(&records[records.len() - 1..]).iter().map(|(number, _)| *number).collect();
    first.close(LONG).await.unwrap();
    let second = lab.member(&place, IMPLICIT);
    lab.came(&receive(&second, tail.len()).await, tail, lab.after_lost_sessions(1));
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
    let place = lab.place_with_long_locks().await;
    lab.produce(&place, 0..RECORDS).await;
    let consumer = lab.member(&place, EXPLICIT);
    let started = Instant::now();
    let mut seen = Vec::new();
    while seen.len() < RECORDS as usize {
        assert!(started.elapsed() < 3 * LONG, "{} records came", seen.len());
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
    lab.came(&receive(&consumer, 5).await, [0, 1, 2, 6, 8], 2);
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
    let outcomes = consumer.commit_sync(2 * LONG).await.unwrap();
    let told = consumer.poll_outcomes();
    // A leader that has not heard of the deletion yet takes them; whatever comes of them, it is one thing and told once.
    let committed = outcomes.get(&(place.topic.clone(), 0));
    assert!(told.iter().all(|o| committed.is_none_or(|committed| o.outcome == *committed)), "{outcomes:?}, {told:?}");
    let told: i64 = told.iter().map(|o| o.last_offset - o.first_offset + 1).sum();
    assert_eq!(told, taken as i64, "each that was taken has its outcome");
    assert!(started.elapsed() < LONG, "retried to the end: {:?}", started.elapsed());
    // Deletion takes its time on a real broker.
    while lab.admin.create_topic(NewTopic::new(&place.topic, 1)).await.is_err() {
        assert!(started.elapsed() < 2 * LONG, "the topic cannot be created again");
        tokio::time::sleep(SHORT).await;
    }
    lab.produce(&place, 5..10).await;
    lab.came(&receive(&consumer, 5).await, 5..10, 1);
    consumer.close(LONG).await.unwrap();
}

/// Kafka refuses whole requests while a session has a topic that was deleted: what was said of another topic's records may
/// be refused with it, and then they come again at once, not when their locks end.
pub(crate) async fn r107_a_deleted_topic_does_not_hold_up_the_records_of_another(lab: &Lab) {
    let (gone, kept) = (lab.place_with_long_locks().await, lab.place(1).await);
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
        assert!(started.elapsed() < AT_ONCE, "they wait for their locks: {committed:?}");
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

/// Nothing is asked for without an assignment, and no more than a broker's waits allow while nothing comes.
pub(crate) async fn r020_an_idle_member_asks_for_little_and_goes_on_with_its_assignment(lab: &Lab) {
    let mut place = lab.place(1).await;
    place.topic.push_str("-later");
    let builder = lab.builder(&place).acknowledgement_mode(IMPLICIT).allow_auto_create_topics(false);
    let consumer = lab.subscribed(&place, builder);
    let fetches = || consumer.metrics().get("fetch-total").unwrap();
    assert!(consumer.poll(Duration::from_secs(2)).await.unwrap().is_empty());
    assert!(fetches() < 0.5, "{} fetches for nothing", fetches());
    lab.admin.create_topic(NewTopic::new(&place.topic, 1)).await.unwrap();
    lab.produce(&place, 0..1).await;
    assert_eq!(numbers(&receive(&consumer, 1).await), [(0, 1)]);
    let (before, started) = (fetches(), Instant::now());
    assert!(consumer.poll(Duration::from_secs(3)).await.unwrap().is_empty());
    // A broker holds each for half a second.
    let most = started.elapsed().as_secs_f64() / 0.5 + 3.0;
    assert!(fetches() - before <= most, "{} fetches in {:?}", fetches() - before, started.elapsed());
    consumer.close(LONG).await.unwrap();
}

pub(crate) async fn r026_renew_and_accept_from_another_task_are_one_final_word(lab: &Lab) {
    let place = lab.place(1).await;
    lab.produce(&place, 0..1).await;
    let consumer = lab.member(&place, EXPLICIT);
    let records = receive(&consumer, 1).await;
    let (acknowledger, id) = (consumer.acknowledger(), records[0].iter().next().unwrap().id());
    let renews = lab.second_version();
    tokio::spawn(async move {
        let renewed = acknowledger.acknowledge(id, AckType::Renew);
        assert_eq!(renewed.map_err(|e| e.kind()).err(), (!renews).then_some(ErrorKind::Unsupported));
        acknowledger.acknowledge(id, AckType::Accept).unwrap();
        assert_eq!(acknowledger.acknowledge(id, AckType::Reject).unwrap_err().kind(), ErrorKind::InvalidState);
    })
    .await
    .unwrap();
    assert_eq!(consumer.commit_sync(LONG).await.unwrap()[&(place.topic.clone(), 0)], Outcome::Acknowledged);
    let told = consumer.poll_outcomes();
    assert!(told.iter().all(|o| o.outcome == Outcome::Acknowledged), "{told:?}");
    assert_eq!(told.iter().filter(|o| o.ack_type == Some(AckType::Accept)).count(), 1);
    assert!(consumer.acknowledger().acknowledge(id, AckType::Reject).is_err());
    lab.produce(&place, 1..2).await;
    assert_eq!(numbers(&receive(&consumer, 1).await), [(1, 1)]);
    consumer.close(LONG).await.unwrap();
}

pub(crate) async fn r032_offsets_of_an_aborted_transaction_do_not_stay_locked(lab: &Lab) {
    let place = lab.place_with(1, ShareGroupSettings::new().read_committed(true)).await;
    let producer = TransactionalProducer::builder("", &place.group).cluster(Arc::clone(&lab.cluster)).build().unwrap();
    producer.init_transactions().await.unwrap();
    producer.begin_transaction().unwrap();
    for value in ["a", "b"] {
        drop(producer.send(ProducerRecord::new(&place.topic).partition(0).value(value)).await.unwrap());
    }
    producer.flush().await.unwrap();
    producer.abort_transaction().await.unwrap();
    // Two records and the marker are all there is.
    let consumer = lab.member(&place, EXPLICIT);
    joined(&consumer).await;
    assert!(consumer.poll(Duration::from_secs(1)).await.unwrap().is_empty());
    // What brokers tell of a start offset is as old as the last write of the state: each record brings one more.
    let started = Instant::now();
    let (mut next, mut start) = (3, None);
    while start <= Some(3) {
        assert!(started.elapsed() < AT_ONCE, "the start offset is {start:?} at {next}");
        lab.produce(&place, next..next + 1).await;
        let records = receive(&consumer, 1).await;
        assert_eq!(numbers(&records), [(next, 1)]);
        consumer.acknowledge_all(&records[0], AckType::Accept).unwrap();
        consumer.commit_sync(LONG).await.unwrap();
        next += 1;
        let offsets = lab.admin.describe_share_group_offsets(&place.group).await.unwrap();
        start = offsets.iter().find(|o| o.topic == place.topic).and_then(|o| o.start_offset);
    }
    let told = consumer.poll_outcomes();
    assert!(told.iter().all(|o| o.outcome == Outcome::Acknowledged), "{told:?}");
    assert!(told.iter().any(|o| o.ack_type.is_none() && o.last_offset == 2), "the marker is a gap: {told:?}");
    consumer.close(LONG).await.unwrap();
    producer.close(LONG).await.unwrap();
}

pub(crate) async fn r121_times_are_the_brokers_where_it_sets_them(lab: &Lab) {
    let millis = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as i64;
    let mut place = lab.place(1).await;
    place.topic.push_str("-appended");
    let topic = NewTopic::new(&place.topic, 1).config("message.timestamp.type", "LogAppendTime");
    lab.admin.create_topic(topic).await.unwrap();
    // Its clock is not read at the same moment as ours.
    const APART: i64 = 1_000;
    let before = millis() - APART;
    lab.produce(&place, 0..10).await;
    let consumer = lab.member(&place, IMPLICIT);
    let records = receive(&consumer, 10).await;
    for record in records.iter().flatten() {
        assert_eq!(record.timestamp_type(), TimestampType::LogAppendTime);
        assert!((before..=millis() + APART).contains(&record.timestamp()), "{} at {before}", record.timestamp());
    }
    consumer.close(LONG).await.unwrap();
}

pub(crate) async fn r160_a_poll_that_is_dropped_loses_nothing_and_accepts_nothing(lab: &Lab) {
    let place = lab.place(1).await;
    let first = lab.member(&place, IMPLICIT);
    for round in 0..20 {
        lab.produce(&place, round..round + 1).await;
        let patience = Duration::from_millis(u64::from(round % 7));
        let (mut got, started) = (Vec::new(), Instant::now());
        while got.is_empty() {
            assert!(started.elapsed() < LONG, "record {round} does not come");
            if let Ok(records) = tokio::time::timeout(patience, first.poll(LONG)).await {
                got = numbers(&[records.unwrap()]);
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        assert_eq!(got, [(round, 1)]);
    }
    // The last one was not come back for.
    first.close(LONG).await.unwrap();
    let second = lab.member(&place, IMPLICIT);
    assert_eq!(numbers(&receive(&second, 1).await)[0].0, 19);
    second.close(LONG).await.unwrap();
}

pub(crate) async fn r161_a_wakeup_that_hits_nobody_ends_a_poll_and_no_commit(lab: &Lab) {
    let place = lab.place(1).await;
    lab.produce(&place, 0..2).await;
    let consumer = lab.member(&place, EXPLICIT);
    for records in receive(&consumer, 2).await {
        consumer.acknowledge_all(&records, AckType::Accept).unwrap();
    }
    consumer.wakeup();
    assert_eq!(consumer.commit_sync(LONG).await.unwrap()[&(place.topic.clone(), 0)], Outcome::Acknowledged);
    lab.produce(&place, 2..3).await;
    assert_eq!(consumer.poll(LONG).await.unwrap_err().kind(), ErrorKind::Wakeup);
    assert_eq!(numbers(&receive(&consumer, 1).await), [(2, 1)]);
    consumer.close(LONG).await.unwrap();
}

/// Inside of a runtime, while it polls, and outside.
pub(crate) async fn r169_consumers_that_are_dropped_free_their_records_at_once(lab: &Lab) {
    let place = lab.place_with_long_locks().await;
    lab.produce(&place, 0..2).await;
    for way in 0..3_i16 {
        let consumer = lab.member(&place, EXPLICIT);
        let started = Instant::now();
        lab.came(&receive(&consumer, 2).await, 0..2, lab.after_lost_sessions(way));
        assert!(started.elapsed() < AT_ONCE, "way {way}: they waited for their locks: {:?}", started.elapsed());
        match way {
            0 => drop(consumer),
            1 => {
                let polling = tokio::spawn(async move { consumer.poll(LONG).await.map(|records| records.len()) });
                tokio::time::sleep(Duration::from_millis(50)).await;
                polling.abort();
                assert!(polling.await.is_err());
            }
            _ => std::thread::spawn(move || drop(consumer)).join().unwrap(),
        }
    }
    let last = lab.member(&place, EXPLICIT);
    let started = Instant::now();
    assert_eq!(total(&receive(&last, 2).await), 2);
    assert!(started.elapsed() < AT_ONCE, "they waited for their locks: {:?}", started.elapsed());
    last.close(LONG).await.unwrap();
}
