//! A timer that is asked for a new deadline at every turn of a task's loop, and seldom has to be set anew.

use std::pin::Pin;
use std::time::Instant;
use tokio::time::Sleep;

/// Deadlines that move away with every request leave the timer as it is: it rings once at the time that was set, and is set
/// to the later one then. Setting it is what costs.
#[derive(Debug)]
pub(crate) struct Alarm {
    sleep: Pin<Box<Sleep>>,
    /// When the timer rings, if it is set.
    set: Option<Instant>,
}

impl Alarm {
    pub(crate) fn new() -> Self {
        Alarm { sleep: Box::pin(tokio::time::sleep_until(Instant::now().into())), set: None }
    }

    /// Returns at `deadline`; never without one. Dropping the future loses nothing.
    pub(crate) async fn until(&mut self, deadline: Option<Instant>) {
        let Some(deadline) = deadline else { return std::future::pending().await };
        loop {
            if self.set.is_none_or(|set| deadline < set) {
                self.sleep.as_mut().reset(deadline.into());
                self.set = Some(deadline);
            }
            self.sleep.as_mut().await;
            let rang = self.set.take();
            if rang.is_some_and(|rang| rang >= deadline) {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[tokio::test(start_paused = true)]
    async fn it_rings_at_the_deadline_whatever_was_set_before() {
        let start = tokio::time::Instant::now();
        let at = |seconds| (start + Duration::from_secs(seconds)).into_std();
        let mut alarm = Alarm::new();
        // Set late, then early, then late again, and given up each time but the last.
        for given_up in [50, 10, 40] {
            let wait = tokio::time::timeout(Duration::from_millis(1), alarm.until(Some(at(given_up))));
            wait.await.expect_err("not yet");
        }
        alarm.until(Some(at(30))).await;
        assert_eq!(start.elapsed().as_secs(), 30);
        alarm.until(Some(at(35))).await;
        assert_eq!(start.elapsed().as_secs(), 35);
        alarm.until(Some(at(20))).await;
        assert_eq!(start.elapsed().as_secs(), 35, "what has passed rings at once");
    }

    #[tokio::test(start_paused = true)]
    async fn it_never_rings_without_a_deadline() {
        let mut alarm = Alarm::new();
        let soon = Some((tokio::time::Instant::now() + Duration::from_secs(1)).into_std());
        tokio::time::timeout(Duration::from_millis(1), alarm.until(soon)).await.expect_err("not yet");
        tokio::time::timeout(Duration::from_secs(9), alarm.until(None)).await.expect_err("no deadline");
    }
}
