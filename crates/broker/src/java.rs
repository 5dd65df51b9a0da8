//! What Kafka inherits from Java: the hash that maps a key to its coordinator's partition.

/// `String.hashCode`, over UTF-16 units.
pub(crate) fn string_hash(text: &str) -> i32 {
    text.encode_utf16().fold(0_i32, |hash, unit| hash.wrapping_mul(31).wrapping_add(i32::from(unit)))
}

/// Kafka's `Utils.abs(hash) % partitions`: the sign bit is masked.
pub(crate) fn coordinator_partition(key: &str, partitions: i32) -> i32 {
    (string_hash(key) & i32::MAX) % partitions.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hash_is_javas() {
        // Values of Java's String.hashCode.
        assert_eq!(string_hash(""), 0);
        assert_eq!(string_hash("hello"), 99_162_322);
        assert_eq!(string_hash("polygenelubricants"), i32::MIN);
        assert_eq!(coordinator_partition("polygenelubricants", 50), 0);
    }
}
