//! The kafka-protocol crate as an independent reader and writer of the same batches.

use kafka_protocol::indexmap::IndexMap;
use kafka_protocol::protocol::StrBytes;
use kafka_protocol::records as theirs;

use super::*;
use crate::compression::Compression;

/// Offsets without gaps, no duplicate header keys: kafka-protocol keeps headers in a map.
fn records() -> Vec<Owned> {
    (0..300)
        .map(|index| {
            let key = format!("key-{index}");
            let value = vec![b'v'; index as usize * 3];
            let record = Owned::new(index, 1_700_000_000_000 + index * 7, Some(key.as_bytes()), Some(&value));
            match index % 3 {
                0 => record,
                1 => record.header("trace", Some(b"abc")).header("none", None),
                _ => Owned { key: None, value: None, ..record },
            }
        })
        .collect()
}

fn to_theirs(record: &Owned) -> theirs::Record {
    let headers = record.headers.iter().map(|(key, value)| {
        let key = StrBytes::from_string(String::from_utf8(key.clone()).unwrap());
        (key, value.clone().map(Bytes::from))
    });
    theirs::Record {
        transactional: true,
        control: false,
        delete_horizon: false,
        partition_leader_epoch: 3,
        producer_id: 11,
        producer_epoch: 2,
        timestamp_type: theirs::TimestampType::Creation,
        offset: record.offset,
        sequence: 5 + record.offset as i32,
        timestamp: record.timestamp,
        key: record.key.clone().map(Bytes::from),
        value: record.value.clone().map(Bytes::from),
        headers: headers.collect::<IndexMap<_, _>>(),
    }
}

fn options(compression: Compression) -> BatchOptions {
    BatchOptions {
        compression,
        partition_leader_epoch: 3,
        producer_id: 11,
        producer_epoch: 2,
        base_sequence: 5,
        transactional: true,
        ..BatchOptions::default()
    }
}

const CODECS: [(Compression, theirs::Compression); 3] = [
    (Compression::None, theirs::Compression::None),
    (Compression::Gzip, theirs::Compression::Gzip),
    (Compression::Snappy, theirs::Compression::Snappy),
];

#[test]
fn kafka_protocol_reads_what_we_write() {
    for (codec, _) in CODECS {
        let mut batch = build(options(codec), &records()).freeze();
        let read = theirs::RecordBatchDecoder::decode(&mut batch).unwrap();
        let expected: Vec<_> = records().iter().map(to_theirs).collect();
        assert_eq!(read.records, expected, "{codec}");
    }
}

#[test]
fn we_read_what_kafka_protocol_writes() {
    for (codec, compression) in CODECS {
        let theirs: Vec<_> = records().iter().map(to_theirs).collect();
        let mut batch = BytesMut::new();
        let encode = theirs::RecordEncodeOptions { version: 2, compression };
        theirs::RecordBatchEncoder::encode(&mut batch, &theirs, &encode).unwrap();
        assert_eq!(decode(&batch).unwrap(), records(), "{codec}");
        let view = RecordBatchView::parse(&batch).unwrap();
        assert_eq!((view.producer_id, view.base_sequence), (11, 5));
        assert_eq!(view.compression(), Ok(codec));
    }
}

#[test]
fn uncompressed_batches_are_byte_equal() {
    let theirs: Vec<_> = records().iter().map(to_theirs).collect();
    let mut expected = BytesMut::new();
    let encode = theirs::RecordEncodeOptions { version: 2, compression: theirs::Compression::None };
    theirs::RecordBatchEncoder::encode(&mut expected, &theirs, &encode).unwrap();
    assert_eq!(build(options(Compression::None), &records()), expected);
}
