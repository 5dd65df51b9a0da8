//! Snappy: written in the chunk framing of snappy-java, read in that framing or raw.
//!
//! The framing is a header of 16 bytes (magic, version, lowest compatible version) and then chunks,
//! each a big-endian length and a raw snappy block. The magic alone decides: some writers put the
//! version numbers in little-endian order.

use bytes::{BufMut, BytesMut};
use snap::raw::{Decoder, Encoder, decompress_len, max_compress_len};

use super::{Compression, CompressionError};

const MAGIC: [u8; 8] = *b"\x82SNAPPY\x00";
const HEADER_LEN: usize = 16;
const VERSION: u32 = 1;
/// Block size of snappy-java, which Kafka's Java clients leave at its default.
const CHUNK_LEN: usize = 32 << 10;
/// A copy of 64 bytes takes 3: no block can expand more than this.
const MAX_EXPANSION: usize = 64;

pub(super) fn compress(input: &[u8], out: &mut BytesMut) -> Result<(), CompressionError> {
    out.put_slice(&MAGIC);
    out.put_u32(VERSION);
    out.put_u32(VERSION);
    let mut encoder = Encoder::new();
    for chunk in input.chunks(CHUNK_LEN) {
        let length_at = out.len();
        out.put_u32(0);
        let block_at = out.len();
        out.resize(block_at + max_compress_len(chunk.len()), 0);
        let written = encoder.compress(chunk, &mut out[block_at..]).map_err(malformed)?;
        out.truncate(block_at + written);
        out[length_at..block_at].copy_from_slice(&(written as u32).to_be_bytes());
    }
    Ok(())
}

pub(super) fn decompress(input: &[u8], limit: usize) -> Result<Vec<u8>, CompressionError> {
    let mut output = Vec::new();
    let mut decoder = Decoder::new();
    if !(input.len() >= HEADER_LEN && input.starts_with(&MAGIC)) {
        append_block(&mut decoder, input, &mut output, limit)?;
        return Ok(output);
    }
    let mut rest = &input[HEADER_LEN..];
    while !rest.is_empty() {
        // Streams put one after the other repeat the header.
        if rest.len() >= HEADER_LEN && rest.starts_with(&MAGIC) {
            rest = &rest[HEADER_LEN..];
            continue;
        }
        let (length, after) =
            rest.split_first_chunk::<4>().ok_or_else(|| malformed("the bytes end within a chunk length"))?;
        let length = u32::from_be_bytes(*length) as usize;
        let (block, after) = after
            .split_at_checked(length)
            .ok_or_else(|| malformed(format_args!("a chunk claims {length} bytes, {} are left", after.len())))?;
        append_block(&mut decoder, block, &mut output, limit)?;
        rest = after;
    }
    Ok(output)
}

fn append_block(
    decoder: &mut Decoder,
    block: &[u8],
    output: &mut Vec<u8>,
    limit: usize,
) -> Result<(), CompressionError> {
    let claimed = decompress_len(block).map_err(malformed)?;
    if claimed > block.len().saturating_mul(MAX_EXPANSION) {
        return Err(malformed(format_args!("a block of {} bytes claims to hold {claimed}", block.len())));
    }
    if claimed > limit - output.len() {
        return Err(CompressionError::TooLarge { codec: Compression::Snappy, limit });
    }
    let start = output.len();
    output.resize(start + claimed, 0);
    let written = decoder.decompress(block, &mut output[start..]).map_err(malformed)?;
    output.truncate(start + written);
    Ok(())
}

fn malformed(detail: impl std::fmt::Display) -> CompressionError {
    CompressionError::malformed(Compression::Snappy, detail)
}
