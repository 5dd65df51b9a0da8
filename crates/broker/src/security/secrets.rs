//! Where nonces and salts come from: SHA-256 of a key that only the broker knows and a counter.

use crate::rng::Rng;
use sha2::{Digest, Sha256};

/// Bytes of a key.
pub(crate) const KEY_BYTES: usize = 32;

/// Unpredictable to whoever does not know the key, whatever of the output is known.
pub(crate) struct Secrets {
    key: [u8; KEY_BYTES],
    used: u64,
}

impl Secrets {
    /// As secret as the key, which the operating system should have chosen.
    pub(crate) fn new(key: [u8; KEY_BYTES]) -> Self {
        Secrets { key, used: 0 }
    }

    /// No secret at all: for runs that a seed repeats.
    pub(crate) fn seeded(rng: &mut Rng) -> Self {
        let mut key = [0; KEY_BYTES];
        key.chunks_exact_mut(8).for_each(|part| part.copy_from_slice(&rng.next_u64().to_be_bytes()));
        Secrets::new(key)
    }

    /// The next 128 bits.
    pub(crate) fn next(&mut self) -> u128 {
        self.used += 1;
        let bytes = Sha256::new().chain_update(self.key).chain_update(self.used.to_be_bytes()).finalize();
        bytes.iter().take(16).fold(0, |all, byte| (all << 8) | u128::from(*byte))
    }
}

impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Secrets").field("used", &self.used).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_repeats_a_run_and_nothing_else_does() {
        let take = |mut secrets: Secrets| [secrets.next(), secrets.next(), secrets.next()];
        let first = take(Secrets::seeded(&mut Rng::new(1)));
        assert_eq!(first, take(Secrets::seeded(&mut Rng::new(1))));
        assert!(first[0] != first[1] && first[1] != first[2] && first[0] != first[2]);
        assert_ne!(first, take(Secrets::seeded(&mut Rng::new(2))));
        // SHA-256 of 39 zero bytes and a one.
        let known = 0x08e00266fff0aacc64974f22a53622a7;
        assert_eq!(Secrets::new([0; KEY_BYTES]).next(), known);
        assert!(!format!("{:?}", Secrets::new([7; KEY_BYTES])).contains('7'));
    }
}
