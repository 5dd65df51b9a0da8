//! What readers and administrators see of transactions: stable offsets, markers, states.

use super::ANY;
use crate::case::list;
use crate::expect::{Check, Stop, code, equal, fail, ok, that};
use crate::lab::{Lab, Member, Producer, Topic};
use kafka_share::net::{CoordinatorKind, Purpose};
use kafka_share_messages::describe_producers_request::TopicRequest;
use kafka_share_messages::describe_transactions_response::TransactionState;
use kafka_share_messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
use kafka_share_messages::{
    DescribeProducersRequest, DescribeTransactionsRequest, DescribeTransactionsResponse, ErrorCode, ListOffsetsRequest,
    ListTransactionsRequest, ListTransactionsResponse,
};
use kafka_share_wire::Str;

const COMMITTED: &[(&str, &str)] = &[("share.isolation.level", "read_committed")];

list! {
    commit_reaches_every_partition(98, ANY) "TXN-END-10" => every_partition(true);
    abort_reaches_every_partition(98, ANY) "TXN-END-10" => every_partition(false);
    end_is_one_offset_in_each_partition(98, ANY) "TXN-END-11";
    oldest_open_transaction_is_the_stable_offset(98, ANY) "TXN-READ-03";
    later_end_does_not_move_the_stable_offset(98, ANY) "TXN-READ-03";
    read_uncommitted_sees_open_records(98, ANY) "TXN-READ-04" "TXN-READ-05";
    read_uncommitted_sees_aborted_records(98, ANY) "TXN-READ-04";
    latest_offset_is_stable_under_read_committed(98, ANY) "TXN-READ-06" => latest(1, 1);
    latest_offset_is_the_high_watermark_else(98, ANY) "TXN-READ-06" => latest(0, 4);
    open_transaction_is_described(664, ANY) "TXN-LIST-01";
    unknown_transaction_is_not_described(664, ANY) "TXN-LIST-02";
    committed_transaction_is_described(664, ANY) "TXN-LIST-03" => described_end(true, "CompleteCommit");
    aborted_transaction_is_described(664, ANY) "TXN-LIST-03" => described_end(false, "CompleteAbort");
    open_transactions_are_listed(664, ANY) "TXN-LIST-04" => listed("Ongoing", true);
    other_states_are_not_listed(664, ANY) "TXN-LIST-04" => listed("CompleteCommit", false);
    transactions_are_listed_by_producer(664, ANY) "TXN-LIST-05";
    unknown_states_are_told(664, ANY) "TXN-LIST-06";
    start_of_an_open_transaction_is_told(664, ANY) "TXN-LIST-07" => told_start(true);
    ended_transaction_has_no_start(664, ANY) "TXN-LIST-07" => told_start(false);
    overlapping_transactions_are_told_apart(932, super::SHARE) "SHARE-ISOLATION-04";
    read_uncommitted_group_gets_aborted_records(932, super::SHARE) "SHARE-ISOLATION-05";
    aborted_records_are_passed_over(932, super::SHARE) "SHARE-ISOLATION-06";
    commit_ends_the_wait_of_a_fetch(932, super::SHARE) "SHARE-ISOLATION-07";
}

async fn every_partition(lab: Lab, committed: bool) -> Check {
    let mut producer = Producer::transactional(&lab).await?;
    let topics = [lab.topic(1).await?, lab.topic(1).await?, lab.topic(1).await?];
    for topic in &topics {
        producer.produce(topic, 0, 2).await?;
    }
    producer.end(committed).await?;
    for topic in &topics {
        let want = if committed { vec![0, 1] } else { vec![] };
        equal("offsets that read_committed sees", lab.settled(topic, 3).await?.offsets, want)?;
    }
    Ok(())
}

async fn end_is_one_offset_in_each_partition(lab: Lab) -> Check {
    let mut producer = Producer::transactional(&lab).await?;
    let topic = lab.topic(1).await?;
    producer.produce(&topic, 0, 3).await?;
    producer.end(true).await?;
    let log = lab.settled(&topic, 4).await?;
    equal("high watermark after three records and their end", log.end, 4)?;
    equal("data records", log.offsets, vec![0, 1, 2])
}

async fn oldest_open_transaction_is_the_stable_offset(lab: Lab) -> Check {
    let topic = lab.topic(1).await?;
    let (mut first, mut second) = (Producer::transactional(&lab).await?, Producer::transactional(&lab).await?);
    Producer::plain(&lab).await?.produce(&topic, 0, 1).await?;
    first.produce(&topic, 0, 1).await?;
    second.produce(&topic, 0, 1).await?;
    equal("last stable offset with two open transactions", lab.read(&topic, true).await?.stable, 1)?;
    first.end(true).await?;
    // Offset 3 is the end of the first; the second began at 2.
    equal("what read_committed sees then", lab.settled(&topic, 2).await?.offsets, vec![0, 1])?;
    second.end(true).await?;
    equal("and in the end", lab.settled(&topic, 5).await?.offsets, vec![0, 1, 2])
}

async fn later_end_does_not_move_the_stable_offset(lab: Lab) -> Check {
    let topic = lab.topic(1).await?;
    let (mut first, mut second) = (Producer::transactional(&lab).await?, Producer::transactional(&lab).await?);
    first.produce(&topic, 0, 1).await?;
    second.produce(&topic, 0, 1).await?;
    second.end(true).await?;
    equal("last stable offset", lab.read(&topic, true).await?.stable, 0)?;
    first.end(false).await?;
    equal("what read_committed sees", lab.settled(&topic, 4).await?.offsets, vec![1])
}

async fn read_uncommitted_sees_open_records(lab: Lab) -> Check {
    let topic = lab.topic(1).await?;
    let producer = Producer::transactional(&lab).await?;
    producer.produce(&topic, 0, 3).await?;
    let log = lab.read(&topic, false).await?;
    equal("offsets that read_uncommitted sees", log.offsets, vec![0, 1, 2])?;
    equal("high watermark", log.end, 3)
}

async fn read_uncommitted_sees_aborted_records(lab: Lab) -> Check {
    let topic = lab.topic(1).await?;
    let mut producer = Producer::transactional(&lab).await?;
    producer.produce(&topic, 0, 3).await?;
    producer.end(false).await?;
    lab.settled(&topic, 4).await?;
    equal("offsets that read_uncommitted sees", lab.read(&topic, false).await?.offsets, vec![0, 1, 2])
}

async fn latest(lab: Lab, isolation_level: i8, want: i64) -> Check {
    let topic = lab.topic(1).await?;
    Producer::plain(&lab).await?.produce(&topic, 0, 1).await?;
    Producer::transactional(&lab).await?.produce(&topic, 0, 3).await?;
    let row = ListOffsetsPartition { partition_index: 0, timestamp: -1, ..Default::default() };
    let row = ListOffsetsTopic { name: topic.name.clone(), partitions: vec![row], ..Default::default() };
    let request = ListOffsetsRequest { replica_id: -1, isolation_level, topics: vec![row], ..Default::default() };
    let response = lab.call(lab.cluster(), topic.node, Purpose::Coordination, &request, None).await?;
    let Some(row) = response.topics.iter().flat_map(|t| &t.partitions).next() else {
        return fail("ListOffsets was answered without a row");
    };
    ok("ListOffsets", row.error_code)?;
    equal("latest offset", row.offset, want)
}

async fn describe(lab: &Lab, id: &Str) -> Check<TransactionState> {
    let request = DescribeTransactionsRequest { transactional_ids: vec![id.clone()], ..Default::default() };
    let of = |r: &DescribeTransactionsResponse| r.transaction_states.first().map_or(ErrorCode::NONE, |t| t.error_code);
    let mut response = lab.coordinate(CoordinatorKind::Transaction, id, &request, None, of).await?;
    response
        .transaction_states
        .pop()
        .ok_or_else(|| Stop::Failed("DescribeTransactions was answered without a row".into()))
}

fn id_of(producer: &Producer) -> Str {
    producer.transactional_id.clone().unwrap_or_default()
}

async fn open_transaction_is_described(lab: Lab) -> Check {
    let topic = lab.topic(1).await?;
    let producer = Producer::transactional(&lab).await?;
    producer.produce(&topic, 0, 1).await?;
    let row = describe(&lab, &id_of(&producer)).await?;
    ok("DescribeTransactions", row.error_code)?;
    equal("state", row.transaction_state.as_str(), "Ongoing")?;
    equal("identity", (row.producer_id, row.producer_epoch), (producer.id, producer.epoch))?;
    let partitions: Vec<(&str, &[i32])> = row.topics.iter().map(|t| (t.topic.as_str(), &t.partitions[..])).collect();
    equal("partitions", partitions, vec![(topic.name.as_str(), &[0][..])])
}

async fn unknown_transaction_is_not_described(lab: Lab) -> Check {
    let row = describe(&lab, &Str::from(lab.name("x"))).await?;
    code("an unknown transactional id", row.error_code, &[ErrorCode::TRANSACTIONAL_ID_NOT_FOUND])
}

async fn described_end(lab: Lab, committed: bool, want: &'static str) -> Check {
    let topic = lab.topic(1).await?;
    let mut producer = Producer::transactional(&lab).await?;
    producer.produce(&topic, 0, 1).await?;
    producer.end(committed).await?;
    lab.settled(&topic, 2).await?;
    for _ in 0..100 {
        let state = describe(&lab, &id_of(&producer)).await?.transaction_state;
        if state.as_str() == want {
            return Ok(());
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    fail(format!("the transaction did not become {want}"))
}

async fn list(lab: &Lab, producer: &Producer, request: &ListTransactionsRequest) -> Check<ListTransactionsResponse> {
    let node = lab.cluster().coordinator(CoordinatorKind::Transaction, &id_of(producer), lab.deadline()).await?;
    let response = lab.call(lab.cluster(), node, Purpose::Coordination, request, None).await?;
    ok("ListTransactions", response.error_code)?;
    Ok(response)
}

async fn opened(lab: &Lab) -> Check<Producer> {
    let topic = lab.topic(1).await?;
    let producer = Producer::transactional(lab).await?;
    producer.produce(&topic, 0, 1).await?;
    Ok(producer)
}

async fn listed(lab: Lab, state: &'static str, want: bool) -> Check {
    let producer = opened(&lab).await?;
    let request = ListTransactionsRequest {
        state_filters: vec![Str::from_static(state)],
        duration_filter: -1,
        ..Default::default()
    };
    let response = list(&lab, &producer, &request).await?;
    let found = response.transaction_states.iter().any(|t| t.transactional_id == id_of(&producer));
    equal(&format!("whether an open transaction is listed as {state}"), found, want)
}

async fn transactions_are_listed_by_producer(lab: Lab) -> Check {
    let (producer, other) = (opened(&lab).await?, opened(&lab).await?);
    let request =
        ListTransactionsRequest { producer_id_filters: vec![producer.id], duration_filter: -1, ..Default::default() };
    let response = list(&lab, &producer, &request).await?;
    let ids: Vec<i64> = response.transaction_states.iter().map(|t| t.producer_id).collect();
    that(ids == [producer.id], || format!("listed are {ids:?}, asked for was {}, another is {}", producer.id, other.id))
}

async fn unknown_states_are_told(lab: Lab) -> Check {
    let producer = opened(&lab).await?;
    let request = ListTransactionsRequest {
        state_filters: vec![Str::from_static("NoSuchState")],
        duration_filter: -1,
        ..Default::default()
    };
    let response = list(&lab, &producer, &request).await?;
    equal("unknown filters", response.unknown_state_filters, vec![Str::from_static("NoSuchState")])
}

async fn told_start(lab: Lab, open: bool) -> Check {
    let topic = lab.topic(1).await?;
    Producer::plain(&lab).await?.produce(&topic, 0, 2).await?;
    let mut producer = Producer::transactional(&lab).await?;
    let id = producer.id;
    producer.produce(&topic, 0, 1).await?;
    if !open {
        producer.end(true).await?;
        lab.settled(&topic, 4).await?;
    }
    let row = TopicRequest { name: topic.name.clone(), partition_indexes: vec![0], ..Default::default() };
    let request = DescribeProducersRequest { topics: vec![row], ..Default::default() };
    let response = lab.call(lab.cluster(), topic.node, Purpose::Coordination, &request, None).await?;
    let rows = response.topics.iter().flat_map(|t| &t.partitions);
    let found = rows.flat_map(|p| &p.active_producers).find(|p| p.producer_id == id);
    equal("start of the transaction", found.map(|p| p.current_txn_start_offset), Some(if open { 2 } else { -1 }))
}

/// Acquires until `last` came, and answers those that are data.
async fn delivered(lab: &Lab, member: &mut Member, topic: &Topic, last: i64) -> Check<Vec<i64>> {
    let mut all = Vec::new();
    while !all.contains(&last) {
        all.extend(member.acquire(topic, 1).await?.iter().map(|(offset, _)| *offset));
    }
    let data = lab.read(topic, false).await?.offsets;
    Ok(all.into_iter().filter(|o| data.contains(o)).collect())
}

async fn overlapping_transactions_are_told_apart(lab: Lab) -> Check {
    let (topic, mut member) = lab.with_records_and(0, COMMITTED).await?;
    let (mut first, mut second) = (Producer::transactional(&lab).await?, Producer::transactional(&lab).await?);
    first.produce(&topic, 0, 1).await?;
    second.produce(&topic, 0, 1).await?;
    first.produce_from(&topic, 0, 1, 1).await?;
    second.produce_from(&topic, 0, 1, 1).await?;
    first.end(false).await?;
    second.end(true).await?;
    lab.settled(&topic, 6).await?;
    Producer::plain(&lab).await?.produce(&topic, 0, 1).await?;
    let got = delivered(&lab, &mut member, &topic, 6).await?;
    equal("records delivered of an aborted, a committed and no transaction", got, vec![1, 3, 6])
}

async fn read_uncommitted_group_gets_aborted_records(lab: Lab) -> Check {
    let (topic, mut member) = lab.with_records(0).await?;
    let mut producer = Producer::transactional(&lab).await?;
    producer.produce(&topic, 0, 2).await?;
    producer.end(false).await?;
    lab.settled(&topic, 3).await?;
    equal("records delivered", delivered(&lab, &mut member, &topic, 1).await?, vec![0, 1])
}

async fn aborted_records_are_passed_over(lab: Lab) -> Check {
    let (topic, mut member) = lab.with_records_and(0, COMMITTED).await?;
    let mut producer = Producer::transactional(&lab).await?;
    producer.produce(&topic, 0, 2).await?;
    producer.end(false).await?;
    lab.settled(&topic, 3).await?;
    Producer::plain(&lab).await?.produce(&topic, 0, 1).await?;
    let mut held = Vec::new();
    while !held.contains(&3) {
        held.extend(member.acquire(&topic, 1).await?.iter().map(|(offset, _)| *offset));
    }
    for offset in held {
        // What is no record is acknowledged as a gap.
        let kind: &[i8] = if offset == 3 { &[1] } else { &[0] };
        member.acknowledge_ok(&topic, &[(offset, offset, kind)]).await?;
    }
    lab.lag_becomes(&member.group, &topic, 4, 0).await
}

async fn commit_ends_the_wait_of_a_fetch(lab: Lab) -> Check {
    let (topic, mut member) = lab.with_records_and(0, COMMITTED).await?;
    let mut producer = Producer::transactional(&lab).await?;
    producer.produce(&topic, 0, 1).await?;
    member.acquire_nothing(&topic, "the transaction is open").await?;
    let mut request = member.fetch(&topic, &[0]);
    request.max_wait_ms = 10_000;
    let start = std::time::Instant::now();
    let (response, ended) = tokio::join!(member.send_fetch(&topic, &request), producer.end(true));
    ended?;
    let response = response?;
    ok("the waiting ShareFetch", response.error_code)?;
    that(!crate::lab::acquired(&response)?.is_empty(), || "it was answered without the committed record".into())?;
    that(start.elapsed().as_secs() < 9, || format!("it was answered after {:?}", start.elapsed()))
}
