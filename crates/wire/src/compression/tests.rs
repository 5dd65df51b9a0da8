//! Field reports on codecs, round trips, and hostile input.

use std::io::Write;

use bytes::{BufMut, BytesMut};
use proptest::prelude::*;
use structured_zstd::encoding::{CompressionLevel, StreamingEncoder};

use super::*;

fn packed(codec: Compression, level: Option<i32>, input: &[u8]) -> BytesMut {
    let mut out = BytesMut::new();
    compress(codec, level, input, &mut out).unwrap();
    out
}

fn raw_snappy(input: &[u8]) -> Vec<u8> {
    snap::raw::Encoder::new().compress_vec(input).unwrap()
}

/// The xerial framing, with any version bytes.
fn xerial(version: [u8; 4], chunks: &[&[u8]]) -> Vec<u8> {
    let mut framed = b"\x82SNAPPY\x00".to_vec();
    framed.extend_from_slice(&version);
    framed.extend_from_slice(&version);
    for chunk in chunks {
        let block = raw_snappy(chunk);
        framed.put_u32(block.len() as u32);
        framed.extend_from_slice(&block);
    }
    framed
}

fn snappy(input: &[u8]) -> Vec<u8> {
    decompress(Compression::Snappy, input, 1 << 20).unwrap().into()
}

#[test]
fn r124_snappy_raw_and_framed() {
    let text = b"snappy without a frame, as some clients write it, twice: snappy without a frame";
    assert_eq!(snappy(&raw_snappy(text)), text);
    let short = raw_snappy(b"tiny");
    assert!(short.len() < 16);
    assert_eq!(snappy(&short), b"tiny");
    assert_eq!(snappy(&raw_snappy(b"")), b"");
    assert_eq!(snappy(&xerial([0, 0, 0, 1], &[text])), text);
    let chunks: [&[u8]; 3] = [b"one ", b"two ", b"three"];
    assert_eq!(snappy(&xerial([0, 0, 0, 1], &chunks)), b"one two three");
    assert_eq!(snappy(&xerial([0, 0, 0, 1], &[])), b"");
    // Our own writer cuts at 32 KiB.
    let long = vec![7; 100_000];
    let framed = packed(Compression::Snappy, None, &long);
    assert_eq!(&framed[..16], b"\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01");
    assert_eq!(snappy(&framed), long);
}

#[test]
fn r125_snappy_frame_with_little_endian_versions() {
    assert_eq!(snappy(&xerial([1, 0, 0, 0], &[b"abc", b"def"])), b"abcdef");
}

#[test]
fn snappy_streams_in_a_row() {
    let twice = [xerial([0, 0, 0, 1], &[b"abc"]), xerial([0, 0, 0, 1], &[b"def"])].concat();
    assert_eq!(snappy(&twice), b"abcdef");
}

#[test]
fn snappy_chunks_that_lie_are_refused() {
    let good = xerial([0, 0, 0, 1], &[b"abc"]);
    for length in [u32::MAX, 0x7fff_ffff, 1_000, 0] {
        let mut bad = good.clone();
        bad[16..20].copy_from_slice(&length.to_be_bytes());
        let error = decompress(Compression::Snappy, &bad, 1 << 20).unwrap_err();
        assert!(matches!(error, CompressionError::Malformed { .. }), "{length}");
    }
    // A block of three bytes that claims 4 GiB.
    let error = decompress(Compression::Snappy, &[0xff, 0xff, 0xff, 0xff, 0x0f, 0, 0], usize::MAX);
    assert!(matches!(error, Err(CompressionError::Malformed { .. })));
}

#[test]
fn r127_lz4_header_checksum_over_the_magic_is_refused() {
    let good = packed(Compression::Lz4, None, b"lz4 as old brokers wrote it");
    // Magic, flags 0x60 (version 1, independent blocks), block size 4 (64 KiB), checksum.
    assert_eq!(good[..6], [0x04, 0x22, 0x4d, 0x18, 0x60, 0x40]);
    let mut bad = good.clone();
    // What a checksum over magic and descriptor gives: anything but the right byte is refused.
    bad[6] = bad[6].wrapping_add(1);
    let error = decompress(Compression::Lz4, &bad, 1 << 20).unwrap_err();
    assert!(matches!(error, CompressionError::Malformed { .. }));
    assert_eq!(decompress(Compression::Lz4, &good, 1 << 20).unwrap(), &b"lz4 as old brokers wrote it"[..]);
}

#[test]
fn r128_zstd_streamed_frames() {
    let text = b"a frame whose size was not known when its header was written ".repeat(4_000);
    let mut encoder = StreamingEncoder::new(Vec::new(), CompressionLevel::from_level(3));
    for part in text.chunks(1_000) {
        encoder.write_all(part).unwrap();
    }
    let streamed = encoder.finish().unwrap();
    // Frame header descriptor: no single segment and no content size.
    assert_eq!(streamed[4] & 0xe0, 0);
    let unpack = |bytes: &[u8]| decompress(Compression::Zstd, bytes, 1 << 20).unwrap();
    assert_eq!(unpack(&streamed), text);

    let sized = packed(Compression::Zstd, None, b"and one with its size");
    let two = [&streamed[..], &sized[..]].concat();
    assert_eq!(unpack(&two), [&text[..], b"and one with its size"].concat());

    // Single segment with a content size of 0, and an empty last block.
    let empty = [0x28, 0xb5, 0x2f, 0xfd, 0x20, 0x00, 0x01, 0x00, 0x00];
    assert_eq!(unpack(&empty), &b""[..]);
    assert_eq!(unpack(&[&empty[..], &sized[..]].concat()), &b"and one with its size"[..]);
}

#[test]
fn frames_in_a_row_decode_as_one() {
    for codec in [Compression::Gzip, Compression::Snappy, Compression::Lz4, Compression::Zstd] {
        let two = [packed(codec, None, b"first "), packed(codec, None, b"second")].concat();
        assert_eq!(decompress(codec, &two, 12).unwrap(), &b"first second"[..], "{codec}");
        let over = decompress(codec, &two, 11);
        assert_eq!(over, Err(CompressionError::TooLarge { codec, limit: 11 }));
    }
}

#[test]
fn the_limit_is_exact() {
    let input: Vec<u8> = (0..70_000_u32).flat_map(u32::to_le_bytes).collect();
    for codec in Compression::ALL {
        let bytes = packed(codec, None, &input);
        assert_eq!(decompress(codec, &bytes, input.len()).unwrap(), input, "{codec}");
        for limit in [0, 1, 65_536, input.len() - 1] {
            let over = decompress(codec, &bytes, limit);
            assert_eq!(over, Err(CompressionError::TooLarge { codec, limit }));
        }
    }
}

#[test]
fn levels_are_checked_and_work() {
    let input = b"level ".repeat(2_000);
    for (codec, levels) in
        [(Compression::Gzip, [1, 6, 9]), (Compression::Lz4, [1, 9, 17]), (Compression::Zstd, [-5, 3, 19])]
    {
        for level in levels {
            let bytes = packed(codec, Some(level), &input);
            assert_eq!(decompress(codec, &bytes, 1 << 20).unwrap(), input);
        }
    }
    let mut out = BytesMut::new();
    for (codec, level) in [(Compression::Gzip, 0), (Compression::Lz4, 18), (Compression::Zstd, 23)] {
        let error = compress(codec, Some(level), b"", &mut out).unwrap_err();
        assert!(matches!(error, CompressionError::InvalidLevel { .. }), "{codec}");
    }
}

#[test]
fn names_and_ids() {
    for codec in Compression::ALL {
        assert_eq!(Compression::from_id(codec.id()), Some(codec));
        assert_eq!(codec.name().parse(), Ok(codec));
    }
    assert_eq!(Compression::from_id(5), None);
    assert!("brotli".parse::<Compression>().is_err());
}

fn any_codec() -> impl Strategy<Value = Compression> {
    (1..Compression::ALL.len()).prop_map(|index| Compression::ALL[index])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn compressed_bytes_come_back(codec in any_codec(), piece in prop::collection::vec(0_u8..20, 0..3_000), times in 0_usize..60) {
        let input = piece.repeat(times);
        let mut out = BytesMut::from(&b"before"[..]);
        compress(codec, None, &input, &mut out).unwrap();
        prop_assert_eq!(&out[..6], b"before");
        prop_assert_eq!(decompress(codec, &out[6..], input.len()).unwrap(), input);
    }

    #[test]
    fn damaged_bytes_are_no_panic(codec in any_codec(), piece in prop::collection::vec(0_u8..9, 1..600), damage in prop::collection::vec((0.0..1.0_f64, any::<u8>()), 1..5), cut in 0.0..1.0_f64) {
        let mut bytes = packed(codec, None, &piece.repeat(3));
        for (part, value) in damage {
            let at = (bytes.len() as f64 * part) as usize;
            bytes[at] = value;
        }
        let _ = decompress(codec, &bytes, 1 << 20);
        bytes.truncate((bytes.len() as f64 * cut) as usize);
        let _ = decompress(codec, &bytes, 1 << 20);
    }

    #[test]
    fn garbage_is_no_panic(codec in any_codec(), bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = decompress(codec, &bytes, 1 << 20);
    }
}
