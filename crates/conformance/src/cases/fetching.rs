//! What a ShareFetch answers: waiting, limits, versions, and the records themselves.

use super::{SHARE, SHARE_V2};
use crate::case::list;
use crate::expect::{Check, Stop, code, equal, fail, ok, that};
use crate::lab::{Lab, Member, Producer, Topic, acquired};
use kafka_share_messages::{ErrorCode, ShareFetchResponse};
use kafka_share_wire::compression::Compression;
use kafka_share_wire::records::{BatchIter, Header};
use std::time::{Duration, Instant};

list! {
    fetch_waits_and_ends_empty(932, SHARE) "SHARE-FETCH-07";
    produced_record_ends_the_wait(932, SHARE) "SHARE-FETCH-08";
    released_record_ends_the_wait(932, SHARE) "SHARE-FETCH-09";
    every_acquired_offset_has_its_record(932, SHARE) "SHARE-FETCH-10";
    acquired_ranges_ascend(932, SHARE) "SHARE-FETCH-11";
    batches_may_be_acquired_whole(1206, SHARE) "SHARE-FETCH-12";
    no_batch_beyond_the_limit(1206, SHARE) "SHARE-FETCH-13";
    small_max_bytes_does_not_stop_progress(932, SHARE) "SHARE-FETCH-14";
    unknown_partition_has_an_error(932, SHARE) "SHARE-FETCH-15";
    lock_time_is_the_groups(932, SHARE) "SHARE-FETCH-16";
    version_1_is_served(932, SHARE) "SHARE-FETCH-17";
    version_2_is_served(932, SHARE_V2) "SHARE-FETCH-17" => version_served(2);
    uncompressed_records_can_be_read(932, SHARE) "SHARE-FETCH-19" => compressed(Compression::None);
    gzip_records_can_be_read(932, SHARE) "SHARE-FETCH-19" => compressed(Compression::Gzip);
    snappy_records_can_be_read(932, SHARE) "SHARE-FETCH-19" => compressed(Compression::Snappy);
    lz4_records_can_be_read(932, SHARE) "SHARE-FETCH-19" => compressed(Compression::Lz4);
    zstd_records_can_be_read(932, SHARE) "SHARE-FETCH-19" => compressed(Compression::Zstd);
    record_is_answered_as_produced(932, SHARE) "SHARE-FETCH-20";
    quiet_partition_has_no_row(932, SHARE) "SHARE-FETCH-22";
    record_limit_counts_over_partitions(1206, SHARE_V2) "SHARE-FETCH-23";
    rest_of_a_batch_comes_next(1206, SHARE_V2) "SHARE-FETCH-24" => rest_comes(false);
    rest_of_a_batch_goes_to_another_member(1206, SHARE_V2) "SHARE-FETCH-24" => rest_comes(true);
    record_limit_of_one_is_kept(1206, SHARE_V2) "SHARE-FETCH-04" => limit_kept(1);
    record_limit_of_seven_is_kept(1206, SHARE_V2) "SHARE-FETCH-04" => limit_kept(7);
    record_limit_of_a_batch_is_kept(1206, SHARE_V2) "SHARE-FETCH-04" => limit_kept(20);
    negative_acquire_mode_is_refused(1206, SHARE_V2) "SHARE-FETCH-05";
}

async fn fetch_waits_and_ends_empty(lab: Lab) -> Check {
    let (topic, mut member) = lab.with_records(1).await?;
    member.acquire_exactly(&topic, 0..1, 1).await?;
    let mut request = member.fetch(&topic, &[0]);
    request.max_wait_ms = 700;
    let start = Instant::now();
    let response = member.send_fetch(&topic, &request).await?;
    ok("ShareFetch of nothing", response.error_code)?;
    equal("acquired", acquired(&response)?, vec![])?;
    let time = start.elapsed();
    that(time >= Duration::from_millis(600), || format!("answered after {time:?}, MaxWaitMs is 700"))
}

/// The member waits for a minute at most; something happens meanwhile, and it must be answered long before.
async fn woken(member: &mut Member, topic: &Topic, event: impl Future<Output = Check>) -> Check<ShareFetchResponse> {
    let mut request = member.fetch(topic, &[0]);
    request.max_wait_ms = 10_000;
    let start = Instant::now();
    let (response, done) = tokio::join!(member.send_fetch(topic, &request), async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        event.await
    });
    done?;
    let (response, time) = (response?, start.elapsed());
    ok("the waiting ShareFetch", response.error_code)?;
    that(time < Duration::from_secs(9), || format!("answered after {time:?} only"))?;
    Ok(response)
}

async fn produced_record_ends_the_wait(lab: Lab) -> Check {
    let (topic, mut member) = lab.with_records(1).await?;
    member.acquire_exactly(&topic, 0..1, 1).await?;
    let producer = Producer::plain(&lab).await?;
    let target = topic.clone();
    let response = woken(&mut member, &topic, async move { producer.produce(&target, 0, 1).await.map(drop) }).await?;
    equal("acquired", acquired(&response)?, vec![(1, 1)])
}

async fn released_record_ends_the_wait(lab: Lab) -> Check {
    let (topic, mut holder) = lab.with_records(1).await?;
    let mut member = lab.another(&holder, &topic).await?;
    holder.acquire_exactly(&topic, 0..1, 1).await?;
    member.acquire_nothing(&topic, "another member holds the record").await?;
    let target = topic.clone();
    let release = async move { holder.acknowledge_ok(&target, &[(0, 0, &[2])]).await.map(|()| holder) };
    let response = woken(&mut member, &topic, async { release.await.map(drop) }).await?;
    // Kafka 4.1 may answer a moment too early, with nothing; then the next fetch has the record.
    let mut got = acquired(&response)?;
    if got.is_empty() {
        got = member.acquire(&topic, 1).await?;
    }
    equal("acquired", got.iter().map(|(o, _)| *o).collect::<Vec<_>>(), vec![0])
}

/// Offsets of the records in an answer.
fn offsets(response: &ShareFetchResponse) -> Check<Vec<i64>> {
    let broken = |e: kafka_share_wire::records::RecordError| Stop::Failed(format!("records cannot be read: {e}"));
    let mut all = Vec::new();
    for row in response.responses.iter().flat_map(|t| &t.partitions) {
        for batch in BatchIter::new(row.records.clone().unwrap_or_default()) {
            let batch = batch.map_err(broken)?;
            batch.verify_crc().map_err(broken)?;
            for record in batch.decode(1 << 20).map_err(broken)?.iter() {
                all.push(record.map_err(broken)?.offset);
            }
        }
    }
    Ok(all)
}

async fn first_answer(member: &mut Member, topic: &Topic) -> Check<ShareFetchResponse> {
    for _ in 0..40 {
        let request = member.fetch(topic, &[0]);
        let response = member.send_fetch(topic, &request).await?;
        ok("ShareFetch", response.error_code)?;
        if !acquired(&response)?.is_empty() {
            return Ok(response);
        }
    }
    fail("nothing was acquired within 40 fetches")
}

async fn every_acquired_offset_has_its_record(lab: Lab) -> Check {
    let (topic, mut member) = lab.with_records(7).await?;
    let response = first_answer(&mut member, &topic).await?;
    let held = offsets(&response)?;
    for (offset, _) in acquired(&response)? {
        that(held.contains(&offset), || format!("offset {offset} is acquired, the batches hold {held:?}"))?;
    }
    Ok(())
}

async fn acquired_ranges_ascend(lab: Lab) -> Check {
    let (topic, mut member) = lab.with_records(9).await?;
    member.acquire_exactly(&topic, 0..9, 1).await?;
    member.acknowledge_ok(&topic, &[(1, 2, &[2]), (4, 4, &[2]), (6, 8, &[2])]).await?;
    Producer::plain(&lab).await?.produce(&topic, 0, 2).await?;
    let mut got = Vec::new();
    while got.len() < 8 {
        let response = first_answer(&mut member, &topic).await?;
        let part: Vec<i64> = acquired(&response)?.iter().map(|(offset, _)| *offset).collect();
        that(part.windows(2).all(|w| w[0] < w[1]), || format!("acquired in one answer: {part:?}"))?;
        got.extend(part);
    }
    equal("all that was acquired", got, vec![1, 2, 4, 6, 7, 8, 9, 10])
}

async fn limited(member: &mut Member, topic: &Topic, max_records: i32, mode: i8) -> Check<Vec<i64>> {
    for _ in 0..40 {
        let mut request = member.fetch(topic, &[0]);
        (request.max_records, request.batch_size, request.share_acquire_mode) = (max_records, max_records, mode);
        let response = member.send_fetch(topic, &request).await?;
        ok("ShareFetch", response.error_code)?;
        let got: Vec<i64> = acquired(&response)?.iter().map(|(offset, _)| *offset).collect();
        if !got.is_empty() {
            return Ok(got);
        }
    }
    fail("nothing was acquired within 40 fetches")
}

async fn batches_may_be_acquired_whole(lab: Lab) -> Check {
    let (topic, mut member) = lab.with_records(10).await?;
    let got = limited(&mut member, &topic, 3, 0).await?;
    // May, not must: a broker that cuts batches keeps the rule too, as long as it begins at the first record.
    that(got.len() >= 3 && got[0] == 0, || format!("acquired {got:?}"))
}

async fn no_batch_beyond_the_limit(lab: Lab) -> Check {
    let (topic, mut member) = lab.with_records(5).await?;
    let producer = Producer::plain(&lab).await?;
    for _ in 0..4 {
        producer.produce(&topic, 0, 5).await?;
    }
    let got = limited(&mut member, &topic, 7, 0).await?;
    that(got.len() <= 10, || format!("MaxRecords is 7, batches have 5 records, acquired are {got:?}"))
}

async fn small_max_bytes_does_not_stop_progress(lab: Lab) -> Check {
    let (topic, mut member) = lab.with_records(5).await?;
    for _ in 0..40 {
        let mut request = member.fetch(&topic, &[0]);
        request.max_bytes = 1;
        let response = member.send_fetch(&topic, &request).await?;
        ok("ShareFetch with MaxBytes 1", response.error_code)?;
        if !acquired(&response)?.is_empty() {
            return Ok(());
        }
    }
    fail("nothing was acquired with MaxBytes 1")
}

async fn unknown_partition_has_an_error(lab: Lab) -> Check {
    let (topic, mut member) = lab.with_records(0).await?;
    let mut request = member.fetch(&topic, &[0, 55]);
    request.max_wait_ms = 10;
    let response = member.send_fetch(&topic, &request).await?;
    ok("ShareFetch", response.error_code)?;
    let row = response.responses.iter().flat_map(|t| &t.partitions).find(|p| p.partition_index == 55);
    let got = row.map_or(ErrorCode::NONE, |p| p.error_code);
    code("a partition that does not exist", got, &[ErrorCode::UNKNOWN_TOPIC_OR_PARTITION])
}

async fn lock_time_is_the_groups(lab: Lab) -> Check {
    let (topic, mut member) = lab.with_records_and(1, &[("share.record.lock.duration.ms", "20000")]).await?;
    let response = first_answer(&mut member, &topic).await?;
    equal("acquisition lock in milliseconds", response.acquisition_lock_timeout_ms, 20_000)
}

async fn version_1_is_served(lab: Lab) -> Check {
    version_served(lab, 1).await
}

async fn version_served(lab: Lab, version: i16) -> Check {
    let (topic, mut member) = lab.with_records(2).await?;
    for _ in 0..40 {
        let request = member.fetch(&topic, &[0]);
        let response = member.send_fetch_as(&topic, &request, Some(version)).await?;
        ok("ShareFetch", response.error_code)?;
        if acquired(&response)?.len() == 2 {
            let request = member.acknowledgement(&topic, &[(0, 1, &[1])]);
            let response = member.send_acknowledgement_as(&topic, &request, Some(version)).await?;
            ok("ShareAcknowledge", response.error_code)?;
            return member.acquire_nothing(&topic, "both records were accepted").await;
        }
    }
    fail("two records did not come within 40 fetches")
}

async fn compressed(lab: Lab, codec: Compression) -> Check {
    let (topic, mut member) = lab.with_records(0).await?;
    let producer = Producer::plain(&lab).await?;
    let batch = producer.batch_with(0, 30, |options| options.compression = codec)?;
    ok("Produce", producer.send(&topic, 0, batch).await?.0)?;
    let response = first_answer(&mut member, &topic).await?;
    let rows = response.responses.iter().flat_map(|t| &t.partitions);
    for row in rows {
        for batch in BatchIter::new(row.records.clone().unwrap_or_default()) {
            let found = batch.and_then(|b| b.compression()).map_err(|e| Stop::Failed(e.to_string()))?;
            equal("codec of the batch", found, codec)?;
        }
    }
    equal("offsets in the answer", offsets(&response)?, (0..30).collect())
}

async fn record_is_answered_as_produced(lab: Lab) -> Check {
    let (topic, mut member) = lab.with_records(0).await?;
    let producer = Producer::plain(&lab).await?;
    let headers = [Header::new("name", Some(b"value")), Header::new("null", None)];
    let time = 1_700_000_000_123;
    let batch = producer.single(time, Some(b"key"), Some(b"the value"), &headers)?;
    ok("Produce", producer.send(&topic, 0, batch).await?.0)?;
    let response = first_answer(&mut member, &topic).await?;
    let records = response.responses.iter().flat_map(|t| &t.partitions).find_map(|p| p.records.clone());
    let broken = |e: kafka_share_wire::records::RecordError| Stop::Failed(format!("records cannot be read: {e}"));
    let Some(batch) = BatchIter::new(records.unwrap_or_default()).next() else { return fail("no batch came") };
    let decoded = batch.and_then(|b| b.decode(1 << 20)).map_err(broken)?;
    let Some(record) = decoded.iter().next() else { return fail("the batch has no record") };
    let record = record.map_err(broken)?;
    equal("key", record.key, Some(b"key".as_slice()))?;
    equal("value", record.value, Some(b"the value".as_slice()))?;
    equal("timestamp", record.timestamp, time)?;
    let told: Vec<(String, Option<Vec<u8>>)> =
        record.headers.map(|h| (h.key_str().unwrap_or_default().to_owned(), h.value.map(<[u8]>::to_vec))).collect();
    equal("headers", told, vec![("name".into(), Some(b"value".to_vec())), ("null".into(), None)])
}

async fn quiet_partition_has_no_row(lab: Lab) -> Check {
    let (topic, mut member) = lab.with_records(1).await?;
    member.acquire_exactly(&topic, 0..1, 1).await?;
    let mut request = member.fetch(&topic, &[]);
    request.max_wait_ms = 50;
    let response = member.send_fetch(&topic, &request).await?;
    ok("ShareFetch", response.error_code)?;
    equal("rows of the answer", response.responses.iter().map(|t| t.partitions.len()).sum::<usize>(), 0)
}

async fn record_limit_counts_over_partitions(lab: Lab) -> Check {
    let topic = lab.topic(2).await?;
    let mut member = lab.member(&lab.group(&[]).await?).await?;
    member.join(&topic).await?;
    let producer = Producer::plain(&lab).await?;
    producer.produce(&topic, 0, 6).await?;
    producer.produce(&topic, 1, 6).await?;
    let mut all = 0;
    for _ in 0..60 {
        let mut request = member.fetch(&topic, &[0, 1]);
        (request.share_acquire_mode, request.max_records) = (1, 5);
        let response = member.send_fetch(&topic, &request).await?;
        ok("ShareFetch", response.error_code)?;
        let got = acquired(&response)?.len();
        that(got <= 5, || format!("record_limit of 5, and {got} records of two partitions were acquired"))?;
        all += got;
        if all == 12 {
            return Ok(());
        }
    }
    fail(format!("{all} of 12 records were acquired"))
}

async fn rest_comes(lab: Lab, other: bool) -> Check {
    let (topic, mut member) = lab.with_records(8).await?;
    let mut second = lab.another(&member, &topic).await?;
    equal("first acquired", limited(&mut member, &topic, 5, 1).await?, vec![0, 1, 2, 3, 4])?;
    let next = if other { &mut second } else { &mut member };
    equal("acquired next", limited(next, &topic, 5, 1).await?, vec![5, 6, 7])
}

async fn limit_kept(lab: Lab, limit: i32) -> Check {
    let (topic, mut member) = lab.with_records(20).await?;
    let mut all = Vec::new();
    while all.len() < 20 {
        let got = limited(&mut member, &topic, limit, 1).await?;
        that(got.len() <= limit as usize, || format!("record_limit of {limit}, acquired {got:?}"))?;
        all.extend(got);
    }
    equal("all that was acquired", all, (0..20).collect())
}

async fn negative_acquire_mode_is_refused(lab: Lab) -> Check {
    let (topic, mut member) = lab.with_records(1).await?;
    let mut request = member.fetch(&topic, &[0]);
    request.share_acquire_mode = -1;
    let got = member.send_fetch(&topic, &request).await?.error_code;
    // See unknown_acquire_mode_is_refused for the second one.
    code("ShareFetch with acquire mode -1", got, &[ErrorCode::INVALID_REQUEST, ErrorCode::UNKNOWN_SERVER_ERROR])
}
