//! A real broker whose disk is full: a write ends in the middle, and the broker with it. Nothing of the open transaction takes
//! effect, and all is done once there is room.

use super::stage::*;
use kafka_share::{Error, ErrorKind, KafkaShareConsumer, TransactionalProducer};
use kafka_share_tests::kafka::RealKafka;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const RECORDS: usize = 600;
/// In a transaction, so that there are many.
const FEW: usize = 10;
const LOCK: Duration = Duration::from_secs(30);
/// A call on a broker that is gone.
const PATIENCE: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_millis(20);

pub(crate) async fn all_is_done_once_there_is_room(kafka: &mut RealKafka) {
    let stage = Arc::new(Stage::with_lock(&kafka.bootstrap(), RECORDS, LOCK).await);
    let done = Arc::new(AtomicUsize::new(0));
    let work = tokio::spawn(pipeline(Arc::clone(&stage), Arc::clone(&done)));
    until("a part is done", || done.load(Ordering::Acquire) > RECORDS / 4).await;

    // From now on no file grows much beyond the ledger's largest: that of the ledger, the output or the coordinator is next.
    let files = (0..2).flat_map(|partition| kafka.log_files(&stage.ledger, partition));
    let largest = files.map(|file| file.metadata().unwrap().len()).max().unwrap();
    kafka.limit_file_size(largest + 20).unwrap();
    until("a broker that cannot write ends", || !kafka.is_running().unwrap()).await;
    assert!(kafka.log().contains("File too large"), "{}", kafka.log());
    assert!(done.load(Ordering::Acquire) < RECORDS, "it was full before the end");
    kafka.restart().unwrap();

    let (consumer, failures) = work.await.unwrap();
    assert!(failures > 0, "a transaction was under way");
    stage.until_done(&consumer, &stage.group).await;
    stage.check_output(RECORDS).await;
}

async fn until(what: &str, is_so: impl Fn() -> bool) {
    let limit = Instant::now() + LONG;
    while !is_so() {
        assert!(Instant::now() < limit, "not in time: {what}");
        tokio::time::sleep(LOOK).await;
    }
}

/// Works until all is done; gives the number of transactions that failed.
async fn pipeline(stage: Arc<Stage>, done: Arc<AtomicUsize>) -> (KafkaShareConsumer, usize) {
    let consumer = stage.consumer_with(&stage.group, |builder| builder.max_poll_records(FEW));
    let producer = stage.settings().max_block(PATIENCE).build().unwrap();
    producer.init_transactions().await.unwrap();
    let (mut failures, limit) = (0, Instant::now() + 3 * LONG);
    while done.load(Ordering::Acquire) < RECORDS {
        assert!(Instant::now() < limit, "{done:?} records are done, {failures} transactions failed");
        let records = match consumer.poll(LOOK).await {
            Ok(records) if records.is_empty() => continue,
            Ok(records) => records,
            Err(error) => {
                assert!(!error.is_fatal(), "{error:?}");
                continue;
            }
        };
        let result = stage.attempt(&producer, &consumer, &records).await;
        failures += usize::from(result.is_err());
        let committed = match result {
            Ok(()) => true,
            Err(error) => settled(&producer, error).await,
        };
        if committed {
            done.fetch_add(records.len(), Ordering::Release);
        }
    }
    (consumer, failures)
}

/// Ends a transaction that failed, once the broker is back: whether it is committed.
async fn settled(producer: &TransactionalProducer, mut error: Error) -> bool {
    let limit = Instant::now() + LONG;
    loop {
        assert!(!error.is_fatal() && Instant::now() < limit, "{error:?}");
        let may_be_committed = error.kind() == ErrorKind::OutcomeUnknown;
        let end =
            if may_be_committed { producer.commit_transaction().await } else { producer.abort_transaction().await };
        match end {
            Ok(()) => return may_be_committed,
            Err(next) => error = next,
        }
    }
}
