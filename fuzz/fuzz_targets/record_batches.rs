//! Record batches: bytes of a broker read, and arbitrary records written and read back.
#![no_main]

use arbitrary::Unstructured;
use bytes::Bytes;
use kafka_share_wire::compression::Compression;
use kafka_share_wire::records::{BatchBuilder, BatchIter, BatchOptions, Header};
use libfuzzer_sys::fuzz_target;

/// What a batch may expand to.
const LIMIT: usize = 1 << 16;

fuzz_target!(|data: &[u8]| {
    read(data);
    // The error of Unstructured is only its end.
    let _ = write(&mut Unstructured::new(data));
});

fn read(data: &[u8]) {
    let mut iter = BatchIter::new(Bytes::copy_from_slice(data));
    while let Some(batch) = iter.next() {
        let Ok(batch) = batch else { break };
        let _ = batch.verify_crc();
        let _ = batch.view().records().map(|records| records.take(1 << 12).count());
        let Ok(decoded) = batch.decode(LIMIT) else { continue };
        let plain = batch.compression().is_ok_and(|c| c == Compression::None);
        assert!(plain || decoded.payload().len() <= LIMIT);
        let mut last = None;
        for record in decoded.iter() {
            let Ok(record) = record else { break };
            assert!(last.is_none_or(|l| record.offset > l || record.offset.wrapping_sub(l) > 0));
            last = Some(record.offset);
            assert_eq!(decoded.record_at(record.position).expect("the same record"), record);
            assert_eq!(decoded.share(record.value.unwrap_or_default()), record.value.unwrap_or_default());
            assert_eq!(record.headers.count(), record.headers.len());
        }
        if decoded.is_control() {
            if let Ok(records) = decoded.control_records() {
                records.for_each(drop);
            }
        }
    }
    assert!(iter.position() <= data.len());
}

type Parts<'a> = (i64, Option<&'a [u8]>, Option<&'a [u8]>, Vec<(&'a str, Option<&'a [u8]>)>);

fn write(u: &mut Unstructured<'_>) -> arbitrary::Result<()> {
    let codecs = [Compression::None, Compression::Gzip, Compression::Snappy, Compression::Lz4, Compression::Zstd];
    let options = BatchOptions {
        compression: *u.choose(&codecs)?,
        base_offset: i64::from(u.arbitrary::<u32>()?),
        producer_id: u.arbitrary()?,
        producer_epoch: u.arbitrary()?,
        base_sequence: u.arbitrary()?,
        transactional: u.arbitrary()?,
        ..BatchOptions::default()
    };
    let records: Vec<Parts<'_>> = u.arbitrary_iter()?.take(64).collect::<Result<_, _>>()?;
    if records.is_empty() {
        return Ok(());
    }
    let mut builder = BatchBuilder::new(options);
    for (timestamp, key, value, headers) in &records {
        let headers = headers.iter().map(|(k, v)| Header::new(k, *v));
        builder.append(*timestamp, *key, *value, headers).expect("small records fit");
    }
    let bytes = builder.finish().expect("a batch").freeze();
    let batch = BatchIter::new(bytes).next().expect("a batch").expect("well framed");
    batch.verify_crc().expect("the checksum fits");
    let decoded = batch.decode(1 << 24).expect("it can be decoded");
    assert_eq!(decoded.iter().count(), records.len());
    for (record, (timestamp, key, value, headers)) in decoded.iter().zip(&records) {
        let record = record.expect("a record");
        assert_eq!((record.timestamp, record.key, record.value), (*timestamp, *key, *value));
        assert!(record.headers.eq(headers.iter().map(|(k, v)| Header::new(k, *v))));
    }
    Ok(())
}
