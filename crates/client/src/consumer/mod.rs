//! `KafkaShareConsumer`: records of a share group, one by one to any member, acknowledged record by record (KIP-932).

mod acknowledger;
mod builder;
mod deserialize;
mod driver;
mod ledger;
mod metrics;
mod outcomes;
mod owned;
mod records;
mod shared;
mod spans;
mod staged;
mod stream;
mod telling;

pub use crate::metrics::{Metric, MetricsSnapshot};
pub use acknowledger::Acknowledger;
pub use builder::{AcknowledgementMode, AcquireMode, ShareConsumerBuilder};
pub use deserialize::{
    BytesDeserializer, Deserialize, DeserializeContext, DeserializeError, Deserializer, StringDeserializer,
    TypedShareRecord,
};
pub use outcomes::{CommitOutcomes, OutcomeStream};
pub use owned::OwnedShareRecord;
pub use records::{PartitionRecords, RecordId, ShareRecord, ShareRecordIter, ShareRecords};
pub use stream::ShareRecordStream;

use crate::acknowledgements::{ShareAcknowledgements, ShareGroupMetadata};
use crate::{Error, ErrorKind, Result};
use kafka_share_core::ApiVersions;
use kafka_share_core::share_acks::{AckOutcome, AckType};
use kafka_share_messages::ApiKey;
use kafka_share_wire::Str;
use shared::Shared;
use std::sync::Arc;
use std::time::Duration;
use tracing::Instrument;

/// A member of a share group.
///
/// A task in the background keeps the membership, fetches while a [`poll`](Self::poll) waits, and sends
/// acknowledgements. It needs a tokio runtime, and ends with the consumer.
///
/// ```no_run
/// # async fn example() -> kafka_share::Result<()> {
/// use kafka_share::{AcknowledgementMode, KafkaShareConsumer};
/// use std::time::Duration;
///
/// let consumer = KafkaShareConsumer::builder("127.0.0.1:9092", "orders-group")
///     .acknowledgement_mode(AcknowledgementMode::Explicit)
///     .build()?;
/// consumer.subscribe(["orders"])?;
/// let records = consumer.poll(Duration::from_secs(1)).await?;
/// for record in &records {
///     println!("{} {:?}", record.offset(), record.value());
///     consumer.acknowledge(&record)?;
/// }
/// consumer.commit_sync(Duration::from_secs(10)).await?;
/// consumer.close(Duration::from_secs(10)).await
/// # }
/// ```
///
/// Dropping the consumer without [`close`](Self::close) leaves the group in the background, as far as the runtime
/// still runs; records that were not acknowledged are delivered again, at the latest when their lock ends.
#[derive(Debug)]
pub struct KafkaShareConsumer {
    shared: Arc<Shared>,
}

/// Whether brokers with these versions keep to a limit of records (`share.acquire.mode=record_limit`, KIP-1206, from Kafka 4.2
/// on).
#[must_use]
pub fn record_limit_offered(versions: &ApiVersions) -> bool {
    versions.range(ApiKey::SHARE_FETCH).is_some_and(|(_, max)| max >= 2)
}

impl KafkaShareConsumer {
    /// Settings of a consumer of `group_id` on the cluster at `bootstrap_servers`.
    pub fn builder(bootstrap_servers: &str, group_id: &str) -> ShareConsumerBuilder {
        ShareConsumerBuilder::new(bootstrap_servers, group_id)
    }

    /// Subscribes to topics, in place of those before; an empty list unsubscribes. A topic that does not exist yet is
    /// waited for, and the log says so once. One that is deleted and created again is consumed from its new start.
    ///
    /// # Errors
    /// Names that no topic can have (nothing changes then), or a closed consumer.
    pub fn subscribe<I>(&self, topics: I) -> Result<()>
    where
        I: IntoIterator,
        I::Item: AsRef<str>,
    {
        let topics: Vec<Str> = topics.into_iter().map(|t| Str::from(t.as_ref())).collect();
        if let Some(bad) = topics.iter().find(|t| !is_topic_name(t)) {
            let text = format!("{bad:?} is no topic name: 1 to 249 of the characters a-z A-Z 0-9 . _ - are");
            return Err(Error::new(ErrorKind::InvalidInput, text));
        }
        self.shared.check_open()?;
        self.shared.with(|m, now| m.subscribe(now, topics));
        self.shared.wake_driver();
        Ok(())
    }

    /// Ends the subscription: leaves the group and frees records that were fetched but not delivered, at once.
    pub fn unsubscribe(&self) {
        self.shared.with(|m, now| m.subscribe(now, Vec::new()));
        self.shared.wake_driver();
    }

    /// Topics subscribed to.
    #[must_use]
    pub fn subscription(&self) -> Vec<String> {
        self.shared.with(|m, _| m.subscription().iter().map(ToString::to_string).collect())
    }

    /// Waits for records, `max.poll.records` at most, and hands them out; empty when `timeout` passes first.
    ///
    /// In implicit mode, coming back here accepts all records that the poll before handed out.
    ///
    /// # Cancel safety
    /// Nothing is lost: records are taken out of the consumer at the moment they are returned. A ShareFetch that was
    /// written is answered, and its records come with the next poll (their locks run meanwhile); one that was not written
    /// yet still is, once. In implicit mode a poll that is dropped has accepted what the poll before handed out.
    ///
    /// # Errors
    /// What no retry heals: missing rights (brokers are asked again, about once a second, and each refusal is returned;
    /// records come as soon as the rights are there), unsupported brokers, a closed consumer; a [`wakeup`](Self::wakeup).
    /// What the group refuses for good (it is full, say) is returned by every poll until the next
    /// [`subscribe`](Self::subscribe), which joins anew.
    /// Calls that do not fit: beside another poll, and inside the acknowledgement commit callback (which keeps the consumer
    /// from working while it waits).
    pub async fn poll(&self, timeout: Duration) -> Result<ShareRecords> {
        let span = spans::poll(&self.shared);
        let records = self.shared.poll(timeout).instrument(span.clone()).await?;
        span.record(spans::MESSAGE_COUNT, records.len());
        Ok(records)
    }

    /// Ends a [`poll`](Self::poll) that waits now, or the next one, with an error of kind
    /// [`Wakeup`](ErrorKind::Wakeup). No other call is affected.
    pub fn wakeup(&self) {
        self.shared.wakeup();
    }

    /// Accepts a record.
    ///
    /// # Errors
    /// In implicit mode; a record that was acknowledged before, whose lock is lost, or that another consumer delivered.
    pub fn acknowledge(&self, record: &ShareRecord<'_>) -> Result<()> {
        self.acknowledge_with(record, AckType::Accept)
    }

    /// Acknowledges a record with a type.
    ///
    /// # Errors
    /// As [`acknowledge`](Self::acknowledge); RENEW on a broker that cannot renew (before Kafka 4.2).
    pub fn acknowledge_with(&self, record: &ShareRecord<'_>, ack: AckType) -> Result<()> {
        self.shared.acknowledge(record.id(), ack)
    }

    /// Renews the lock of a record without handing it out again: for work that takes long, on records that stay where they
    /// are. It goes out with the other acknowledgements, and has no outcome of its own; what is lost shows when the record
    /// is acknowledged. (RENEW as an acknowledgement has an outcome, and the record comes again from
    /// [`poll`](Self::poll), as in Java.)
    ///
    /// # Errors
    /// As [`acknowledge_with`](Self::acknowledge_with), but in implicit mode too.
    pub fn extend_lock(&self, record: RecordId) -> Result<()> {
        self.shared.extend_lock(record)
    }

    /// Renews the locks of all records of a poll that nothing was said of yet, as [`extend_lock`](Self::extend_lock) renews one;
    /// answers how many.
    ///
    /// # Errors
    /// Records of another consumer.
    pub fn extend_locks(&self, records: &ShareRecords) -> Result<usize> {
        self.shared.extend_locks(records)
    }

    /// When the lock of a delivered record ends, with its renewals; `None` where it is lost or acknowledged for good.
    #[must_use]
    pub fn lock_deadline(&self, record: RecordId) -> Option<std::time::Instant> {
        let handle = self.shared.own(record).ok()?;
        self.shared.with(|m, _| m.lock_deadline(handle))
    }

    /// Acknowledges a record by topic, partition and offset.
    ///
    /// # Errors
    /// As [`acknowledge_with`](Self::acknowledge_with), and offsets that this consumer does not hold.
    pub fn acknowledge_offset(&self, topic: &str, partition: i32, offset: i64, ack: AckType) -> Result<()> {
        self.shared.acknowledge_offset(topic, partition, offset, ack)
    }

    /// Acknowledges all records of a poll that nothing was said of yet; answers how many. Where a renewal by
    /// [`extend_lock`](Self::extend_lock) is on its way, the acknowledgement follows it.
    ///
    /// # Errors
    /// In implicit mode; records of another consumer.
    pub fn acknowledge_all(&self, records: &ShareRecords, ack: AckType) -> Result<usize> {
        self.shared.acknowledge_all(records, ack)
    }

    /// A handle for worker tasks to acknowledge records with.
    #[must_use]
    pub fn acknowledger(&self) -> Acknowledger {
        Acknowledger::new(Arc::clone(&self.shared))
    }

    /// Sends all acknowledgements given so far and waits for their outcome. In implicit mode that accepts what the
    /// last poll handed out. Acknowledgements given by other tasks during the call do not prolong it.
    ///
    /// # Cancel safety
    /// Once polled for the first time, the acknowledgements go out in a ShareAcknowledge of their own whether or not this
    /// is dropped, once each; their result goes to [`poll_outcomes`](Self::poll_outcomes) alone. Dropped before, they
    /// wait for the next fetch, commit or their age, as if this had not been called.
    ///
    /// # Errors
    /// Where `timeout` passes first (they are still sent, once each), and errors as of [`poll`](Self::poll).
    pub async fn commit_sync(&self, timeout: Duration) -> Result<CommitOutcomes> {
        self.shared.commit_sync(timeout).await
    }

    /// Sends all acknowledgements given so far without waiting; see [`poll_outcomes`](Self::poll_outcomes).
    ///
    /// # Errors
    /// A closed consumer.
    pub fn commit_async(&self) -> Result<()> {
        self.shared.commit_async()
    }

    /// Calls `callback` with the outcomes of acknowledgements from here on, in place of the callback before, if there was
    /// one; see [`ShareConsumerBuilder::acknowledgement_commit_callback`] for when it runs and what it may do.
    pub fn set_acknowledgement_commit_callback(&self, callback: impl Fn(&[AckOutcome]) + Send + Sync + 'static) {
        self.shared.set_callback(Some(Arc::new(callback)));
    }

    /// Ends the calls of the acknowledgement commit callback. One that runs at this moment comes to its end.
    pub fn clear_acknowledgement_commit_callback(&self) {
        self.shared.set_callback(None);
    }

    /// Counters and gauges under Java's names, at this moment; those of the ledger (`share-ack-ledger-*`) are listed in
    /// [its guide](crate::ledger).
    #[must_use]
    pub fn metrics(&self) -> MetricsSnapshot {
        self.shared.snapshot()
    }

    /// How its connections stand, for whoever looks for what is wrong; without secrets. What shares a
    /// [`Cluster`](crate::net::Cluster) shares its connections.
    #[must_use]
    pub fn connections(&self) -> Vec<crate::net::ConnectionInfo> {
        self.shared.cluster.connections()
    }

    /// Group, member and epoch, for acknowledgements in a transaction.
    ///
    /// # Errors
    /// Where the consumer is not a member at the moment.
    pub fn share_group_metadata(&self) -> Result<ShareGroupMetadata> {
        self.shared.group_metadata()
    }

    /// Length of the acquisition lock, as the broker last told it; `None` before the first fetch.
    #[must_use]
    pub fn acquisition_lock_timeout(&self) -> Option<Duration> {
        self.shared.with(|m, _| m.lock_timeout())
    }

    /// How many partitions the group has assigned to this member; others may have the same ones.
    #[must_use]
    pub fn assigned_partitions(&self) -> usize {
        self.shared.with(|m, _| m.assignment().len())
    }

    /// Takes the ACCEPT and REJECT acknowledgements that were given and not sent, for
    /// `send_share_acks_to_transaction`. They leave the ordinary path. Dropping them takes them back: the records are held
    /// as if nothing had been said of them.
    ///
    /// # Errors
    /// In implicit mode (use [`ShareAcknowledgements::from_records`] there); while a [`commit_sync`](Self::commit_sync)
    /// runs, because which of them it takes could not be told.
    pub fn acknowledgements_for_transaction(&self) -> Result<ShareAcknowledgements> {
        staged::take_pending(&self.shared)
    }

    /// Sends the last acknowledgements, closes every share session and leaves the group. Implicit mode accepts nothing
    /// that the application has not come back for.
    ///
    /// # Cancel safety
    /// Closing goes on in the background: the last ShareAcknowledge to each broker (epoch -1), then the heartbeat that
    /// leaves. Dropped before it was polled for the first time, nothing has happened.
    ///
    /// # Errors
    /// Where `timeout` passes before the brokers have answered; sessions then end by themselves.
    pub async fn close(&self, timeout: Duration) -> Result<()> {
        self.shared.close(timeout).await
    }

    pub(super) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    pub(crate) fn start(shared: Arc<Shared>) -> Result<Self> {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return Err(Error::new(ErrorKind::InvalidState, "a share consumer must be built inside a tokio runtime"));
        };
        runtime.spawn(driver::run(Arc::clone(&shared)));
        Ok(KafkaShareConsumer { shared })
    }
}

impl Drop for KafkaShareConsumer {
    fn drop(&mut self) {
        self.shared.abandon();
    }
}

fn is_topic_name(name: &str) -> bool {
    let legal = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
    (1..=249).contains(&name.len()) && name != "." && name != ".." && name.bytes().all(legal)
}
