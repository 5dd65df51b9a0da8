//! The members: each lives for some seconds, acknowledges in its own way, and ends well or badly.

use super::book::Book;
use super::{GROUP, TOPIC};
use kafka_share::{AckOutcome, AckType, AcknowledgementMode, KafkaShareConsumer, Outcome};
use kafka_share_tests::dice::Dice;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Records with an acknowledgement under way: partition and offset, and the delivery count of each time that this member
/// accepted the record. Outcomes come in that order.
type UnderWay = BTreeMap<(i32, i64), VecDeque<u8>>;

/// One member after the other, until the run ends.
pub(crate) async fn run(bootstrap: String, seed: u64, number: u64, book: Arc<Book>, consuming: Arc<AtomicBool>) {
    let mut dice = Dice::new(seed, 100 + number);
    while consuming.load(Ordering::Relaxed) {
        let life = Duration::from_millis(500 + dice.below(8_000));
        live(&bootstrap, life, &mut dice, &book, &consuming).await;
    }
}

async fn live(bootstrap: &str, life: Duration, dice: &mut Dice, book: &Book, consuming: &AtomicBool) {
    let consumer = KafkaShareConsumer::builder(bootstrap, GROUP)
        .acknowledgement_mode(AcknowledgementMode::Explicit)
        .build()
        .expect("a consumer");
    consumer.subscribe([TOPIC]).expect("subscribed");
    let mut under_way = UnderWay::new();
    let end = Instant::now() + life;
    while Instant::now() < end && consuming.load(Ordering::Relaxed) {
        let records = consumer.poll(Duration::from_millis(100)).await.expect("a poll only meets what it can heal");
        if dice.one_in(400) {
            // Past the lock of a second, then going on as if nothing were.
            tokio::time::sleep(Duration::from_millis(1_300)).await;
        }
        for record in &records {
            let count = u8::try_from(record.delivery_count()).expect("a small number");
            book.delivered(record.partition(), record.offset(), count);
            let release = count == 1 && dice.one_in(200);
            let ack = if release { AckType::Release } else { AckType::Accept };
            if consumer.acknowledge_with(&record, ack).is_ok() && !release {
                under_way.entry((record.partition(), record.offset())).or_default().push_back(count);
            }
        }
        consumer.commit_async().expect("open");
        settle(consumer.poll_outcomes(), &mut under_way, book);
    }
    if dice.one_in(3) {
        // Gone without a word: its connections end, and what it had sent is not known.
        drop(consumer);
    } else {
        consumer.close(Duration::from_secs(30)).await.ok();
        settle(consumer.poll_outcomes(), &mut under_way, book);
    }
    for (partition, offset) in under_way.into_keys() {
        book.unknown(partition, offset);
    }
}

fn settle(outcomes: Vec<AckOutcome>, under_way: &mut UnderWay, book: &Book) {
    for outcome in outcomes {
        if outcome.ack_type != Some(AckType::Accept) {
            continue;
        }
        let partition = outcome.tp.partition;
        book.outcome(name(outcome.outcome), (outcome.last_offset - outcome.first_offset + 1) as u64);
        for offset in outcome.first_offset..=outcome.last_offset {
            let Some(counts) = under_way.get_mut(&(partition, offset)) else { continue };
            let count = counts.pop_front().expect("none is kept empty");
            if counts.is_empty() {
                under_way.remove(&(partition, offset));
            }
            match outcome.outcome {
                Outcome::Acknowledged => book.accepted(partition, offset, count),
                Outcome::Unknown => book.unknown(partition, offset),
                _ => {}
            }
        }
    }
}

fn name(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Acknowledged => "acknowledged",
        Outcome::Refused(_) => "refused",
        Outcome::LockLost => "lock lost",
        _ => "unknown",
    }
}
