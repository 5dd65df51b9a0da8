//! Records one at a time: `recv`, and a stream for the combinators of the futures ecosystem.

use super::KafkaShareConsumer;
use super::owned::OwnedShareRecord;
use super::shared::{Shared, deadline_in};
use crate::{Error, ErrorKind, Result};
use futures_core::Stream;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

impl KafkaShareConsumer {
    /// Waits for one record. In implicit mode, coming back here (or to [`poll`](Self::poll)) accepts the one before, and
    /// that one only.
    ///
    /// Fetches bring up to `max.poll.records`; what is not handed out yet waits in the consumer, its lock running. The
    /// record borrows nothing, and keeps the frame it came in alive.
    ///
    /// # Cancel safety
    /// Nothing is lost: a record leaves the consumer at the moment it is returned. A fetch under way goes on.
    ///
    /// # Errors
    /// As [`poll`](Self::poll).
    pub async fn recv(&self) -> Result<OwnedShareRecord> {
        recv(self.shared()).await
    }

    /// Records as a stream: each item as of [`recv`](Self::recv). It goes on after errors that the application may
    /// survive, and ends when the consumer is closed, or with an error that the group has for it until it subscribes
    /// again. Dropping the stream loses nothing.
    pub fn stream(&self) -> ShareRecordStream {
        ShareRecordStream { shared: Arc::clone(self.shared()), waiting: None, ended: false }
    }
}

async fn recv(shared: &Arc<Shared>) -> Result<OwnedShareRecord> {
    let _guard = shared.start_poll()?;
    let never = deadline_in(Duration::MAX);
    loop {
        if let Some(record) = shared.wait(never, || shared.next_now()).await {
            return record;
        }
    }
}

type Waiting<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// See [`KafkaShareConsumer::stream`].
#[must_use = "a stream does nothing until it is polled"]
pub struct ShareRecordStream {
    shared: Arc<Shared>,
    waiting: Option<Waiting<Result<OwnedShareRecord>>>,
    ended: bool,
}

impl std::fmt::Debug for ShareRecordStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ShareRecordStream").field("ended", &self.ended).finish_non_exhaustive()
    }
}

impl ShareRecordStream {
    fn poll_waiting(&mut self, context: &mut Context<'_>) -> Poll<Result<OwnedShareRecord>> {
        // A record that is there needs nothing to wait with, and so no allocation.
        if self.waiting.is_none()
            && let Some(answer) = self.shared.recv_now()
        {
            return Poll::Ready(answer);
        }
        let shared = &self.shared;
        let waiting = self.waiting.get_or_insert_with(|| {
            let shared = Arc::clone(shared);
            Box::pin(async move { recv(&shared).await })
        });
        let answer = waiting.as_mut().poll(context);
        if answer.is_ready() {
            self.waiting = None;
        }
        answer
    }
}

impl Shared {
    /// A whole `recv`, where it has not to wait.
    fn recv_now(&self) -> Option<Result<OwnedShareRecord>> {
        match self.start_poll() {
            Ok(_guard) => self.next_now(),
            Err(error) => Some(Err(error)),
        }
    }
}

impl Stream for ShareRecordStream {
    type Item = Result<OwnedShareRecord>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.ended {
            return Poll::Ready(None);
        }
        let answer = match self.poll_waiting(context) {
            Poll::Ready(answer) => answer,
            Poll::Pending => return Poll::Pending,
        };
        if answer.as_ref().is_err_and(|e: &Error| e.kind() == ErrorKind::Closed) {
            self.ended = true;
            return Poll::Ready(None);
        }
        self.ended = answer.is_err() && self.shared.failure().is_some();
        Poll::Ready(Some(answer))
    }
}
