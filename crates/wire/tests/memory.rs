//! Memory taken on a peer's word: decompression bombs, false counts, and iteration without
//! allocation.

use std::io::Write;

use allocation_counter::{AllocationInfo, measure};
use bytes::{Bytes, BytesMut};
use flate2::write::GzEncoder;
use kafka_share_wire::compression::{Compression, CompressionError, compress, decompress};
use kafka_share_wire::records::{BATCH_HEADER_LEN, BatchBuilder, BatchOptions, Header, RecordBatch, RecordBatchView};

const LIMIT: usize = 4 << 20;
/// What the bombs would give, if nothing stopped them.
const EXPANDED: usize = 8 << 30;
/// The limit, once more for growing the buffer, and the widest window of the bombs.
const PEAK: u64 = 3 * LIMIT as u64 + (1 << 20);

fn expect_stop(name: &str, codec: Compression, bomb: &[u8]) -> AllocationInfo {
    let mut result = None;
    let info = measure(|| result = Some(decompress(codec, bomb, LIMIT)));
    let expected = CompressionError::TooLarge { codec, limit: LIMIT };
    assert_eq!(result, Some(Err(expected)), "{name}");
    assert!(info.bytes_max < PEAK, "{name}: peak of {} bytes under a limit of {LIMIT}", info.bytes_max);
    info
}

#[test]
fn r130_gzip_bomb() {
    // Members in a row, each of 16 MiB; a prefix of them is enough to pass any limit.
    let mut member = GzEncoder::new(Vec::new(), flate2::Compression::best());
    let zeros = vec![0; 1 << 20];
    for _ in 0..16 {
        member.write_all(&zeros).unwrap();
    }
    let member = member.finish().unwrap();
    let bomb = member.repeat(EXPANDED / (16 << 20));
    expect_stop("gzip", Compression::Gzip, &bomb);
}

#[test]
fn r130_snappy_bombs() {
    let block = snap::raw::Encoder::new().compress_vec(&vec![0; 1 << 20]).unwrap();
    // One raw block that claims, and holds, more than the limit.
    let large = snap::raw::Encoder::new().compress_vec(&vec![0; 2 * LIMIT]).unwrap();
    expect_stop("raw", Compression::Snappy, &large);
    let mut framed = b"\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01".to_vec();
    for _ in 0..64 {
        framed.extend_from_slice(&(block.len() as u32).to_be_bytes());
        framed.extend_from_slice(&block);
    }
    expect_stop("chunks", Compression::Snappy, &framed);
    // A claim of 4 GiB in front of nothing must not be allocated, whatever the limit.
    let info = measure(|| {
        let claim = [0xff, 0xff, 0xff, 0xff, 0x0f, 0, 0];
        assert!(decompress(Compression::Snappy, &claim, usize::MAX).is_err());
    });
    assert!(info.bytes_max < 4096);
}

#[test]
fn r130_lz4_bomb() {
    let mut frame = BytesMut::new();
    compress(Compression::Lz4, None, &vec![0; 16 << 20], &mut frame).unwrap();
    let bomb = frame.repeat(64);
    expect_stop("lz4", Compression::Lz4, &bomb);
}

#[test]
fn r130_zstd_bombs() {
    let frame = |header: &[u8]| {
        let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd];
        frame.extend_from_slice(header);
        // RLE blocks: four bytes that stand for 128 KiB.
        let blocks = EXPANDED / (128 << 10);
        for index in 1..=blocks {
            let block = (128_u32 << 10) << 3 | 1 << 1 | u32::from(index == blocks);
            frame.extend_from_slice(&block.to_le_bytes()[..3]);
            frame.push(0);
        }
        frame
    };
    // Window of 1 MiB, no content size.
    expect_stop("no size", Compression::Zstd, &frame(&[0x00, 10 << 3]));
    // Window of 1 MiB, content size of 8 bytes: 2^62.
    let mut header = vec![0xc0, 10 << 3];
    header.extend_from_slice(&(1_u64 << 62).to_le_bytes());
    expect_stop("huge size", Compression::Zstd, &frame(&header));
}

#[test]
fn r130_zstd_window_claims_are_not_allocated_up_front() {
    // Window of 128 MiB in front of one raw byte.
    let frame = [0x28, 0xb5, 0x2f, 0xfd, 0x00, 17 << 3, 0x09, 0x00, 0x00, 42];
    let mut result = None;
    let info = measure(|| result = Some(decompress(Compression::Zstd, &frame, LIMIT)));
    assert_eq!(result, Some(Ok(Bytes::from_static(&[42]))));
    assert!(info.bytes_max < PEAK, "peak of {} bytes", info.bytes_max);
    // A window beyond what the reference decoder accepts is refused.
    let frame = [0x28, 0xb5, 0x2f, 0xfd, 0x00, 30 << 3, 0x09, 0x00, 0x00, 42];
    assert!(decompress(Compression::Zstd, &frame, LIMIT).is_err());
}

fn batch(compression: Compression) -> Bytes {
    let mut builder = BatchBuilder::new(BatchOptions { compression, ..BatchOptions::default() });
    for index in 0..2_000_i64 {
        let key = index.to_be_bytes();
        let headers = [Header::new("h", Some(b"1")), Header::new("h", None)];
        let headers = headers.into_iter().take(index as usize % 3);
        builder.append(index, Some(&key), Some(&[9; 100]), headers).unwrap();
    }
    builder.finish().unwrap().freeze()
}

#[test]
fn iteration_allocates_nothing() {
    for codec in Compression::ALL {
        let batch = RecordBatch::parse(&batch(codec)).unwrap();
        let decoded = batch.decode(1 << 20).unwrap();
        let mut bytes = 0;
        let info = measure(|| {
            for record in &decoded {
                let record = record.unwrap();
                bytes += record.value.map_or(0, <[u8]>::len);
                bytes += record.headers.map(|header| header.key.len()).sum::<usize>();
                assert_eq!(decoded.record_at(record.position), Ok(record));
            }
        });
        assert_eq!(bytes, 201_999);
        assert_eq!(info.count_total, 0, "{codec}");
    }
    let bytes = batch(Compression::None);
    let info = measure(|| {
        let batch = RecordBatch::parse(&bytes).unwrap();
        batch.verify_crc().unwrap();
        let decoded = batch.decode(0).unwrap();
        assert_eq!(decoded.clone().iter().count(), 2_000);
    });
    // An uncompressed batch shares its frame: one shared header of the frame at most.
    assert!(info.count_total <= 1, "{} allocations", info.count_total);
}

#[test]
fn r112_false_counts_allocate_nothing() {
    let mut bytes = batch(Compression::None).to_vec();
    bytes[57..BATCH_HEADER_LEN].copy_from_slice(&i32::MAX.to_be_bytes());
    let info = measure(|| {
        let view = RecordBatchView::parse(&bytes).unwrap();
        assert!(view.records().is_err());
    });
    assert_eq!(info.count_total, 0);
}

#[test]
fn appending_into_reserved_room_allocates_nothing() {
    let buffer = BytesMut::with_capacity(1 << 20);
    let mut builder = BatchBuilder::with_buffer(BatchOptions::default(), buffer);
    let info = measure(|| {
        for index in 0..5_000 {
            builder.append(index, Some(b"key"), Some(&[1; 100]), []).unwrap();
        }
    });
    assert_eq!(info.count_total, 0);
    assert_eq!(builder.record_count(), 5_000);
}
