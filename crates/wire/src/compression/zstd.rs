//! Zstandard: frames with or without a content size, one or several in a row.

use bytes::BytesMut;
use structured_zstd::decoding::{FrameDecoder, StreamingDecoder};
use structured_zstd::encoding::{CompressionLevel, compress_slice_to_vec};

use super::{Compression, CompressionError, first_capacity, read_capped};

pub(super) const MIN_LEVEL: i32 = -131_072;
pub(super) const MAX_LEVEL: i32 = 22;
const DEFAULT_LEVEL: i32 = 3;
/// Widest window of a standard level (22), and what the reference decoder accepts by default.
const MAX_WINDOW: u64 = 128 << 20;

pub(super) fn compress(level: Option<i32>, input: &[u8], out: &mut BytesMut) {
    let level = CompressionLevel::from_level(level.unwrap_or(DEFAULT_LEVEL));
    out.extend_from_slice(&compress_slice_to_vec(input, level));
}

pub(super) fn decompress(input: &[u8], limit: usize) -> Result<Vec<u8>, CompressionError> {
    let mut frames = FrameDecoder::new();
    frames.set_max_window_size(MAX_WINDOW).map_err(|error| CompressionError::malformed(Compression::Zstd, error))?;
    let mut decoder = StreamingDecoder::new_with_decoder(input, frames);
    let mut output = Vec::with_capacity(first_capacity(input, limit));
    read_capped(Compression::Zstd, &mut decoder, &mut output, limit)?;
    Ok(output)
}
