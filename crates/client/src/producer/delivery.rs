//! What becomes of a sent record: one shared promise per batch, one future per record.

use super::record::RecordMetadata;
use crate::{Error, Result};
use kafka_share_core::producer::Written;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

type Outcome = std::result::Result<Written, Error>;

#[derive(Debug, Default)]
pub(super) struct Promise(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    fate: Option<Fate>,
    wakers: Vec<Waker>,
}

#[derive(Debug, Clone)]
enum Fate {
    Settled(Outcome),
    /// The batch was taken apart: the promises of its parts, each with the place of its first record.
    Split(Arc<[(u32, Arc<Promise>)]>),
}

impl Promise {
    /// Settles it; what was first stays.
    pub(super) fn settle(&self, result: Outcome) {
        self.decide(Fate::Settled(result));
    }

    /// Hands over to the promises of the batch's parts, in order.
    pub(super) fn split(&self, parts: Vec<(u32, Arc<Promise>)>) {
        self.decide(Fate::Split(parts.into()));
    }

    fn decide(&self, fate: Fate) {
        let wakers = {
            let mut inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            inner.fate.get_or_insert(fate);
            std::mem::take(&mut inner.wakers)
        };
        wakers.into_iter().for_each(Waker::wake);
    }

    fn fate(&self) -> Option<Fate> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).fate.clone()
    }

    fn poll(&self, context: &Context<'_>) -> Poll<Fate> {
        let mut inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(fate) = &inner.fate {
            return Poll::Ready(fate.clone());
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
    /// Place of the record in its batch.
    pub(super) index: u32,
    pub(super) timestamp: i64,
}

impl Delivery {
    /// The result, if it is there.
    #[must_use]
    pub fn try_result(&self) -> Option<Result<RecordMetadata>> {
        let (mut promise, mut index) = (Arc::clone(&self.promise), self.index);
        loop {
            match promise.fate()? {
                Fate::Settled(result) => return Some(result.map(|w| self.metadata(w, index))),
                Fate::Split(parts) => (promise, index) = part(&parts, index)?,
            }
        }
    }

    fn metadata(&self, written: Written, index: u32) -> RecordMetadata {
        let Written { base_offset, log_append_time } = written;
        RecordMetadata {
            partition: self.partition,
            offset: if base_offset < 0 { -1 } else { base_offset + i64::from(index) },
            timestamp: if log_append_time < 0 { self.timestamp } else { log_append_time },
        }
    }
}

/// The part that has the record, and its place there.
fn part(parts: &[(u32, Arc<Promise>)], index: u32) -> Option<(Arc<Promise>, u32)> {
    let (first, promise) = parts.iter().rev().find(|(first, _)| *first <= index)?;
    Some((Arc::clone(promise), index - first))
}

impl Future for Delivery {
    type Output = Result<RecordMetadata>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        loop {
            match std::task::ready!(self.promise.poll(context)) {
                Fate::Settled(result) => return Poll::Ready(result.map(|w| self.metadata(w, self.index))),
                // The first part begins at 0, so that there is one for every record.
                Fate::Split(parts) => match part(&parts, self.index) {
                    Some((promise, index)) => (self.promise, self.index) = (promise, index),
                    None => return Poll::Pending,
                },
            }
        }
    }
}

/// Resolves when the batch, or every part of it, is settled; to the first failure.
pub(super) async fn settled(promise: Arc<Promise>) -> std::result::Result<(), Error> {
    let mut first = Ok(());
    let mut all = vec![promise];
    while let Some(promise) = all.pop() {
        match std::future::poll_fn(|context| promise.poll(context)).await {
            Fate::Settled(result) => first = first.and(result.map(drop)),
            Fate::Split(parts) => all.extend(parts.iter().rev().map(|(_, promise)| Arc::clone(promise))),
        }
    }
    first
}
