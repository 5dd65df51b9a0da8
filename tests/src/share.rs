//! What tests of share consumers do over and over: receive a number of records, and say which they were.

use kafka_share::{KafkaShareConsumer, ShareRecords};
use std::time::{Duration, Instant};

/// More than anything takes that a test waits for.
const LONG: Duration = Duration::from_secs(60);
/// One turn of waiting.
const SHORT: Duration = Duration::from_millis(200);

/// Polls until `count` records have come.
///
/// # Panics
/// Where a poll fails, or they do not come within a minute.
pub async fn receive(consumer: &KafkaShareConsumer, count: usize) -> Vec<ShareRecords> {
    let until = Instant::now() + LONG;
    let mut all = Vec::new();
    while total(&all) < count {
        assert!(Instant::now() < until, "{count} records expected, had {:?}", numbers(&all));
        all.push(consumer.poll(SHORT).await.expect("poll"));
    }
    all.retain(|records| !records.is_empty());
    all
}

/// How many records there are.
#[must_use]
pub fn total(all: &[ShareRecords]) -> usize {
    all.iter().map(ShareRecords::len).sum()
}

/// The number that each record has for its value, and its delivery count.
///
/// # Panics
/// Where a value is no number.
#[must_use]
pub fn numbers(records: &[ShareRecords]) -> Vec<(u32, i16)> {
    let number = |value: Option<&[u8]>| value.and_then(|v| std::str::from_utf8(v).ok()?.parse().ok());
    let pair = |r: kafka_share::ShareRecord<'_>| (number(r.value()).expect("a number"), r.delivery_count());
    records.iter().flatten().map(pair).collect()
}
