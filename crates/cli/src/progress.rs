//! Progress on standard error, for people at a terminal, of what takes longer than a second.

use indicatif::{ProgressBar, ProgressDrawTarget};
use std::time::{Duration, Instant};

/// What is over sooner shows nothing.
const SHOW_AFTER: Duration = Duration::from_secs(1);
const TURN: Duration = Duration::from_millis(100);

/// Waits for `work`, and says so once it takes long.
pub(crate) async fn during<T>(text: &str, work: impl Future<Output = T>) -> T {
    tokio::pin!(work);
    tokio::select! {
        result = &mut work => return result,
        () = tokio::time::sleep(SHOW_AFTER) => {}
    }
    let bar = ProgressBar::new_spinner().with_message(text.to_owned());
    bar.enable_steady_tick(TURN);
    let result = work.await;
    bar.finish_and_clear();
    result
}

/// A line that changes.
#[derive(Debug)]
pub(crate) struct Line {
    bar: ProgressBar,
    shown: bool,
    started: Instant,
}

impl Line {
    /// Nothing yet.
    pub(crate) fn new() -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        Line { bar, shown: false, started: Instant::now() }
    }

    /// Says something else now.
    pub(crate) fn say(&mut self, text: impl FnOnce() -> String) {
        if !self.shown && self.started.elapsed() >= SHOW_AFTER {
            self.shown = true;
            self.bar = ProgressBar::new_spinner();
            self.bar.enable_steady_tick(TURN);
        }
        if self.shown {
            self.bar.set_message(text());
        }
    }

    /// Takes the line away.
    pub(crate) fn clear(&self) {
        self.bar.finish_and_clear();
    }
}
