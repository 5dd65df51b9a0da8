//! Kafka's 16-byte identifiers, shown as URL-safe base64 without padding like the official tools do.

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::str::FromStr;
use std::time::Instant;

/// A topic id or another 128-bit identifier.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Uuid(pub [u8; 16]);

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

impl Uuid {
    /// All zero: "no id".
    pub const ZERO: Uuid = Uuid([0; 16]);

    /// Whether this is [`Uuid::ZERO`].
    #[must_use]
    pub fn is_zero(&self) -> bool {
        *self == Self::ZERO
    }

    /// One that nobody has had; for names, not for secrets.
    #[must_use]
    pub fn random() -> Self {
        // Each state has keys of its own, the first of a thread from the system's random numbers.
        let half = || RandomState::new().hash_one((Instant::now(), std::process::id()));
        Uuid::from_halves(half(), half())
    }

    /// From two halves, most significant first.
    #[must_use]
    pub fn from_halves(high: u64, low: u64) -> Self {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&high.to_be_bytes());
        bytes[8..].copy_from_slice(&low.to_be_bytes());
        Uuid(bytes)
    }
}

impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = u128::from_be_bytes(self.0);
        // 22 digits of 6 bits; the last digit carries the 2 remaining bits, shifted left.
        for i in 0..21 {
            let digit = (value >> (122 - 6 * i)) & 0x3f;
            write!(f, "{}", ALPHABET[digit as usize] as char)?;
        }
        write!(f, "{}", ALPHABET[((value << 4) & 0x3f) as usize] as char)
    }
}

impl fmt::Debug for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The text is not 22 digits of URL-safe base64.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a Kafka id (22 digits of URL-safe base64 expected): {0:?}")]
pub struct ParseUuidError(String);

impl FromStr for Uuid {
    type Err = ParseUuidError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let fail = || ParseUuidError(text.chars().take(64).collect());
        let digits = text.trim_end_matches('=').as_bytes();
        if digits.len() != 22 {
            return Err(fail());
        }
        let mut value: u128 = 0;
        for (i, digit) in digits.iter().enumerate() {
            let six = ALPHABET.iter().position(|a| a == digit).ok_or_else(fail)? as u128;
            value = if i < 21 { (value << 6) | six } else { (value << 2) | (six >> 4) };
        }
        Ok(Uuid(value.to_be_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_form_round_trips() {
        for seed in 0..200_u64 {
            let id = Uuid::from_halves(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15), !seed);
            assert_eq!(id.to_string().parse::<Uuid>().unwrap(), id);
            assert_eq!(id.to_string().len(), 22);
        }
        assert_eq!(Uuid::ZERO.to_string(), "AAAAAAAAAAAAAAAAAAAAAA");
        // Value and text as printed by Java's Uuid for (1, 2).
        assert_eq!(Uuid::from_halves(1, 2).to_string(), "AAAAAAAAAAEAAAAAAAAAAg");
    }

    #[test]
    fn bad_text_is_refused() {
        assert!("".parse::<Uuid>().is_err());
        assert!("AAAAAAAAAAAAAAAAAAAAA!".parse::<Uuid>().is_err());
        assert!("é".repeat(11).parse::<Uuid>().is_err());
    }
}
