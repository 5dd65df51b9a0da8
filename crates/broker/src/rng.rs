//! SplitMix64: the machine's only source of chance, so that a seed repeats a run.

use kafka_share_wire::Uuid;

/// A seeded generator; good enough to pick ids and order, not for secrets.
#[derive(Debug, Clone)]
pub(crate) struct Rng(u64);

impl Rng {
    pub(crate) fn new(seed: u64) -> Self {
        Rng(seed)
    }

    pub(crate) fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A random (version 4) id whose text does not start with a dash, which tools would take for an option.
    pub(crate) fn uuid(&mut self) -> Uuid {
        loop {
            let high = (self.next_u64() & !0xf000) | 0x4000;
            let low = (self.next_u64() >> 2) | (1 << 63);
            let id = Uuid::from_halves(high, low);
            if !id.to_string().starts_with('-') {
                return id;
            }
        }
    }
}
