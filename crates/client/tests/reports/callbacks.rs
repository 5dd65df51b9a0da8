//! The acknowledgement commit callback, and code of the application that panics.

use crate::log::Log;
use crate::support::{LONG, Mode, Rig, SHORT, offsets};
use crate::wide::{builder, until};
use kafka_share::{AckOutcome, AckType, Deserialize, ErrorKind, KafkaShareConsumer, Outcome};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::task::{Context, Poll, Waker};

/// A call, and the kind of the error it gave.
type Answer = (&'static str, Option<ErrorKind>);

/// What a future answers at once.
fn now<F: Future>(future: F) -> Option<F::Output> {
    match std::pin::pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    }
}

fn collect(into: &Arc<Mutex<Vec<i64>>>) -> impl Fn(&[AckOutcome]) + Send + Sync + 'static {
    let into = Arc::clone(into);
    move |outcomes| into.lock().unwrap().extend(outcomes.iter().flat_map(|o| o.first_offset..=o.last_offset))
}

async fn accept(consumer: &KafkaShareConsumer, rig: &Rig, offset: i64) {
    rig.produce(offset..offset + 1).await;
    let records = rig.receive(consumer, 1).await;
    consumer.acknowledge_all(&records[0], AckType::Accept).unwrap();
    consumer.commit_sync(LONG).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r037_what_waits_for_the_consumer_is_refused_in_its_callback() {
    let rig = Rig::new(1).await;
    rig.produce(0..2).await;
    let held: Arc<OnceLock<Arc<KafkaShareConsumer>>> = Arc::default();
    let answers: Arc<Mutex<Vec<Answer>>> = Arc::default();
    let callback = {
        let (held, answers) = (Arc::clone(&held), Arc::clone(&answers));
        move |_: &[AckOutcome]| {
            let Some(consumer) = held.get() else { return };
            let kind = |result: Option<Option<kafka_share::Error>>| result.flatten().map(|e| e.kind());
            answers.lock().unwrap().extend([
                ("poll", kind(now(consumer.poll(LONG)).map(|r| r.err()))),
                ("recv", kind(now(consumer.recv()).map(|r| r.err()))),
                ("commit_sync", kind(now(consumer.commit_sync(LONG)).map(|r| r.err()))),
                ("close", kind(now(consumer.close(LONG)).map(|r| r.err()))),
                ("commit_async", consumer.commit_async().err().map(|e| e.kind())),
            ]);
            consumer.wakeup();
        }
    };
    let consumer = Arc::new(builder(&rig).acknowledgement_commit_callback(callback).build().unwrap());
    assert!(held.set(Arc::clone(&consumer)).is_ok());
    consumer.subscribe([rig.topic()]).unwrap();
    let records = rig.receive(&consumer, 2).await;
    // Told by the consumer's task once, and once by whoever asks.
    for record in records.iter().flatten() {
        consumer.acknowledge(&record).unwrap();
        consumer.commit_sync(LONG).await.unwrap();
        let refused = Some(ErrorKind::InvalidState);
        let expected = [
            ("poll", refused),
            ("recv", refused),
            ("commit_sync", refused),
            ("close", refused),
            ("commit_async", None),
        ];
        assert_eq!(std::mem::take(&mut *answers.lock().unwrap()), expected);
        assert_eq!(consumer.poll(LONG).await.unwrap_err().kind(), ErrorKind::Wakeup, "wakeup is allowed");
    }
    consumer.clear_acknowledgement_commit_callback();
    // Elsewhere all of it goes on.
    rig.produce(2..3).await;
    assert_eq!(offsets(&rig.receive(&consumer, 1).await), [(2, 1)]);
    consumer.close(LONG).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_callback_is_set_changed_and_taken_away_while_the_consumer_runs() {
    let rig = Rig::new(1).await;
    let consumer = rig.consumer(Mode::Explicit);
    let [first, second]: [Arc<Mutex<Vec<i64>>>; 2] = Default::default();
    accept(&consumer, &rig, 0).await;
    consumer.set_acknowledgement_commit_callback(collect(&first));
    accept(&consumer, &rig, 1).await;
    assert_eq!(*first.lock().unwrap(), [1]);
    consumer.set_acknowledgement_commit_callback(collect(&second));
    accept(&consumer, &rig, 2).await;
    consumer.clear_acknowledgement_commit_callback();
    accept(&consumer, &rig, 3).await;
    consumer.set_acknowledgement_commit_callback(collect(&first));
    accept(&consumer, &rig, 4).await;
    assert_eq!((first.lock().unwrap().clone(), second.lock().unwrap().clone()), (vec![1, 4], vec![2]));
    let all = consumer.poll_outcomes();
    assert_eq!(all.iter().map(|o| o.first_offset).collect::<Vec<_>>(), [0, 1, 2, 3, 4], "the queue has all of them");
    consumer.close(LONG).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r158_panics_of_the_application_leave_the_consumer_as_it_was() {
    let rig = Rig::new(1).await;
    rig.produce(0..6).await;
    let calls = Arc::new(AtomicUsize::new(0));
    let callback = {
        let calls = Arc::clone(&calls);
        move |_: &[AckOutcome]| {
            // On the consumer's own task, in the call of the application, and every other time.
            assert!(calls.fetch_add(1, Ordering::SeqCst) % 2 == 1, "on purpose");
        }
    };
    let consumer = Arc::new(builder(&rig).acknowledgement_commit_callback(callback).build().unwrap());
    consumer.subscribe([rig.topic()]).unwrap();
    let records = rig.receive(&consumer, 6).await;
    // A deserialiser that panics at the third record, once.
    let seen = AtomicUsize::new(0);
    let key = Deserialize::new(|_| Ok(()));
    let value = Deserialize::new(|value: Option<&[u8]>| {
        assert!(seen.fetch_add(1, Ordering::SeqCst) != 2, "on purpose");
        Ok(value.map(<[u8]>::len))
    });
    let mut read = Vec::new();
    for _ in 0..2 {
        let _ = catch_unwind(AssertUnwindSafe(|| {
            for typed in records.iter().flat_map(|r| r.deserialize(&key, &value)) {
                if consumer.acknowledge(&typed.record).is_ok() {
                    read.push(typed.record.offset());
                }
            }
        }));
    }
    assert_eq!(read, [0, 1, 2, 3, 4, 5], "each is acknowledged once");
    for _ in 0..3 {
        assert!(consumer.commit_sync(LONG).await.is_ok());
    }
    // A panic in a task that holds the consumer.
    let panicking = tokio::spawn({
        let consumer = Arc::clone(&consumer);
        async move {
            let _ = consumer.poll(SHORT).await;
            panic!("on purpose");
        }
    });
    assert!(panicking.await.unwrap_err().is_panic());
    for offset in 6..9 {
        accept(&consumer, &rig, offset).await;
    }
    until("the callback", || calls.load(Ordering::SeqCst) >= 4).await;
    let outcomes = consumer.poll_outcomes();
    let mut told: Vec<i64> = outcomes.iter().flat_map(|o| o.first_offset..=o.last_offset).collect();
    told.sort_unstable();
    assert_eq!(told, (0..9).collect::<Vec<_>>());
    assert!(outcomes.iter().all(|o| o.outcome == Outcome::Acknowledged));
    consumer.close(LONG).await.unwrap();
}

#[tokio::test]
async fn outcomes_that_nobody_reads_are_dropped_aloud_and_counted() {
    const RECORDS: i64 = 66_000;
    const KEPT: i64 = 65_536;
    let log = Log::start();
    let rig = Rig::new(1).await;
    rig.produce_at_once(RECORDS).await;
    let consumer = rig.consumer_with(Mode::Explicit, 5_000);
    let mut seen = 0;
    while seen < RECORDS {
        let records = consumer.poll(LONG).await.unwrap();
        // No two neighbours alike: each has an outcome of its own.
        for record in &records {
            let ack = if record.offset() % 2 == 0 { AckType::Accept } else { AckType::Reject };
            consumer.acknowledge_with(&record, ack).unwrap();
        }
        seen += records.len() as i64;
        consumer.commit_sync(LONG).await.unwrap();
    }
    let dropped = consumer.metrics().get("acknowledgement-outcomes-dropped-total");
    assert_eq!(dropped, Some((RECORDS - KEPT) as f64));
    let warnings = log.events("outcomes of acknowledgements are not read");
    assert_eq!(warnings.iter().map(|w| w.level).collect::<Vec<_>>(), [Some(tracing::Level::WARN)]);
    let kept = consumer.poll_outcomes();
    assert_eq!(kept.iter().map(|o| o.first_offset).collect::<Vec<_>>(), (RECORDS - KEPT..RECORDS).collect::<Vec<_>>());
    consumer.close(LONG).await.unwrap();
}
