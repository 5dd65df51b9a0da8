//! The acknowledgement commit callback: who calls it, and what it must not call back.

use super::builder::OutcomeCallback;
use super::shared::Shared;
use crate::{Error, ErrorKind, Result};
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};

thread_local! {
    /// Consumers in whose callback this thread is, outermost first.
    static INSIDE: RefCell<Vec<u32>> = const { RefCell::new(Vec::new()) };
}

/// This thread is in the callback of a consumer.
struct Inside;

impl Inside {
    fn of(consumer: u32) -> Self {
        INSIDE.with_borrow_mut(|inside| inside.push(consumer));
        Inside
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        INSIDE.with_borrow_mut(|inside| inside.pop());
    }
}

impl Shared {
    /// Has outcomes from here on told to another callback, or to none.
    pub(super) fn set_callback(&self, callback: Option<OutcomeCallback>) {
        let former = {
            let mut inbox = self.inbox();
            // What is not told yet is from before.
            inbox.untold.clear();
            std::mem::replace(&mut inbox.callback, callback)
        };
        // What it holds may call the consumer when it is dropped.
        drop(former);
    }

    /// Tells the callback what it does not know yet, unless some task is doing so.
    pub(super) fn tell_outcomes(&self) {
        let mut inbox = self.inbox();
        if inbox.callback.is_none() || std::mem::replace(&mut inbox.telling, true) {
            return;
        }
        while let Some(callback) = inbox.callback.clone().filter(|_| !inbox.untold.is_empty()) {
            let outcomes = Vec::from(std::mem::take(&mut inbox.untold));
            drop(inbox);
            let inside = Inside::of(self.number);
            if catch_unwind(AssertUnwindSafe(|| callback(&outcomes))).is_err() {
                tracing::error!("the acknowledgement commit callback panicked; the consumer goes on");
            }
            drop(inside);
            drop(callback);
            inbox = self.inbox();
        }
        inbox.telling = false;
    }

    /// Whether the callback knows all outcomes.
    pub(super) fn all_told(&self) -> bool {
        let inbox = self.inbox();
        !inbox.telling && inbox.untold.is_empty()
    }

    /// Refuses what would wait for the callback that it is called in.
    pub(super) fn check_not_in_callback(&self, what: &str) -> Result<()> {
        if INSIDE.with_borrow(|inside| !inside.contains(&self.number)) {
            return Ok(());
        }
        let text = format!("{what} cannot be called in the acknowledgement commit callback: it would wait for itself");
        Err(Error::new(ErrorKind::InvalidState, text))
    }
}
