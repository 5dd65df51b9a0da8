//! How acknowledgements ended: the result of a commit, and outcomes as a stream.

use super::KafkaShareConsumer;
use super::shared::Shared;
use futures_core::Stream;
use kafka_share_core::share_acks::{AckOutcome, Outcome};
use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// Result of a commit: how the acknowledgements of each topic and partition ended. A partition whose acknowledgements did
/// not all end alike has the first outcome that is not `Acknowledged`; single ones are in the outcomes.
pub type CommitOutcomes = BTreeMap<(String, i32), Outcome>;

impl KafkaShareConsumer {
    /// Outcomes of acknowledgements since the last call, oldest first. The newest 65,536 are kept.
    #[must_use]
    pub fn poll_outcomes(&self) -> Vec<AckOutcome> {
        self.shared().take_outcomes()
    }

    /// The next outcome, waited for; `None` once the consumer is closed and all are told. Takes from the same queue as
    /// [`poll_outcomes`](Self::poll_outcomes).
    ///
    /// # Cancel safety
    /// Nothing is lost: an outcome leaves the queue at the moment it is returned. Nothing is sent.
    pub async fn next_outcome(&self) -> Option<AckOutcome> {
        self.shared().next_outcome().await
    }

    /// Outcomes of acknowledgements as a stream, which ends when the consumer is closed. It takes from the same queue as
    /// [`poll_outcomes`](Self::poll_outcomes), and may be dropped at any time without losing one.
    pub fn outcomes(&self) -> OutcomeStream {
        OutcomeStream { shared: Arc::clone(self.shared()), waiting: None }
    }
}

type Waiting<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// See [`KafkaShareConsumer::outcomes`].
#[must_use = "a stream does nothing until it is polled"]
pub struct OutcomeStream {
    shared: Arc<Shared>,
    waiting: Option<Waiting<Option<AckOutcome>>>,
}

impl std::fmt::Debug for OutcomeStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OutcomeStream").finish_non_exhaustive()
    }
}

impl Stream for OutcomeStream {
    type Item = AckOutcome;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<AckOutcome>> {
        let shared = Arc::clone(&self.shared);
        let waiting = self.waiting.get_or_insert_with(|| Box::pin(async move { shared.next_outcome().await }));
        let answer = waiting.as_mut().poll(context);
        if answer.is_ready() {
            self.waiting = None;
        }
        answer
    }
}
