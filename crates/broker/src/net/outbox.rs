//! What a connection has to write; the reader pauses while it is full, so a slow client costs a bounded amount.

use bytes::Bytes;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// Bytes that may be waiting before no more requests of the connection are read.
const FULL: usize = 4 << 20;

#[derive(Debug, Default)]
struct Queue {
    segments: VecDeque<Bytes>,
    /// Bytes queued or being written.
    bytes: usize,
    closed: bool,
}

/// A connection's output.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    queue: Mutex<Queue>,
    filled: Notify,
    drained: Notify,
}

impl Outbox {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn push(&self, segments: Vec<Bytes>) {
        let mut queue = self.lock();
        queue.bytes += segments.iter().map(Bytes::len).sum::<usize>();
        queue.segments.extend(segments);
        drop(queue);
        self.filled.notify_one();
    }

    /// Nothing more will come; what is queued is still written.
    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.filled.notify_one();
    }

    /// What is queued must not be written either.
    pub(super) fn discard(&self) {
        let mut queue = self.lock();
        queue.segments.clear();
        queue.closed = true;
        drop(queue);
        self.filled.notify_one();
    }

    /// All that is queued, once there is something; `None` after the end.
    pub(super) async fn take(&self) -> Option<VecDeque<Bytes>> {
        loop {
            let filled = self.filled.notified();
            {
                let mut queue = self.lock();
                if !queue.segments.is_empty() {
                    return Some(std::mem::take(&mut queue.segments));
                }
                if queue.closed {
                    return None;
                }
            }
            filled.await;
        }
    }

    pub(super) fn written(&self, bytes: usize) {
        let mut queue = self.lock();
        queue.bytes = queue.bytes.saturating_sub(bytes);
        drop(queue);
        self.drained.notify_one();
    }

    /// Waits until the outbox is not full and, if `answered`, until something was written since the call.
    pub(super) async fn room(&self, answered: bool) {
        let mut wait = answered;
        loop {
            let drained = self.drained.notified();
            if !wait && self.lock().bytes < FULL {
                return;
            }
            drained.await;
            wait = false;
        }
    }
}
