//! One test per field report on reading and writing records.

use super::*;

#[test]
fn r111_timestamp_deltas_have_64_bits() {
    let records = [
        Owned::new(0, 0, None, Some(b"a")),
        Owned::new(1, 1_700_000_000_000, None, Some(b"b")),
        Owned::new(2, -5, None, Some(b"c")),
        Owned::new(3, i64::MAX, None, Some(b"d")),
        Owned::new(4, i64::MIN, None, Some(b"e")),
    ];
    let batch = build(BatchOptions::default(), &records);
    assert_eq!(decode(&batch).unwrap(), records);
    assert_eq!(RecordBatchView::parse(&batch).unwrap().max_timestamp, i64::MAX);
}

#[test]
fn r113_batch_lengths_that_lie_are_errors_and_do_not_advance() {
    let good = build(BatchOptions::default(), &plain());
    let cases = [
        (i32::MIN, RecordError::NegativeBatchLength(i32::MIN)),
        (-1, RecordError::NegativeBatchLength(-1)),
        (0, RecordError::BatchLengthTooSmall(0)),
        (48, RecordError::BatchLengthTooSmall(48)),
        (i32::MAX, RecordError::BatchTooLarge(2_147_483_659)),
    ];
    for (length, expected) in cases {
        let mut bad = good.clone();
        bad[header::LENGTH_AT..header::LEADER_EPOCH_AT].copy_from_slice(&length.to_be_bytes());
        let buffer = [&good[..], &bad[..]].concat();
        let mut batches = BatchIter::new(buffer.into());
        assert!(batches.next().unwrap().is_ok());
        assert_eq!(batches.next(), Some(Err(expected)));
        assert_eq!(batches.position(), good.len());
        assert_eq!(batches.next(), None);
    }
}

#[test]
fn r113_records_claimed_without_bytes() {
    let five = around(b"", 5);
    assert_eq!(decode(&five), Err(RecordError::RecordCountExceedsBytes { count: 5, bytes: 0 }));
    assert_eq!(decode(&around(b"", 0)), Ok(vec![]));
}

#[test]
fn r115_r116_tail_cut_at_every_byte() {
    let first = build(BatchOptions::default(), &plain());
    let second = build(BatchOptions::default(), &plain());
    for cut in 0..second.len() {
        let buffer = [&first[..], &second[..cut]].concat();
        let mut batches = BatchIter::new(buffer.into());
        let whole = batches.next().unwrap().unwrap();
        assert_eq!(whole.as_bytes(), &first[..]);
        assert_eq!(batches.next(), None);
        assert_eq!(batches.next(), None);
        let tail = batches.truncated().map(|tail| (tail.position, tail.have));
        assert_eq!(tail, (cut > 0).then_some((first.len(), cut)));

        let mut alone = BatchIter::new(second.clone().freeze().slice(..cut));
        if cut > 0 {
            let error = alone.next().unwrap().unwrap_err();
            assert!(matches!(error, RecordError::BatchIncomplete { have, need }
                if have == cut && need > cut && need <= second.len()));
        }
        assert_eq!(alone.next(), None);
        assert_eq!(alone.truncated(), None);
    }
}

#[test]
fn r118_null_and_empty_stay_apart() {
    let choices = [None, Some(&b""[..]), Some(&b"x"[..])];
    let mut records = Vec::new();
    for key in choices {
        for value in choices {
            for header in choices {
                let offset = records.len() as i64;
                records.push(Owned::new(offset, 7, key, value).header("h", header));
            }
        }
    }
    assert_eq!(decode(&build(BatchOptions::default(), &records)).unwrap(), records);
}

#[test]
fn r119_duplicate_headers_keep_their_order() {
    let record = Owned::new(0, 7, None, None)
        .header("x", Some(b"1"))
        .header("x", Some(b"2"))
        .header("y", Some(b"3"))
        .header("x", Some(b"1"));
    let batch = build(BatchOptions::default(), std::slice::from_ref(&record));
    assert_eq!(decode(&batch).unwrap(), [record]);
    let view = RecordBatchView::parse(&batch).unwrap();
    let read = view.records().unwrap().next().unwrap().unwrap();
    assert_eq!(read.headers.len(), 4);
    assert_eq!(read.headers.last_with_key("y"), Some(Header::new("y", Some(b"3"))));
    assert_eq!(read.headers.last_with_key("z"), None);
}

#[test]
fn r121_log_append_time_is_the_batch_max_timestamp() {
    let options = BatchOptions { timestamp_type: TimestampType::LogAppendTime, ..BatchOptions::default() };
    let mut batch = build(options, &plain());
    forge(&mut batch, header::BASE_TIMESTAMP_AT, &(-1_i64).to_be_bytes());
    forge(&mut batch, header::MAX_TIMESTAMP_AT, &1_800_000_000_000_i64.to_be_bytes());
    let view = RecordBatchView::parse(&batch).unwrap();
    assert_eq!(view.timestamp_type(), TimestampType::LogAppendTime);
    let times: Vec<i64> = decode(&batch).unwrap().iter().map(|r| r.timestamp).collect();
    assert_eq!(times, [1_800_000_000_000; 3]);
}

#[test]
fn r127_message_formats_v0_and_v1_are_refused_by_name() {
    for magic in [0_u8, 1] {
        let mut batch = build(BatchOptions::default(), &plain());
        batch[header::MAGIC_AT] = magic;
        // Old messages may be shorter than a v2 header.
        batch[header::LENGTH_AT..header::LEADER_EPOCH_AT].copy_from_slice(&14_i32.to_be_bytes());
        batch.truncate(LOG_OVERHEAD + 14);
        let mut batches = BatchIter::new(batch.freeze());
        let error = batches.next().unwrap().unwrap_err();
        assert_eq!(error, RecordError::UnsupportedMagic(magic as i8));
        assert!(error.to_string().contains(&format!("format v{magic}")));
        assert_eq!(batches.next(), None);
    }
}

#[test]
fn r73_control_batch_with_two_markers() {
    let options = BatchOptions {
        control: true,
        transactional: true,
        producer_id: 9,
        producer_epoch: 3,
        ..BatchOptions::default()
    };
    let value = [0, 0, 0, 0, 0, 12];
    let records = [
        Owned::new(0, 7, Some(&[0, 0, 0, 0]), Some(&value)),
        Owned::new(1, 7, Some(&[0, 0, 0, 0]), Some(&value)),
        Owned::new(2, 7, Some(&[0, 0, 0, 99]), None),
    ];
    let batch = RecordBatch::parse(&build(options, &records).freeze()).unwrap();
    let decoded = batch.decode(1024).unwrap();
    let kinds: Vec<_> = decoded
        .control_records()
        .unwrap()
        .map(|record| record.map(|record| (record.kind, record.coordinator_epoch)))
        .collect();
    let abort = Ok((ControlRecordType::Abort, Some(12)));
    assert_eq!(kinds, [abort.clone(), abort, Ok((ControlRecordType::Unknown(99), None))]);
}
