//! Transactional ids: what their coordinators know of them.

use super::{Admin, check};
use crate::net::Purpose;
use crate::{Error, ErrorKind, Result};
use kafka_share_messages::ListTransactionsRequest;
use kafka_share_wire::Str;
use std::collections::BTreeMap;
use std::time::Duration;

/// A transactional id and its state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TransactionListing {
    /// The transactional id.
    pub transactional_id: String,
    /// Id of the producer that used it last.
    pub producer_id: i64,
    /// `Empty`, `Ongoing`, `PrepareCommit`, `PrepareAbort`, `CompleteCommit`, `CompleteAbort`, `Dead` or
    /// `PrepareEpochFence`.
    pub state: String,
    /// Broker that coordinates it.
    pub coordinator: i32,
}

/// Which transactional ids [`Admin::list_transactions`] lists. The default is all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TransactionFilter {
    states: Vec<String>,
    producer_ids: Vec<i64>,
    prefix: String,
    running: Duration,
}

impl TransactionFilter {
    /// Those with a transaction that was begun and not ended: what a dead process may have left.
    #[must_use]
    pub fn ongoing() -> Self {
        Self::default().state("Ongoing")
    }

    /// Also those in this state, written as in [`TransactionListing::state`].
    #[must_use]
    pub fn state(mut self, name: &str) -> Self {
        self.states.push(name.to_owned());
        self
    }

    /// Also those of this producer id.
    #[must_use]
    pub fn producer_id(mut self, id: i64) -> Self {
        self.producer_ids.push(id);
        self
    }

    /// Only ids that begin with this. Works on every broker, as the answers are filtered here.
    #[must_use]
    pub fn id_prefix(mut self, prefix: &str) -> Self {
        prefix.clone_into(&mut self.prefix);
        self
    }

    /// Only what was begun longer ago than this (Kafka 3.8). Ids that never began a transaction count as very old: use it
    /// with [`ongoing`](Self::ongoing).
    #[must_use]
    pub fn running_longer_than(mut self, time: Duration) -> Self {
        self.running = time;
        self
    }

    fn to_wire(&self) -> ListTransactionsRequest {
        let running = i64::try_from(self.running.as_millis()).unwrap_or(i64::MAX);
        ListTransactionsRequest {
            state_filters: self.states.iter().map(Str::from).collect(),
            producer_id_filters: self.producer_ids.clone(),
            duration_filter: if running > 0 { running } else { -1 },
            ..ListTransactionsRequest::default()
        }
    }
}

impl Admin {
    /// Transactional ids of all coordinators (KIP-664), in their order. What is `Ongoing` and has no process any more is
    /// settled by [`TransactionSession::recover`](crate::TransactionSession::recover), which ends a live process's transaction
    /// just the same: the example is for when all of them are down.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let broker = kafka_share_broker::EmbeddedBroker::builder().start().await?;
    /// use kafka_share::admin::TransactionFilter;
    /// use kafka_share::{Admin, ClientConfig, TransactionSession, TransactionalProducer};
    ///
    /// let servers = broker.bootstrap_servers();
    /// let admin = Admin::new(ClientConfig::new(&servers))?;
    /// for left in admin.list_transactions(&TransactionFilter::ongoing().id_prefix("payments-")).await? {
    ///     let settings = TransactionalProducer::builder(&servers, &left.transactional_id);
    ///     if let Some(session) = TransactionSession::recover(settings).await? {
    ///         session.abort().await?;
    ///     }
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// # Cancel safety
    /// Only asks (Metadata, ListTransactions to each broker): nothing is half done.
    ///
    /// # Errors
    /// Where a broker does not answer, or refuses; a state that it does not know. Ids without the right to DESCRIBE them are
    /// left out.
    pub async fn list_transactions(&self, filter: &TransactionFilter) -> Result<Vec<TransactionListing>> {
        let deadline = self.deadline();
        let request = filter.to_wire();
        retrying!(self, deadline, async {
            self.cluster().refresh_topics(&[], deadline).await?;
            let mut found = BTreeMap::new();
            for node in self.cluster().node_ids() {
                let limit = self.cluster().request_deadline(deadline);
                let response = self.cluster().call_node(node, Purpose::Coordination, &request, limit).await?;
                check(response.error_code, format_args!("listing transactions of broker {node}"), None)?;
                if let Some(unknown) = response.unknown_state_filters.first() {
                    let text = format!("listing transactions: broker {node} knows no state {unknown:?}");
                    return Err(Error::new(ErrorKind::InvalidInput, text));
                }
                for state in response.transaction_states {
                    let transactional_id = state.transactional_id.to_string();
                    if !transactional_id.starts_with(&filter.prefix) {
                        continue;
                    }
                    let listing = TransactionListing {
                        producer_id: state.producer_id,
                        state: state.transaction_state.to_string(),
                        coordinator: node,
                        transactional_id: transactional_id.clone(),
                    };
                    found.insert(transactional_id, listing);
                }
            }
            Ok(found.into_values().collect())
        })
    }
}
