//! Record batches that cross the language border: the Java client reads ours, we read its, for every codec.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use bytes::{Bytes, BytesMut};
use kafka_share_tests::java::{JavaProject, available};
use kafka_share_wire::compression::{Compression, DEFAULT_DECOMPRESSED_LIMIT};
use kafka_share_wire::records::{
    BatchBuilder, BatchIter, BatchOptions, DecodedBatch, EndTxnMarker, RecordBatch, TimestampType, patch,
};

const MARKER_TIMESTAMP: i64 = 1_700_000_000_000;

/// The text that the Java program writes about a file.
fn describe(file: &Path) -> String {
    let mut out = String::new();
    for batch in BatchIter::new(fs::read(file).unwrap().into()) {
        let batch = batch.unwrap();
        batch.verify_crc().unwrap();
        let time = match batch.timestamp_type() {
            TimestampType::CreateTime => "CreateTime",
            TimestampType::LogAppendTime => "LogAppendTime",
        };
        writeln!(
            out,
            "batch {} {} epoch {} producer {} {} {} {} time {time} {} transactional {} control {}",
            batch.base_offset,
            batch.last_offset(),
            batch.partition_leader_epoch,
            batch.producer_id,
            batch.producer_epoch,
            batch.base_sequence,
            batch.compression().unwrap(),
            batch.max_timestamp,
            batch.is_transactional(),
            batch.is_control(),
        )
        .unwrap();
        for record in &decoded(&batch) {
            let record = record.unwrap();
            write!(out, "{} {} {} {}", record.offset, record.timestamp, hex(record.key), hex(record.value)).unwrap();
            for header in record.headers {
                write!(out, " {}={}", header.key_str().unwrap(), hex(header.value)).unwrap();
            }
            out.push('\n');
        }
    }
    out
}

fn hex(field: Option<&[u8]>) -> String {
    let Some(field) = field else { return "null".to_owned() };
    let digits: String = field.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("[{digits}]")
}

fn decoded(batch: &RecordBatch) -> DecodedBatch {
    batch.decode(DEFAULT_DECOMPRESSED_LIMIT).unwrap()
}

fn only_batch(file: &Path) -> RecordBatch {
    let bytes = Bytes::from(fs::read(file).unwrap());
    let batch = RecordBatch::parse(&bytes).unwrap();
    assert_eq!(batch.size(), bytes.len());
    batch
}

/// The records of a batch, written again by us.
fn rewrite(source: &RecordBatch, compression: Compression) -> BytesMut {
    let options = BatchOptions {
        compression,
        base_offset: source.base_offset,
        partition_leader_epoch: source.partition_leader_epoch,
        producer_id: source.producer_id,
        producer_epoch: source.producer_epoch,
        base_sequence: source.base_sequence,
        transactional: source.is_transactional(),
        control: source.is_control(),
        ..BatchOptions::default()
    };
    let mut builder = BatchBuilder::new(options);
    for record in &decoded(source) {
        let record = record.unwrap();
        builder.append(record.timestamp, record.key, record.value, record.headers).unwrap();
    }
    builder.finish().unwrap()
}

fn assert_same_lines(ours: &str, java: &str, what: &str) {
    for (number, (ours, java)) in ours.lines().zip(java.lines()).enumerate() {
        assert_eq!(ours, java, "{what}, line {number}");
    }
    assert_eq!(ours.lines().count(), java.lines().count(), "{what}");
}

#[test]
fn java_records() {
    if !available("java_records") {
        return;
    }
    let java = JavaProject::build("records");
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    java.run("records.Main", [dir]);

    let source = only_batch(&dir.join("java-none.bin"));
    assert_eq!(source.record_count, 3_000);
    let expected = describe(&dir.join("java-none.bin"));
    let records = |text: &str| text.lines().skip(1).map(str::to_owned).collect::<Vec<_>>();
    for name in ["none", "gzip", "snappy", "lz4", "zstd", "gzip-level-1", "lz4-level-17", "zstd-level-22"] {
        let file = dir.join(format!("java-{name}.bin"));
        let ours = describe(&file);
        assert_same_lines(&ours, &fs::read_to_string(file.with_extension("txt")).unwrap(), name);
        assert_eq!(records(&ours), records(&expected), "{name}");
    }
    assert_eq!(&rewrite(&source, Compression::None)[..], source.as_bytes(), "byte-equal with Java");
    for commit in [true, false] {
        let marker = EndTxnMarker { commit, coordinator_epoch: 31, producer_id: 4_000, producer_epoch: 2 };
        let ours = marker.write(50, 7, MARKER_TIMESTAMP, BytesMut::new()).unwrap();
        let name = if commit { "java-commit.bin" } else { "java-abort.bin" };
        assert_eq!(ours, fs::read(dir.join(name)).unwrap(), "{name}");
    }
    java_reads_ours(&java, &source);
}

fn java_reads_ours(java: &JavaProject, source: &RecordBatch) {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    for codec in Compression::ALL {
        let mut batch = rewrite(source, codec);
        fs::write(dir.join(format!("ours-{codec}.bin")), &batch).unwrap();
        patch::set_base_offset(&mut batch, 77_000).unwrap();
        patch::set_partition_leader_epoch(&mut batch, 8).unwrap();
        patch::set_producer(&mut batch, 4_001, 0, 0).unwrap();
        patch::set_log_append_time(&mut batch, 1_800_000_000_000).unwrap();
        fs::write(dir.join(format!("patched-{codec}.bin")), &batch).unwrap();
    }
    java.run("records.Main", [dir]);
    for codec in Compression::ALL {
        for kind in ["ours", "patched"] {
            let file = dir.join(format!("{kind}-{codec}.bin"));
            let seen = fs::read_to_string(file.with_extension("txt")).unwrap();
            assert_eq!(seen.lines().count(), 3_001);
            assert_same_lines(&describe(&file), &seen, &format!("{kind} {codec}"));
        }
    }
}
