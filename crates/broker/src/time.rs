//! `Now`: the two clocks that a call into the machine brings along.

use std::time::Duration;

/// A point in time: monotonic for deadlines, wall clock for timestamps that clients see.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Now {
    /// Time since the broker started; never goes back.
    pub mono: Duration,
    /// Milliseconds since 1970.
    pub wall_ms: i64,
}

impl Now {
    /// Both clocks later.
    #[must_use]
    pub fn plus(self, by: Duration) -> Now {
        let ms = i64::try_from(by.as_millis()).unwrap_or(i64::MAX);
        Now { mono: self.mono.saturating_add(by), wall_ms: self.wall_ms.saturating_add(ms) }
    }

    /// The monotonic time `ms` milliseconds from now; negative values count as 0.
    #[must_use]
    pub fn after_ms(self, ms: i64) -> Duration {
        self.mono.saturating_add(Duration::from_millis(u64::try_from(ms).unwrap_or(0)))
    }
}
