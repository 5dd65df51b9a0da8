//! How acknowledgements ended: the result of a commit, and outcomes as a stream.

use super::KafkaShareConsumer;
use super::shared::Shared;
use futures_core::Stream;
use kafka_share_core::share_acks::{AckOutcome, Outcome};
use std::collections::{BTreeMap, VecDeque};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// Result of a commit: how the acknowledgements of each topic and partition ended. A partition whose acknowledgements did
/// not all end alike has the first outcome that is not `Acknowledged`; single ones are in the outcomes.
pub type CommitOutcomes = BTreeMap<(String, i32), Outcome>;

/// Outcomes kept for the application.
const MAX_OUTCOMES: usize = 65_536;

/// Outcomes that wait for the application: the newest of them.
#[derive(Default)]
pub(super) struct OutcomeQueue {
    waiting: VecDeque<AckOutcome>,
    /// The application does not read them, and was warned.
    warned: bool,
}

impl OutcomeQueue {
    /// Answers whether the oldest one had to go without the application having been told of it.
    pub(super) fn push(&mut self, outcome: AckOutcome, has_callback: bool) -> bool {
        let full = self.waiting.len() >= MAX_OUTCOMES && self.waiting.pop_front().is_some();
        self.waiting.push_back(outcome);
        let lost = full && !has_callback;
        if lost && !std::mem::replace(&mut self.warned, true) {
            tracing::warn!(
                kept = MAX_OUTCOMES,
                "outcomes of acknowledgements are not read: from now on the oldest are dropped; call poll_outcomes now and then, or set a callback"
            );
        }
        lost
    }

    pub(super) fn pop_front(&mut self) -> Option<AckOutcome> {
        self.warned = false;
        self.waiting.pop_front()
    }

    pub(super) fn take(&mut self) -> Vec<AckOutcome> {
        self.warned = false;
        self.waiting.drain(..).collect()
    }
}

impl KafkaShareConsumer {
    /// Outcomes of acknowledgements since the last call, oldest first.
    ///
    /// The newest 65,536 are kept for this call, [`next_outcome`](Self::next_outcome) and [`outcomes`](Self::outcomes).
    /// Of older ones only their number is left, as the metric `acknowledgement-outcomes-dropped-total`, and a warning in the
    /// log, once until outcomes are read again. Neither counts those that the
    /// [callback](crate::ShareConsumerBuilder::acknowledgement_commit_callback) was told of.
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

#[cfg(test)]
mod tests {
    use super::*;
    use kafka_share_core::metadata::TopicIdPartition;
    use kafka_share_core::share_acks::AckType;

    fn outcome(offset: i64) -> AckOutcome {
        AckOutcome {
            tp: TopicIdPartition { topic_id: kafka_share_wire::Uuid::ZERO, partition: 0 },
            first_offset: offset,
            last_offset: offset,
            ack_type: Some(AckType::Accept),
            outcome: Outcome::Acknowledged,
        }
    }

    #[test]
    fn the_newest_are_kept_and_the_others_counted() {
        let mut queue = OutcomeQueue::default();
        let limit = MAX_OUTCOMES as i64;
        let lost = |queue: &mut OutcomeQueue, offsets: std::ops::Range<i64>, told: bool| {
            offsets.filter(|offset| queue.push(outcome(*offset), told)).count()
        };
        assert_eq!(lost(&mut queue, 0..limit, false), 0);
        assert!(!queue.warned);
        assert_eq!(lost(&mut queue, limit..limit + 3, false), 3);
        assert!(queue.warned);
        assert_eq!(queue.pop_front(), Some(outcome(3)));
        assert!(!queue.warned, "the next loss is a new one");
        assert_eq!(lost(&mut queue, limit + 3..limit + 5, true), 0, "the callback knows of them");
        let kept = queue.take();
        assert_eq!((kept.len(), kept[0].first_offset), (MAX_OUTCOMES, 5));
    }
}
