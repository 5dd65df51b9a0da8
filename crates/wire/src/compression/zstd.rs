//! Zstandard: frames with or without a content size, one or several in a row.

use bytes::BytesMut;
use structured_zstd::decoding::errors::FrameDecoderError;
use structured_zstd::decoding::{FrameDecoder, FrameSizeError, find_frame_compressed_size, frame_decompressed_bound};
use structured_zstd::encoding::{CompressionLevel, compress_slice_to_vec};

use super::{Compression, CompressionError};

pub(super) const MIN_LEVEL: i32 = -131_072;
pub(super) const MAX_LEVEL: i32 = 22;
const DEFAULT_LEVEL: i32 = 3;
/// Widest window of a standard level (22), and what the reference decoder accepts by default.
const MAX_WINDOW: u64 = 128 << 20;

pub(super) fn compress(level: Option<i32>, input: &[u8], out: &mut BytesMut) {
    let level = CompressionLevel::from_level(level.unwrap_or(DEFAULT_LEVEL));
    out.extend_from_slice(&compress_slice_to_vec(input, level));
}

/// Decodes straight into the output: the codec then needs no window buffer, whose size a peer could
/// claim at will.
pub(super) fn decompress(input: &[u8], limit: usize) -> Result<Vec<u8>, CompressionError> {
    let mut decoder = FrameDecoder::new();
    decoder.set_max_window_size(MAX_WINDOW).map_err(malformed)?;
    let mut output = vec![0; output_bound(input)?.min(limit as u64) as usize];
    match decoder.decode_all(input, &mut output) {
        Ok(written) => output.truncate(written),
        Err(FrameDecoderError::TargetTooSmall) if output.len() == limit => {
            return Err(CompressionError::TooLarge { codec: Compression::Zstd, limit });
        }
        Err(error) => return Err(malformed(error)),
    }
    if output.len() < output.capacity() / 2 {
        output.shrink_to_fit();
    }
    Ok(output)
}

/// Upper bound of the output, from frame and block headers alone.
fn output_bound(input: &[u8]) -> Result<u64, CompressionError> {
    let mut bound = 0_u64;
    let mut rest = input;
    while !rest.is_empty() {
        bound = bound.saturating_add(frame_decompressed_bound(rest).map_err(broken_frame)?);
        let size = find_frame_compressed_size(rest).map_err(broken_frame)?;
        // Both walk the same blocks: the frame is there, and is not empty.
        rest = &rest[size..];
    }
    Ok(bound)
}

fn broken_frame(error: FrameSizeError) -> CompressionError {
    malformed(format_args!("{error:?}"))
}

fn malformed(error: impl std::fmt::Display) -> CompressionError {
    CompressionError::malformed(Compression::Zstd, error)
}
