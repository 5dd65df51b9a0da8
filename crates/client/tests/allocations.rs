//! Memory taken per record by those who read and acknowledge them: none, however many records a poll brings.

mod support;

use allocation_counter::{AllocationInfo, measure};
use kafka_share::{AckType, ErrorCode, KafkaShareConsumer};
use kafka_share_broker::{Fault, FaultAction, Rewrite};
use kafka_share_messages::{ApiKey, ShareAcknowledgeResponse};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};
use support::{GROUP, LONG, Mode, Rig};

/// What a future that has not to wait answers.
fn now<F: Future>(future: F) -> F::Output {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("the records are there"),
    }
}

const RECORDS: i64 = 2_000;

/// A consumer that has handed out one poll, and holds nearly all other records of the topic: they are one batch.
async fn filled(rig: &Rig, mode: Mode, max_poll_records: usize) -> KafkaShareConsumer {
    rig.produce_at_once(RECORDS).await;
    let builder = KafkaShareConsumer::builder("", GROUP).cluster(Arc::clone(&rig.cluster));
    let consumer = builder.acknowledgement_mode(mode).max_poll_records(max_poll_records).build().unwrap();
    consumer.subscribe([rig.topic()]).unwrap();
    let first = consumer.poll(LONG).await.unwrap();
    assert_eq!(first.len(), max_poll_records);
    if mode == Mode::Explicit {
        consumer.acknowledge_all(&first, AckType::Accept).unwrap();
    }
    consumer
}

fn poll_and_acknowledge(consumer: &KafkaShareConsumer, records: usize) -> AllocationInfo {
    let mut bytes = 0;
    let info = measure(|| {
        let polled = now(consumer.poll(Duration::ZERO)).unwrap();
        assert_eq!(polled.len(), records);
        for record in &polled {
            bytes += record.value().map_or(0, <[u8]>::len);
            assert!(record.headers().next().is_none());
            consumer.acknowledge(&record).unwrap();
        }
    });
    assert!(bytes >= records, "each has a value");
    info
}

#[tokio::test]
async fn a_poll_takes_as_much_memory_for_five_hundred_records_as_for_one() {
    let mut taken = Vec::new();
    for records in [1, 500] {
        let rig = Rig::new(1).await;
        let consumer = filled(&rig, Mode::Explicit, records).await;
        let infos = [poll_and_acknowledge(&consumer, records), poll_and_acknowledge(&consumer, records)];
        println!("{records} records: {infos:?}");
        taken.push(infos.map(|info| info.count_total).into_iter().max().unwrap());
    }
    assert!(taken[1] <= taken[0] && taken[0] <= 16, "allocations per poll: {taken:?}");
}

#[tokio::test]
async fn a_record_that_waits_is_received_without_an_allocation() {
    for mode in [Mode::Explicit, Mode::Implicit] {
        let rig = Rig::new(1).await;
        let consumer = filled(&rig, mode, 500).await;
        let acknowledger = consumer.acknowledger();
        let mut stream = consumer.stream();
        // What is set up once: the list of records handed out, the state of a thread.
        for _ in 0..10 {
            now(consumer.recv()).unwrap();
        }
        let mut bytes = 0;
        let info = measure(|| {
            for _ in 0..400 {
                let received = now(consumer.recv()).unwrap();
                let next = Pin::new(&mut stream);
                let context = &mut Context::from_waker(Waker::noop());
                let Poll::Ready(Some(streamed)) = futures_core::Stream::poll_next(next, context) else {
                    panic!("the records are there");
                };
                for record in [received, streamed.unwrap()] {
                    bytes += record.value().map_or(0, <[u8]>::len);
                    if mode == Mode::Explicit {
                        acknowledger.acknowledge(record.id(), AckType::Accept).unwrap();
                    }
                }
            }
        });
        assert!(bytes >= 800);
        println!("{mode:?}: {info:?}");
        assert!(info.count_total <= 8, "{mode:?}: {} allocations for 800 records", info.count_total);
    }
}

/// A broker that refuses acknowledgements for now is asked again at its pace, however often the application commits.
#[test]
fn r040_commits_that_are_refused_for_now_leave_memory_flat() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (rig, consumer, refusals) = runtime.block_on(async {
        let rig = Rig::new(1).await;
        // Nothing ends by itself while commits go on.
        rig.configure("share.record.lock.duration.ms", "60000").await;
        rig.produce(0..3).await;
        let consumer = rig.consumer(Mode::Explicit);
        for records in rig.receive(&consumer, 3).await {
            consumer.acknowledge_all(&records, AckType::Accept).unwrap();
        }
        let rewrite = Rewrite::message(|_, answer: &mut ShareAcknowledgeResponse| {
            for partition in answer.responses.iter_mut().flat_map(|t| &mut t.partitions) {
                partition.error_code = ErrorCode::REQUEST_TIMED_OUT;
            }
        });
        let fault = Fault::new(FaultAction::Rewrite(rewrite)).key(ApiKey::SHARE_ACKNOWLEDGE).times(u32::MAX);
        let refusals = rig.broker.fault(fault);
        (rig, consumer, refusals)
    });
    let commit = |count: usize| {
        runtime.block_on(async {
            for _ in 0..count {
                consumer.commit_async().unwrap();
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        });
    };
    // What is set up once: buffers, queues.
    commit(500);
    let (before, since) = (rig.broker.fault_hits(refusals), Instant::now());
    let info = measure(|| commit(3_000));
    let asked = rig.broker.fault_hits(refusals) - before;
    println!("{asked} requests, {info:?}");
    let most = 60.0_f64.max(15.0 * since.elapsed().as_secs_f64());
    assert!(asked >= 1 && f64::from(asked) < most, "{asked} requests for 3,000 commits");
    assert!(info.bytes_current < 50_000, "{} bytes more after 3,000 commits", info.bytes_current);
    assert!(consumer.poll_outcomes().is_empty(), "its time is not over");
}
