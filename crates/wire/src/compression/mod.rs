//! The compression codecs of record batches: gzip, snappy, lz4 and zstd, all in pure Rust.
//!
//! A peer's claims about sizes are never trusted: output grows as it is produced and stops at the
//! caller's limit, so a decompression bomb costs about the limit and not more.

mod gzip;
mod lz4;
mod snappy;
mod zstd;

#[cfg(test)]
mod tests;

use std::fmt;
use std::io::Read;
use std::str::FromStr;

use bytes::{Bytes, BytesMut};
use thiserror::Error;

/// Default limit of a batch's decompressed payload: 64 MiB.
///
/// A produce request is 1 MiB by default and 100 MiB at most (`socket.request.max.bytes`); 64 MiB
/// lets a default-sized batch shrink to a sixty-fourth, and bounds what one fetched batch can cost.
pub const DEFAULT_DECOMPRESSED_LIMIT: usize = 64 << 20;

/// The codec of a record batch, as in the three low bits of its attributes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Compression {
    /// Records as they are.
    #[default]
    None,
    /// RFC 1952.
    Gzip,
    /// Snappy in the chunk framing of snappy-java ("xerial"); raw snappy is read too.
    Snappy,
    /// LZ4 frames with independent blocks of 64 KiB (KIP-57).
    Lz4,
    /// Zstandard frames (KIP-110).
    Zstd,
}

impl Compression {
    /// All codecs, in the order of their ids.
    pub const ALL: [Self; 5] = [Self::None, Self::Gzip, Self::Snappy, Self::Lz4, Self::Zstd];

    /// The id in a batch's attributes.
    pub const fn id(self) -> u8 {
        match self {
            Self::None => 0,
            Self::Gzip => 1,
            Self::Snappy => 2,
            Self::Lz4 => 3,
            Self::Zstd => 4,
        }
    }

    /// The codec of an id; `None` for ids no Kafka release defines.
    pub const fn from_id(id: u8) -> Option<Self> {
        match id {
            0 => Some(Self::None),
            1 => Some(Self::Gzip),
            2 => Some(Self::Snappy),
            3 => Some(Self::Lz4),
            4 => Some(Self::Zstd),
            _ => None,
        }
    }

    /// The name used by `compression.type`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Gzip => "gzip",
            Self::Snappy => "snappy",
            Self::Lz4 => "lz4",
            Self::Zstd => "zstd",
        }
    }
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Compression {
    type Err = CompressionError;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|codec| codec.name() == name)
            .ok_or_else(|| CompressionError::UnknownName(name.to_owned()))
    }
}

/// Why bytes cannot be compressed or decompressed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CompressionError {
    /// No codec has this name.
    #[error("unknown compression type {0:?}: use none, gzip, snappy, lz4 or zstd")]
    UnknownName(String),
    /// The compressed bytes break the codec's format.
    #[error("{codec} data is malformed: {detail}")]
    Malformed {
        /// Codec of the data.
        codec: Compression,
        /// What the decoder found.
        detail: String,
    },
    /// Decompressing would give more bytes than the limit.
    #[error(
        "{codec} data decompresses to more than the limit of {limit} bytes: raise the limit if the data is trusted"
    )]
    TooLarge {
        /// Codec of the data.
        codec: Compression,
        /// The caller's limit in bytes.
        limit: usize,
    },
    /// The level is outside the codec's range.
    #[error("{codec} has no level {level}: use {min} to {max}")]
    InvalidLevel {
        /// Codec asked for.
        codec: Compression,
        /// Level asked for.
        level: i32,
        /// Lowest level.
        min: i32,
        /// Highest level.
        max: i32,
    },
}

impl CompressionError {
    fn malformed(codec: Compression, detail: impl fmt::Display) -> Self {
        Self::Malformed { codec, detail: detail.to_string() }
    }
}

/// Checks a level against the range Kafka documents for the codec (KIP-390).
///
/// # Errors
/// [`CompressionError::InvalidLevel`] names the range.
pub fn check_level(codec: Compression, level: i32) -> Result<(), CompressionError> {
    let (min, max) = match codec {
        Compression::None | Compression::Snappy => return Ok(()),
        Compression::Gzip => (gzip::MIN_LEVEL, gzip::MAX_LEVEL),
        Compression::Lz4 => (lz4::MIN_LEVEL, lz4::MAX_LEVEL),
        Compression::Zstd => (zstd::MIN_LEVEL, zstd::MAX_LEVEL),
    };
    if (min..=max).contains(&level) {
        return Ok(());
    }
    Err(CompressionError::InvalidLevel { codec, level, min, max })
}

/// Compresses `input` and appends the result to `out`.
///
/// Without a level the codec's Kafka default is used. lz4 accepts levels 1 to 17 for the sake of
/// configurations, but has one speed; snappy has no levels.
///
/// # Errors
/// [`CompressionError::InvalidLevel`] if the level is out of range.
pub fn compress(
    codec: Compression,
    level: Option<i32>,
    input: &[u8],
    out: &mut BytesMut,
) -> Result<(), CompressionError> {
    if let Some(level) = level {
        check_level(codec, level)?;
    }
    match codec {
        Compression::None => out.extend_from_slice(input),
        Compression::Gzip => gzip::compress(level, input, out)?,
        Compression::Snappy => snappy::compress(input, out)?,
        Compression::Lz4 => lz4::compress(input, out)?,
        Compression::Zstd => zstd::compress(level, input, out),
    }
    Ok(())
}

/// Decompresses all of `input`, up to `limit` bytes of output.
///
/// Memory in use stays below about twice the limit, plus the codec's window.
///
/// # Errors
/// [`CompressionError::Malformed`] for bytes that break the format, [`CompressionError::TooLarge`]
/// as soon as the output would pass the limit.
pub fn decompress(codec: Compression, input: &[u8], limit: usize) -> Result<Bytes, CompressionError> {
    let output = match codec {
        Compression::None if input.len() > limit => {
            return Err(CompressionError::TooLarge { codec, limit });
        }
        Compression::None => input.to_vec(),
        Compression::Gzip => gzip::decompress(input, limit)?,
        Compression::Snappy => snappy::decompress(input, limit)?,
        Compression::Lz4 => lz4::decompress(input, limit)?,
        Compression::Zstd => zstd::decompress(input, limit)?,
    };
    Ok(Bytes::from(output))
}

/// First size of an output buffer: a guess from the input, never from a claim inside it.
fn first_capacity(input: &[u8], limit: usize) -> usize {
    input.len().saturating_mul(4).clamp(256, 1 << 20).min(limit)
}

/// Reads to the end of a codec's stream, but never past `limit` bytes in all.
fn read_capped(
    codec: Compression,
    reader: &mut impl Read,
    output: &mut Vec<u8>,
    limit: usize,
) -> Result<(), CompressionError> {
    while output.len() < limit {
        // A buffer that grows by itself would double past the limit.
        if output.len() == output.capacity() {
            output.reserve_exact(output.len().max(256).min(limit - output.len()));
        }
        let room = output.capacity().min(limit) - output.len();
        let read = reader.take(room as u64).read_to_end(output);
        if read.map_err(|error| CompressionError::malformed(codec, error))? < room {
            return Ok(());
        }
    }
    let mut probe = [0_u8; 1];
    match reader.read(&mut probe) {
        Ok(0) => Ok(()),
        Ok(_) => Err(CompressionError::TooLarge { codec, limit }),
        Err(error) => Err(CompressionError::malformed(codec, error)),
    }
}
