//! The members: each acknowledges record by record, commits in its own way, and now and then keeps records too long.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kafka_share::{AckOutcome, AckType, AcknowledgementMode, ErrorKind, KafkaShareConsumer, Outcome};

use super::book::{Book, DeliveryId, End};
use super::{GROUP, LOCK, TOPIC};
use crate::dice::Dice;

/// More than a node is down.
const LONG: Duration = Duration::from_secs(60);

/// Acknowledgements without an outcome, oldest first, by partition and offset.
type UnderWay = HashMap<(i32, i64), VecDeque<DeliveryId>>;

pub(super) async fn run(bootstrap: String, seed: u64, number: usize, book: Arc<Book>, going: Arc<AtomicBool>) {
    let consumer = KafkaShareConsumer::builder(&bootstrap, GROUP)
        .acknowledgement_mode(AcknowledgementMode::Explicit)
        .build()
        .expect("a consumer");
    consumer.subscribe([TOPIC]).expect("subscribed");
    let mut member =
        Member { number, consumer, dice: Dice::new(seed, 100 + number as u64), under_way: UnderWay::new(), book };
    while going.load(Ordering::Relaxed) {
        member.turn().await;
    }
    if let Err(error) = member.consumer.close(LONG).await {
        member.book.violation(format!("member {number} does not close: {error}"));
    }
    member.settle();
    let open: usize = member.under_way.values().map(VecDeque::len).sum();
    if open > 0 {
        member.book.violation(format!("member {number}: {open} acknowledgements never had an outcome"));
    }
}

struct Member {
    number: usize,
    consumer: KafkaShareConsumer,
    dice: Dice,
    under_way: UnderWay,
    book: Arc<Book>,
}

impl Member {
    async fn turn(&mut self) {
        let records = match self.consumer.poll(Duration::from_millis(100)).await {
            Ok(records) => records,
            Err(error) => return self.book.violation(format!("member {}: poll: {error}", self.number)),
        };
        if !records.is_empty() && self.dice.one_in(300) {
            // Past the lock, then going on as if nothing were.
            tokio::time::sleep(LOCK + Duration::from_millis(500)).await;
        }
        for record in &records {
            self.take(&record);
        }
        let committed = match self.number % 3 {
            0 => self.consumer.commit_async(),
            1 => self.consumer.commit_sync(LONG).await.map(drop),
            // They go along with the next fetch.
            _ => Ok(()),
        };
        if let Err(error) = committed {
            self.book.violation(format!("member {}: commit: {error}", self.number));
        }
        self.settle();
    }

    fn take(&mut self, record: &kafka_share::ShareRecord<'_>) {
        let number = record.value().and_then(|value| value.first_chunk()).map_or(u64::MAX, |n| u64::from_be_bytes(*n));
        let Some(delivery) = self.book.delivered(self.number, record, number) else { return };
        let release = record.delivery_count() == 1 && self.dice.one_in(500);
        let ack = if release { AckType::Release } else { AckType::Accept };
        match self.consumer.acknowledge_with(record, ack) {
            Ok(()) => {
                self.under_way.entry((record.partition(), record.offset())).or_default().push_back(delivery);
            }
            Err(error) if error.kind() == ErrorKind::Fenced => self.book.ended(delivery, End::NotAcknowledged),
            Err(error) => self.book.violation(format!("member {}: acknowledge: {error}", self.number)),
        }
    }

    fn settle(&mut self) {
        for outcome in self.consumer.poll_outcomes() {
            self.settle_one(&outcome);
        }
    }

    fn settle_one(&mut self, outcome: &AckOutcome) {
        let end = match (outcome.outcome, outcome.ack_type) {
            (Outcome::Acknowledged, Some(AckType::Accept)) => End::Accepted,
            (Outcome::Acknowledged, Some(AckType::Release)) => End::Released,
            (Outcome::Refused(code), _) => End::Refused(code),
            (Outcome::LockLost, _) => End::LockLost,
            (Outcome::Unknown, Some(AckType::Accept)) => End::Unknown,
            (Outcome::Unknown, Some(AckType::Release)) => End::MaybeReleased,
            _ => return self.book.violation(format!("member {}: an outcome of nothing: {outcome:?}", self.number)),
        };
        if end == End::Accepted {
            self.book.note_progress();
        }
        for offset in outcome.first_offset..=outcome.last_offset {
            let place = (outcome.tp.partition, offset);
            let Some(delivery) = self.under_way.get_mut(&place).and_then(VecDeque::pop_front) else {
                self.book.violation(format!("member {}: one outcome too many for {place:?}: {outcome:?}", self.number));
                continue;
            };
            if self.under_way[&place].is_empty() {
                self.under_way.remove(&place);
            }
            self.book.ended(delivery, end);
        }
    }
}
