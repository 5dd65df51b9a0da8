//! A small seeded generator (SplitMix64), for runs that can be had again.

/// The generator. Each stream of a seed has numbers of its own.
#[derive(Debug, Clone)]
pub struct Dice(u64);

impl Dice {
    /// A stream of a seed.
    #[must_use]
    pub fn new(seed: u64, stream: u64) -> Self {
        Dice(seed.wrapping_mul(0xD134_2543_DE82_EF95).wrapping_add(stream.wrapping_mul(0x2545_F491_4F6C_DD1D)))
    }

    /// A number below `bound`, which is at least 1.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % bound.max(1)
    }

    /// Whether the one of `n` came.
    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}
