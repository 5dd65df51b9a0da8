//! LZ4 frames with independent blocks of 64 KiB and a correct header checksum (KIP-57).

use std::io::Write;

use bytes::{BufMut, BytesMut};
use lz4_flex::frame::{BlockMode, BlockSize, FrameDecoder, FrameEncoder, FrameInfo};

use super::{Compression, CompressionError, first_capacity, read_capped};

pub(super) const MIN_LEVEL: i32 = 1;
pub(super) const MAX_LEVEL: i32 = 17;

pub(super) fn compress(input: &[u8], out: &mut BytesMut) -> Result<(), CompressionError> {
    let info = FrameInfo::new().block_size(BlockSize::Max64KB).block_mode(BlockMode::Independent);
    let mut encoder = FrameEncoder::with_frame_info(info, out.writer());
    encoder.write_all(input).map_err(|error| CompressionError::malformed(Compression::Lz4, error))?;
    encoder.finish().map_err(|error| CompressionError::malformed(Compression::Lz4, error))?;
    Ok(())
}

pub(super) fn decompress(input: &[u8], limit: usize) -> Result<Vec<u8>, CompressionError> {
    let mut output = Vec::with_capacity(first_capacity(input, limit));
    let mut decoder = FrameDecoder::new(input);
    // The decoder stops at each frame's end mark; what follows is a frame of its own.
    loop {
        let before = decoder.get_ref().len();
        read_capped(Compression::Lz4, &mut decoder, &mut output, limit)?;
        let left = decoder.get_ref().len();
        if left == 0 {
            return Ok(output);
        }
        if left == before {
            return Err(CompressionError::malformed(
                Compression::Lz4,
                format_args!("{left} bytes after the last frame are no frame"),
            ));
        }
    }
}
