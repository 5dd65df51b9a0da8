//! gzip, one or several members in a row.

use std::io::Write;

use bytes::{BufMut, BytesMut};
use flate2::bufread::MultiGzDecoder;
use flate2::write::GzEncoder;

use super::{Compression, CompressionError, first_capacity, read_capped};

pub(super) const MIN_LEVEL: i32 = 1;
pub(super) const MAX_LEVEL: i32 = 9;
const DEFAULT_LEVEL: u32 = 6;

pub(super) fn compress(level: Option<i32>, input: &[u8], out: &mut BytesMut) -> Result<(), CompressionError> {
    let level = level.map_or(DEFAULT_LEVEL, i32::unsigned_abs);
    let mut encoder = GzEncoder::new(out.writer(), flate2::Compression::new(level));
    encoder
        .write_all(input)
        .and_then(|()| encoder.try_finish())
        .map_err(|error| CompressionError::malformed(Compression::Gzip, error))
}

pub(super) fn decompress(input: &[u8], limit: usize) -> Result<Vec<u8>, CompressionError> {
    let mut output = Vec::with_capacity(first_capacity(input, limit));
    let mut decoder = MultiGzDecoder::new(input);
    read_capped(Compression::Gzip, &mut decoder, &mut output, limit)?;
    Ok(output)
}
