//! What becomes of a sent record: one shared promise per batch, one future per record.

use super::record::RecordMetadata;
use crate::{Error, Result};
use kafka_share_core::producer::Written;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

#[derive(Debug, Default)]
pub(super) struct Promise(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    result: Option<std::result::Result<Written, Error>>,
    wakers: Vec<Waker>,
}

impl Promise {
    /// Settles it; the first result stays.
    pub(super) fn settle(&self, result: std::result::Result<Written, Error>) {
        let wakers = {
            let mut inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            inner.result.get_or_insert(result);
            std::mem::take(&mut inner.wakers)
        };
        wakers.into_iter().for_each(Waker::wake);
    }

    fn result(&self) -> Option<std::result::Result<Written, Error>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).result.clone()
    }

    fn poll(&self, context: &Context<'_>) -> Poll<std::result::Result<Written, Error>> {
        let mut inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(result) = &inner.result {
            return Poll::Ready(result.clone());
        }
        if !inner.wakers.iter().any(|w| w.will_wake(context.waker())) {
            inner.wakers.push(context.waker().clone());
        }
        Poll::Pending
    }
}

/// Resolves when the record is written, or has failed for good. Dropping it takes nothing back.
///
/// In a transaction, "written" is not "committed".
#[derive(Debug)]
#[must_use = "the record's failure is told here, by flush, or in a transaction by its commit"]
pub struct Delivery {
    pub(super) promise: Arc<Promise>,
    pub(super) partition: i32,
    pub(super) index: u32,
    pub(super) timestamp: i64,
}

impl Delivery {
    /// The result, if it is there.
    #[must_use]
    pub fn try_result(&self) -> Option<Result<RecordMetadata>> {
        self.promise.result().map(|r| r.map(|w| self.metadata(w)))
    }

    fn metadata(&self, written: Written) -> RecordMetadata {
        let Written { base_offset, log_append_time } = written;
        RecordMetadata {
            partition: self.partition,
            offset: if base_offset < 0 { -1 } else { base_offset + i64::from(self.index) },
            timestamp: if log_append_time < 0 { self.timestamp } else { log_append_time },
        }
    }
}

impl Future for Delivery {
    type Output = Result<RecordMetadata>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.promise.poll(context).map(|r| r.map(|w| self.metadata(w)))
    }
}

/// Resolves when the batch is settled, well or not.
pub(super) async fn settled(promise: &Promise) -> std::result::Result<Written, Error> {
    std::future::poll_fn(|context| promise.poll(context)).await
}
