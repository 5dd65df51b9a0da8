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

/// How far a broker's delivery counts are known beforehand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counts {
    /// To the last one: the embedded broker forgets nothing.
    Exact,
    /// They may be lower. A real broker drops a share-partition when the last session that its group has there ends, and
    /// reads back what was persisted until then: that records were acquired is not, and that they were released may be
    /// under way still. It does so when its leader moves, too.
    AtMost,
}

/// Asserts that these records came, each once, in whatever order and however cut, and for the `deliveries`th time.
///
/// # Panics
/// Where it is otherwise.
#[track_caller]
pub fn assert_came(got: &[ShareRecords], expected: impl IntoIterator<Item = u32>, deliveries: i16, counts: Counts) {
    assert_numbers(&numbers(got), expected, deliveries, counts);
}

/// As [`assert_came`], of what [`numbers`] gave.
///
/// # Panics
/// Where it is otherwise.
#[track_caller]
pub fn assert_numbers(got: &[(u32, i16)], expected: impl IntoIterator<Item = u32>, deliveries: i16, counts: Counts) {
    let (mut came, mut expected): (Vec<u32>, Vec<u32>) =
        (got.iter().map(|(n, _)| *n).collect(), expected.into_iter().collect());
    came.sort_unstable();
    expected.sort_unstable();
    assert_eq!(came, expected, "{got:?}");
    let least = if counts == Counts::Exact { deliveries } else { 1 };
    assert!(
        got.iter().all(|(_, count)| (least..=deliveries).contains(count)),
        "{least} to {deliveries} deliveries: {got:?}"
    );
}
