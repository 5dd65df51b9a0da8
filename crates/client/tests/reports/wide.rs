//! Topics of several partitions, answers that are looked at or changed, and waiting.

use crate::support::{GROUP, LONG, Rig};
use kafka_share::admin::NewTopic;
use kafka_share::{Admin, KafkaShareConsumer, ProducerRecord, ShareConsumerBuilder};
use kafka_share_broker::{Fault, FaultAction, FaultId, Rewrite};
use kafka_share_messages::{ApiKey, Message};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

pub(crate) const WIDE: &str = "wide";

/// A topic with a partition for each node of three (or all on one), and a record in each.
pub(crate) async fn wide_topic(rig: &Rig, partitions: i32) {
    let admin = Admin::on(Arc::clone(&rig.cluster));
    admin.create_topic(NewTopic::new(WIDE, partitions)).await.unwrap();
    for partition in 0..partitions {
        produce_to(rig, WIDE, partition, 0..1).await;
    }
}

pub(crate) async fn produce_to(rig: &Rig, topic: &str, partition: i32, offsets: Range<i64>) {
    for offset in offsets {
        let record = ProducerRecord::new(topic).partition(partition).value(offset.to_string());
        drop(rig.producer().send(record).await.unwrap());
    }
    rig.producer().flush().await.unwrap();
}

pub(crate) fn builder(rig: &Rig) -> ShareConsumerBuilder {
    let builder = KafkaShareConsumer::builder("", GROUP).cluster(Arc::clone(&rig.cluster));
    // Topics come and go by the tests' own hand.
    builder.acknowledgement_mode(crate::support::Mode::Explicit).allow_auto_create_topics(false)
}

/// Has every answer of a kind go through `change`.
pub(crate) fn each_answer<M: Message>(
    rig: &Rig,
    key: ApiKey,
    change: impl Fn(&mut M) + Send + Sync + 'static,
) -> FaultId {
    let rewrite = Rewrite::message(move |_, answer| change(answer));
    rig.broker.fault(Fault::new(FaultAction::Rewrite(rewrite)).key(key).times(u32::MAX))
}

/// Has the first answer of a kind for which `change` says so go out as it was changed; it is not asked again then.
pub(crate) fn one_answer<M: Message>(
    rig: &Rig,
    key: ApiKey,
    change: impl Fn(&mut M) -> bool + Send + Sync + 'static,
) -> FaultId {
    let done = AtomicBool::new(false);
    each_answer(rig, key, move |answer: &mut M| {
        if !done.load(Ordering::SeqCst) && change(answer) {
            done.store(true, Ordering::SeqCst);
        }
    })
}

/// Counts requests of a kind: a fault that does nothing.
pub(crate) fn count(rig: &Rig, key: ApiKey) -> FaultId {
    rig.broker.fault(Fault::new(FaultAction::Delay(Duration::ZERO)).key(key).times(u32::MAX))
}

pub(crate) async fn until(what: &str, mut check: impl FnMut() -> bool) {
    let end = Instant::now() + LONG;
    while !check() {
        assert!(Instant::now() < end, "{what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
