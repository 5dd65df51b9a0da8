//! Exponential back-off with jitter (KIP-144, KIP-580): the pause grows by two per failure up to a limit, ±20 %.

use std::time::Duration;

/// Settings of a back-off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    /// Pause after the first failure.
    pub first: Duration,
    /// Longest pause before jitter.
    pub limit: Duration,
}

impl Backoff {
    /// Pause after `failures` failures in a row (at least one). `random` is any random number.
    #[must_use]
    pub fn pause(&self, failures: u32, random: u64) -> Duration {
        let doublings = failures.saturating_sub(1).min(20);
        let base = self.first.saturating_mul(1 << doublings).min(self.limit);
        // 80 % to 120 % in steps of a thousandth.
        let percent_tenths = 800 + (random % 401) as u32;
        base.saturating_mul(percent_tenths) / 1000
    }
}

/// A small generator (SplitMix64) for jitter; seeded by the caller, so that runs can be repeated.
#[derive(Debug, Clone)]
pub struct Jitter(u64);

impl Jitter {
    /// From a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Jitter(seed)
    }

    /// The next number.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grows_to_the_limit_with_jitter() {
        let backoff = Backoff { first: Duration::from_millis(50), limit: Duration::from_secs(1) };
        let mut jitter = Jitter::new(7);
        for failures in 1..100 {
            let base = Duration::from_millis(50 << (failures - 1).min(5)).min(backoff.limit);
            let pause = backoff.pause(failures, jitter.next_u64());
            assert!(pause >= base.mul_f64(0.8) && pause <= base.mul_f64(1.2), "{failures}: {pause:?}");
        }
    }
}
