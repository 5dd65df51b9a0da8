//! Acknowledgements in a transaction of their own, for applications whose output is elsewhere (KIP-1289, section 3.2).

use super::TransactionalProducer;
use super::builder::TransactionalProducerBuilder;
use crate::acknowledgements::{ShareAcknowledgements, ShareGroupMetadata, TransactionEnd};
use crate::{ErrorKind, Result};
use std::time::Duration;

/// Commits share acknowledgements atomically, over any number of share-partitions, without a producer in the pipeline.
///
/// An application that writes elsewhere collects acknowledgements, and commits them once its own output is safe. Either
/// all of them take effect or none, and none is lost track of: an outcome that is not known is asked for again with
/// [`complete_commit`](Self::complete_commit). Exactly-once with the other system needs the two phases of
/// [`TransactionSession`](super::TransactionSession); this alone gives at-least-once without half-acknowledged batches.
///
/// ```no_run
/// # async fn example(consumer: kafka_share::KafkaShareConsumer) -> kafka_share::Result<()> {
/// use kafka_share::TransactionalShareAcknowledger;
/// use std::time::Duration;
///
/// let acknowledger = TransactionalShareAcknowledger::from_properties([
///     ("bootstrap.servers", "127.0.0.1:9092"),
///     ("transactional.id", "warehouse-loader-0"),
/// ])?;
/// acknowledger.init_transactions().await?;
/// let records = consumer.poll(Duration::from_secs(1)).await?;
/// // .. write them to the warehouse, acknowledge each with consumer.acknowledge_with(..) ..
/// let acks = consumer.acknowledgements_for_transaction()?;
/// acknowledger.commit_acknowledgements(acks, &consumer.share_group_metadata()?).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct TransactionalShareAcknowledger {
    producer: TransactionalProducer,
}

impl TransactionalShareAcknowledger {
    /// From the settings of a transactional producer; see [`TransactionalProducer::builder`].
    ///
    /// # Errors
    /// As [`TransactionalProducerBuilder::build`].
    pub fn new(settings: TransactionalProducerBuilder) -> Result<Self> {
        Ok(TransactionalShareAcknowledger { producer: settings.build()? })
    }

    /// From Kafka's property names.
    ///
    /// # Errors
    /// As [`TransactionalProducer::from_properties`].
    pub fn from_properties<K: AsRef<str>, V: AsRef<str>>(properties: impl IntoIterator<Item = (K, V)>) -> Result<Self> {
        Ok(TransactionalShareAcknowledger { producer: TransactionalProducer::from_properties(properties)? })
    }

    /// Registers the transactional id; see [`TransactionalProducer::init_transactions`].
    ///
    /// # Cancel safety
    /// May be called again.
    ///
    /// # Errors
    /// As there.
    pub async fn init_transactions(&self) -> Result<()> {
        self.producer.init_transactions().await
    }

    /// Begins a transaction, puts the acknowledgements into it, and commits. Nothing to acknowledge is no error.
    ///
    /// # Cancel safety
    /// A call that is dropped may have committed if it had got that far; [`complete_commit`](Self::complete_commit) finds
    /// out. Otherwise the next call aborts what it left, and its records are delivered again.
    ///
    /// # Errors
    /// Where it fails before the commit, the transaction was aborted and the records are delivered again.
    /// [`Unsupported`](ErrorKind::Unsupported) where the cluster has no transactional acknowledgements: they are with
    /// their consumer again. [`OutcomeUnknown`](ErrorKind::OutcomeUnknown): call `complete_commit`. Fatal: a fenced one.
    pub async fn commit_acknowledgements(
        &self,
        acks: ShareAcknowledgements,
        member: &ShareGroupMetadata,
    ) -> Result<()> {
        if acks.is_empty() {
            return Ok(());
        }
        self.producer.transaction_once(async |txn| txn.stage(acks, member, TransactionEnd::GivenBack).await).await
    }

    /// Repeats a commit whose outcome is not known.
    ///
    /// # Cancel safety
    /// May be called again.
    ///
    /// # Errors
    /// As [`TransactionalProducer::commit_transaction`].
    pub async fn complete_commit(&self) -> Result<()> {
        self.producer.commit_transaction().await
    }

    /// Aborts what a call that was dropped left open; its records are available again. No error where nothing is open.
    ///
    /// # Cancel safety
    /// May be called again.
    ///
    /// # Errors
    /// [`OutcomeUnknown`](ErrorKind::OutcomeUnknown), where the commit may have happened: only `complete_commit` helps.
    /// Timeouts are retriable.
    pub async fn abort_acknowledgements(&self) -> Result<()> {
        if !self.producer.is_unfinished()? {
            return Ok(());
        }
        match self.producer.abort_transaction().await {
            // Another task ended it meanwhile.
            Err(error) if error.kind() == ErrorKind::InvalidState && !self.producer.is_unfinished()? => Ok(()),
            result => result,
        }
    }

    /// Aborts an open transaction, and ends. Takes at most `timeout` (and `max.block.ms`).
    ///
    /// # Cancel safety
    /// It ends all the same; an open transaction is left to the coordinator's timeout.
    ///
    /// # Errors
    /// As [`TransactionalProducer::close`].
    pub async fn close(&self, timeout: Duration) -> Result<()> {
        self.producer.close(timeout).await
    }
}
