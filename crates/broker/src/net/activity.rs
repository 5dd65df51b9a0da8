//! When a connection last moved a byte, and how long it may be without.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::Duration;
use tokio::time::Instant;

/// Time since the last byte in either direction.
#[derive(Debug)]
pub(super) struct Activity {
    last: Mutex<Instant>,
    max_idle: Duration,
}

impl Activity {
    pub(super) fn new(max_idle: Duration) -> Self {
        Activity { last: Mutex::new(Instant::now()), max_idle }
    }

    pub(super) fn touch(&self) {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    fn left(&self) -> Duration {
        let last = *self.last.lock().unwrap_or_else(PoisonError::into_inner);
        self.max_idle.saturating_sub(last.elapsed())
    }

    /// Returns once nothing has moved for too long.
    pub(super) async fn too_idle(&self) {
        loop {
            let left = self.left();
            if left.is_zero() {
                return;
            }
            tokio::time::sleep(left).await;
        }
    }
}
