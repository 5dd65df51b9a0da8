//! Which partition a record goes to: by its key's hash as Java's producer, or to a sticky partition (KIP-480, KIP-794).

use crate::backoff::Jitter;

/// Java's murmur2 with its fixed seed, as `org.apache.kafka.common.utils.Utils.murmur2`.
#[must_use]
pub fn murmur2(data: &[u8]) -> u32 {
    const M: u32 = 0x5bd1_e995;
    let mut h: u32 = 0x9747_b28c ^ data.len() as u32;
    let mut chunks = data.chunks_exact(4);
    for chunk in &mut chunks {
        let mut k = u32::from_le_bytes([chunk[0], chunk[1], chunk[2], chunk[3]]).wrapping_mul(M);
        k ^= k >> 24;
        h = h.wrapping_mul(M) ^ k.wrapping_mul(M);
    }
    let rest = chunks.remainder();
    if !rest.is_empty() {
        for (i, byte) in rest.iter().enumerate() {
            h ^= u32::from(*byte) << (8 * i);
        }
        h = h.wrapping_mul(M);
    }
    h ^= h >> 13;
    h = h.wrapping_mul(M);
    h ^ (h >> 15)
}

/// Partition of a key among `partitions` (at least one).
#[must_use]
pub fn partition_for_key(key: &[u8], partitions: u32) -> i32 {
    ((murmur2(key) & 0x7fff_ffff) % partitions.max(1)) as i32
}

/// The partition that records without a key go to until it has had a batch's worth of bytes.
#[derive(Debug, Default)]
pub(super) struct Sticky {
    current: Option<i32>,
    bytes: usize,
}

impl Sticky {
    /// The partition for a record of `size` bytes. `usable`: partitions that have a leader.
    pub(super) fn choose(
        &mut self,
        usable: &[i32],
        size: usize,
        batch_size: usize,
        random: &mut Jitter,
    ) -> Option<i32> {
        if self.bytes >= batch_size || self.current.is_none_or(|c| !usable.contains(&c)) {
            let others: Vec<i32> = usable.iter().copied().filter(|p| Some(*p) != self.current).collect();
            let pool = if others.is_empty() { usable } else { &others };
            let turn = random.next_u64() as usize % pool.len().max(1);
            self.current = pool.get(turn).copied();
            self.bytes = 0;
        }
        self.bytes += size;
        self.current
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_javas() {
        // From org.apache.kafka.common.utils.Utils.murmur2 of kafka-clients 4.4.0.
        for (text, hash) in [("21", -973932308_i32), ("foobar", -790332482), ("a-little-bit-long-string", -985981536)] {
            assert_eq!(murmur2(text.as_bytes()) as i32, hash, "{text}");
        }
    }

    #[test]
    fn sticky_moves_on_after_a_batch() {
        let mut sticky = Sticky::default();
        let mut random = Jitter::new(1);
        let first = sticky.choose(&[0, 1, 2], 60, 100, &mut random);
        assert_eq!(sticky.choose(&[0, 1, 2], 60, 100, &mut random), first);
        assert_ne!(sticky.choose(&[0, 1, 2], 60, 100, &mut random), first);
        assert_eq!(sticky.choose(&[5], 60, 100, &mut random), Some(5));
        assert_eq!(sticky.choose(&[], 60, 100, &mut random), None);
    }
}
