//! Properties: what is written is read, whatever is read never panics.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use super::*;
use crate::compression::Compression;

fn bytes(max: usize) -> impl Strategy<Value = Vec<u8>> {
    vec(any::<u8>(), 0..max)
}

prop_compose! {
    fn any_record()(
        gap in 1_i64..200,
        timestamp: i64,
        near in any::<bool>(),
        key in option::of(bytes(40)),
        value in option::of(bytes(300)),
        headers in vec((bytes(12), option::of(bytes(30))), 0..4),
    ) -> Owned {
        let timestamp = if near { 1_700_000_000_000 + timestamp % 100_000 } else { timestamp };
        Owned { offset: gap, timestamp, key, value, headers }
    }
}

prop_compose! {
    fn any_records()(mut records in vec(any_record(), 0..40), base in 0_i64..1_000_000) -> (i64, Vec<Owned>) {
        let mut offset = base - 1;
        for record in &mut records {
            offset += record.offset;
            record.offset = offset;
        }
        (base, records)
    }
}

fn any_codec() -> impl Strategy<Value = Compression> {
    (0..Compression::ALL.len()).prop_map(|index| Compression::ALL[index])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn batches_round_trip((base_offset, records) in any_records(), compression in any_codec()) {
        let options = BatchOptions { base_offset, compression, ..BatchOptions::default() };
        let batch = build(options, &records);
        prop_assert_eq!(decode(&batch).unwrap(), records);
    }

    #[test]
    fn positions_lead_back_to_the_records((base_offset, records) in any_records(), compression in any_codec()) {
        let options = BatchOptions { base_offset, compression, ..BatchOptions::default() };
        let batch = RecordBatch::parse(&build(options, &records).freeze()).unwrap();
        let decoded = batch.decode(DEFAULT_DECOMPRESSED_LIMIT).unwrap();
        for record in &decoded {
            let record = record.unwrap();
            prop_assert_eq!(decoded.record_at(record.position), Ok(record));
            if let Some(value) = record.value {
                prop_assert_eq!(decoded.share(value), value);
            }
        }
    }

    #[test]
    fn cut_anywhere_is_an_error((base_offset, records) in any_records(), compression in any_codec(), part in 0.0..1.0_f64) {
        let options = BatchOptions { base_offset, compression, ..BatchOptions::default() };
        let batch = build(options, &records);
        let cut = (batch.len() as f64 * part) as usize;
        prop_assert!(
            matches!(decode(&batch[..cut]), Err(RecordError::BatchIncomplete { .. })),
            "cut at {}", cut
        );
    }

    #[test]
    fn any_payload_is_read_without_panic(payload in bytes(400), count: i32, few in 0_i32..20, attributes in 0_i16..128) {
        for count in [count, few] {
            let mut batch = around(&payload, count);
            forge(&mut batch, header::ATTRIBUTES_AT, &attributes.to_be_bytes());
            let whole = decode(&batch);
            if let Ok(records) = whole {
                prop_assert_eq!(records.len(), usize::try_from(count).unwrap());
            }
            let decoded = RecordBatch::parse(&Bytes::from(batch)).unwrap().decode(1 << 20);
            if let Ok(decoded) = decoded {
                for position in 0..payload.len() as u32 + 2 {
                    let _ = decoded.record_at(position);
                }
            }
        }
    }

    #[test]
    fn a_flipped_byte_is_found((base_offset, records) in any_records(), part in 0.0..1.0_f64, bit in 0_u8..8) {
        let mut batch = build(BatchOptions { base_offset, ..BatchOptions::default() }, &records);
        let covered = batch.len() - header::CRC_AT;
        let at = header::CRC_AT + (covered as f64 * part) as usize;
        batch[at] ^= 1 << bit;
        let mismatch = matches!(decode(&batch), Err(RecordError::CrcMismatch { .. }));
        prop_assert!(mismatch);
    }
}

#[test]
fn payload_cut_at_every_byte_is_an_error() {
    let batch = build(BatchOptions::default(), &plain());
    let payload = &batch[BATCH_HEADER_LEN..];
    for cut in 0..payload.len() {
        assert!(decode(&around(&payload[..cut], 3)).is_err(), "cut at {cut}");
    }
}
