//! The requests to one broker: encoded, handed to its connection in order, and their answers. All in the producer's
//! task, so that a request costs no wake-up of another one but the connection's.

use super::shared::{Shared, failure};
use super::spans;
use crate::net::{Purpose, Submitted};
use crate::{Compression, Result};
use kafka_share_core::producer::{ProduceDraft, ProduceFailure};
use kafka_share_messages::{ApiKey, Message, ProduceRequest, ProduceResponse};
use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;
use tokio::task::JoinError;
use tracing::{Instrument, Span};

/// Last Produce version whose partitions must be added to a transaction beforehand.
const LAST_V1_PRODUCE: i16 = 11;

type Work<T> = Pin<Box<dyn Future<Output = T> + Send>>;
type Handed = std::result::Result<(Submitted<ProduceRequest>, Span), ProduceFailure>;

/// A request and what became of it.
pub(super) type Outcome = (u64, std::result::Result<ProduceResponse, ProduceFailure>);

pub(super) struct Lane {
    node: i32,
    shared: Arc<Shared>,
    queue: VecDeque<(u64, ProduceDraft)>,
    /// The request that is being encoded, or waits for its connection.
    handing: Option<(u64, Work<Handed>)>,
    /// A broker answers in order on one connection; where it has a new address, the new one does not wait for the old.
    answers: VecDeque<(u64, Work<Result<ProduceResponse>>)>,
}

impl Lane {
    pub(super) fn new(node: i32, shared: Arc<Shared>) -> Self {
        Lane { node, shared, queue: VecDeque::new(), handing: None, answers: VecDeque::new() }
    }

    pub(super) fn push(&mut self, request: u64, draft: ProduceDraft) {
        self.queue.push_back((request, draft));
    }

    /// Goes on with all of it; the next outcome.
    pub(super) fn poll(&mut self, context: &mut Context<'_>) -> Poll<Outcome> {
        while let Some((request, mut handing)) = self.next_handing() {
            match handing.as_mut().poll(context) {
                Poll::Pending => {
                    self.handing = Some((request, handing));
                    break;
                }
                Poll::Ready(Ok((submitted, span))) => {
                    let answer = answer(Arc::clone(&self.shared), submitted).instrument(span);
                    self.answers.push_back((request, Box::pin(answer)));
                }
                Poll::Ready(Err(failure)) => return Poll::Ready((request, Err(failure))),
            }
        }
        for at in 0..self.answers.len() {
            let (request, answer) = &mut self.answers[at];
            if let Poll::Ready(result) = answer.as_mut().poll(context) {
                let request = *request;
                self.answers.remove(at);
                return Poll::Ready((request, result.map_err(|error| failure(&error))));
            }
        }
        Poll::Pending
    }

    fn next_handing(&mut self) -> Option<(u64, Work<Handed>)> {
        self.handing.take().or_else(|| {
            let (request, draft) = self.queue.pop_front()?;
            Some((request, Box::pin(hand_over(self.node, Arc::clone(&self.shared), draft)) as Work<Handed>))
        })
    }
}

async fn hand_over(node: i32, shared: Arc<Shared>, draft: ProduceDraft) -> Handed {
    let (v2, compression) = shared.with(|s| {
        let v2 = s.machine.transaction().map(kafka_share_core::transaction::Transaction::is_v2);
        (v2, s.machine.config().compression)
    });
    let encoded = match compression {
        Compression::None => draft.encode(),
        // Long work, which goes on beside that for other brokers.
        _ => tokio::spawn(async move { draft.encode() }).await.unwrap_or_else(|error| Err(not_encoded(&error))),
    };
    let (body, sent, encoded) = encoded?;
    let span = spans::produce(node);
    spans::counted(&span, (sent.records + sent.retried) as u64);
    shared.metrics.sent(&sent);
    shared.with(|s| s.machine.handle_encoded(encoded));
    let submitted = submit(node, &shared, body, v2).instrument(span.clone()).await;
    submitted.map(|submitted| (submitted, span)).map_err(|error| failure(&error))
}

fn not_encoded(error: &JoinError) -> ProduceFailure {
    let text = if error.is_panic() { "encoding the records panicked" } else { "the client's runtime has stopped" };
    ProduceFailure { maybe_done: false, fatal: true, text: text.to_owned() }
}

async fn submit(
    node: i32,
    shared: &Shared,
    body: ProduceRequest,
    v2: Option<bool>,
) -> Result<Submitted<ProduceRequest>> {
    let deadline = shared.request_deadline();
    let cap = if v2 == Some(false) { LAST_V1_PRODUCE } else { <ProduceRequest as Message>::MAX_VERSION };
    let connection = shared.cluster.connection(node, Purpose::Produce)?;
    let version = connection.version::<ProduceRequest>(ApiKey::PRODUCE, cap, deadline).await?;
    connection.submit(&body, ApiKey::PRODUCE, version, deadline).await
}

fn answer(
    shared: Arc<Shared>,
    submitted: Submitted<ProduceRequest>,
) -> impl Future<Output = Result<ProduceResponse>> + Send {
    // Now, and not when it is looked at first.
    let started = Instant::now();
    async move {
        let response = submitted.answer().await?;
        shared.metrics.answered(started.elapsed(), response.throttle_time_ms);
        Ok(response)
    }
}
