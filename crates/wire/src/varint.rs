//! Variable-length integers of the Kafka protocol: unsigned, and zig-zag signed of 32 and 64 bits.
//!
//! Decoders take the bytes left and give the value with the bytes after it. They are strict: a
//! number that is longer than its type, or does not fit it, is an error and not cut to size.

use bytes::BufMut;
use thiserror::Error;

/// Why a variable-length integer cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum VarintError {
    /// The bytes end within the number.
    #[error("the bytes end within a variable-length integer")]
    Truncated,
    /// The number is longer than 5 (32-bit) or 10 (64-bit) bytes, or exceeds its type.
    #[error("a variable-length integer exceeds {bits} bits")]
    TooLong {
        /// Width of the type asked for.
        bits: u8,
    },
}

/// Longest encoding of a 32-bit number, in bytes.
pub const MAX_VARINT_LEN: usize = 5;
/// Longest encoding of a 64-bit number, in bytes.
pub const MAX_VARLONG_LEN: usize = 10;

/// Reads an unsigned 32-bit number.
///
/// # Errors
/// [`VarintError`] if the number is cut off or does not fit.
#[inline(always)]
pub fn decode_uvarint(bytes: &[u8]) -> Result<(u32, &[u8]), VarintError> {
    match bytes {
        [a, rest @ ..] if *a < 0x80 => Ok((u32::from(*a), rest)),
        [a, b, rest @ ..] if *b < 0x80 => Ok((u32::from(a & 0x7f) | u32::from(*b) << 7, rest)),
        [a, b, c, rest @ ..] if *c < 0x80 => {
            Ok((u32::from(a & 0x7f) | u32::from(b & 0x7f) << 7 | u32::from(*c) << 14, rest))
        }
        _ => decode_long_uvarint(bytes),
    }
}

fn decode_long_uvarint(bytes: &[u8]) -> Result<(u32, &[u8]), VarintError> {
    let (value, rest) = decode_loop::<MAX_VARINT_LEN>(bytes, 32)?;
    let value = u32::try_from(value).map_err(|_| VarintError::TooLong { bits: 32 })?;
    Ok((value, rest))
}

/// Reads an unsigned 64-bit number.
///
/// # Errors
/// [`VarintError`] if the number is cut off or does not fit.
#[inline(always)]
pub fn decode_uvarlong(bytes: &[u8]) -> Result<(u64, &[u8]), VarintError> {
    match bytes {
        [a, rest @ ..] if *a < 0x80 => Ok((u64::from(*a), rest)),
        [a, b, rest @ ..] if *b < 0x80 => Ok((u64::from(a & 0x7f) | u64::from(*b) << 7, rest)),
        [a, b, c, rest @ ..] if *c < 0x80 => {
            Ok((u64::from(a & 0x7f) | u64::from(b & 0x7f) << 7 | u64::from(*c) << 14, rest))
        }
        _ => decode_loop::<MAX_VARLONG_LEN>(bytes, 64),
    }
}

fn decode_loop<const MAX: usize>(bytes: &[u8], bits: u8) -> Result<(u64, &[u8]), VarintError> {
    let mut value = 0_u64;
    for (index, byte) in bytes.iter().take(MAX).enumerate() {
        let shift = 7 * index;
        let low = u64::from(byte & 0x7f);
        // The tenth byte carries one bit only.
        if shift == 63 && low > 1 {
            return Err(VarintError::TooLong { bits });
        }
        value |= low << shift;
        if *byte < 0x80 {
            return Ok((value, &bytes[index + 1..]));
        }
    }
    if bytes.len() < MAX { Err(VarintError::Truncated) } else { Err(VarintError::TooLong { bits }) }
}

/// Reads a zig-zag 32-bit number.
///
/// # Errors
/// [`VarintError`] if the number is cut off or does not fit.
#[inline(always)]
pub fn decode_varint(bytes: &[u8]) -> Result<(i32, &[u8]), VarintError> {
    let (raw, rest) = decode_uvarint(bytes)?;
    Ok(((raw >> 1) as i32 ^ -((raw & 1) as i32), rest))
}

/// Reads a zig-zag 64-bit number.
///
/// # Errors
/// [`VarintError`] if the number is cut off or does not fit.
#[inline(always)]
pub fn decode_varlong(bytes: &[u8]) -> Result<(i64, &[u8]), VarintError> {
    let (raw, rest) = decode_uvarlong(bytes)?;
    Ok(((raw >> 1) as i64 ^ -((raw & 1) as i64), rest))
}

/// Writes an unsigned number of up to 64 bits.
#[inline]
pub fn encode_uvarlong(value: u64, out: &mut impl BufMut) {
    if value < 0x80 {
        out.put_u8(value as u8);
        return;
    }
    let mut scratch = [0_u8; MAX_VARLONG_LEN];
    let written = fill_uvarlong(value, &mut scratch, 0);
    out.put_slice(&scratch[..written]);
}

/// Writes an unsigned 32-bit number.
#[inline]
pub fn encode_uvarint(value: u32, out: &mut impl BufMut) {
    encode_uvarlong(u64::from(value), out);
}

/// Writes a zig-zag 32-bit number.
#[inline]
pub fn encode_varint(value: i32, out: &mut impl BufMut) {
    encode_uvarlong(u64::from(zigzag32(value)), out);
}

/// Writes a zig-zag 64-bit number.
#[inline]
pub fn encode_varlong(value: i64, out: &mut impl BufMut) {
    encode_uvarlong(zigzag64(value), out);
}

/// Puts a number into `scratch` from `at` on and gives the position after it.
#[inline]
pub(crate) fn fill_uvarlong(mut value: u64, scratch: &mut [u8], mut at: usize) -> usize {
    while value >= 0x80 {
        scratch[at] = value as u8 | 0x80;
        value >>= 7;
        at += 1;
    }
    scratch[at] = value as u8;
    at + 1
}

/// Zig-zag image of a 32-bit number: small magnitudes become small unsigned numbers.
#[inline]
pub const fn zigzag32(value: i32) -> u32 {
    ((value << 1) ^ (value >> 31)) as u32
}

/// Zig-zag image of a 64-bit number.
#[inline]
pub const fn zigzag64(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

/// Encoded length of an unsigned number, in bytes.
#[inline]
pub const fn uvarlong_len(value: u64) -> usize {
    let bits = 64 - (value | 1).leading_zeros() as usize;
    bits.div_ceil(7)
}

/// Encoded length of a zig-zag 32-bit number, in bytes.
#[inline]
pub const fn varint_len(value: i32) -> usize {
    uvarlong_len(zigzag32(value) as u64)
}

/// Encoded length of a zig-zag 64-bit number, in bytes.
#[inline]
pub const fn varlong_len(value: i64) -> usize {
    uvarlong_len(zigzag64(value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn varlong_round_trips(value: i64, shift in 0_u32..64) {
            let value = value >> shift;
            let mut out = Vec::new();
            encode_varlong(value, &mut out);
            prop_assert_eq!(out.len(), varlong_len(value));
            prop_assert_eq!(decode_varlong(&out), Ok((value, &[][..])));
            for cut in 0..out.len() {
                prop_assert_eq!(decode_varlong(&out[..cut]), Err(VarintError::Truncated));
            }
        }

        #[test]
        fn varint_round_trips(value: i32, shift in 0_u32..32) {
            let value = value >> shift;
            let mut out = Vec::new();
            encode_varint(value, &mut out);
            prop_assert_eq!(out.len(), varint_len(value));
            out.push(7);
            prop_assert_eq!(decode_varint(&out), Ok((value, &[7][..])));
        }
    }

    #[test]
    fn numbers_beyond_their_type_are_refused() {
        let too_long = [0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
        assert_eq!(decode_uvarint(&too_long), Err(VarintError::TooLong { bits: 32 }));
        // Five bytes, but 35 bits.
        let too_wide = [0xff, 0xff, 0xff, 0xff, 0x7f];
        assert_eq!(decode_uvarint(&too_wide), Err(VarintError::TooLong { bits: 32 }));
        let mut wide = [0xff_u8; 10];
        wide[9] = 0x02;
        assert_eq!(decode_uvarlong(&wide), Err(VarintError::TooLong { bits: 64 }));
        wide[9] = 0x01;
        assert_eq!(decode_uvarlong(&wide), Ok((u64::MAX, &[][..])));
        assert_eq!(decode_uvarlong(&[0xff; 11]), Err(VarintError::TooLong { bits: 64 }));
    }
}
