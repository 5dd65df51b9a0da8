//! Transactions in detail: who may do what under which identity, and what a repeated request is answered.

use super::ANY;
use crate::Need;
use crate::case::list;
use crate::expect::{Check, code, equal, ok, that};
use crate::lab::{Lab, Producer};
use kafka_share::net::CoordinatorKind;
use kafka_share_messages::add_partitions_to_txn_request::AddPartitionsToTxnTopic;
use kafka_share_messages::{
    AddPartitionsToTxnRequest, AddPartitionsToTxnResponse, ApiKey, EndTxnRequest, EndTxnResponse, ErrorCode,
    InitProducerIdRequest, InitProducerIdResponse,
};
use kafka_share_wire::Str;
use std::time::{Duration, Instant};

const TV2: &[Need] =
    &[Need::Feature("transaction.version", 2), Need::Api(ApiKey::END_TXN, 5), Need::Api(ApiKey::PRODUCE, 12)];
const FENCED: [ErrorCode; 2] = [ErrorCode::PRODUCER_FENCED, ErrorCode::INVALID_PRODUCER_EPOCH];

list! {
    empty_transactional_id_is_refused(98, ANY) "TXN-INIT-05";
    id_without_epoch_is_refused(360, ANY) "TXN-INIT-06" => half_identity(true);
    epoch_without_id_is_refused(360, ANY) "TXN-INIT-06" => half_identity(false);
    identity_that_is_brought_goes_on(360, ANY) "TXN-INIT-07";
    wrong_id_is_fenced_at_init(360, ANY) "TXN-INIT-08";
    old_epoch_is_fenced_at_init(360, ANY) "TXN-INIT-09";
    transactional_ids_are_apart(98, ANY) "TXN-INIT-10";
    repeated_init_gets_the_same_epoch(360, ANY) "TXN-INIT-11";
    version_3_tells_an_invalid_epoch(588, ANY) "TXN-INIT-12" => fenced_as(3, ErrorCode::INVALID_PRODUCER_EPOCH);
    version_4_tells_that_it_is_fenced(588, ANY) "TXN-INIT-12" => fenced_as(4, ErrorCode::PRODUCER_FENCED);
    commit_of_an_unknown_id_is_refused(98, ANY) "TXN-END-04" => unknown_id(true);
    abort_of_an_unknown_id_is_refused(98, ANY) "TXN-END-04" => unknown_id(false);
    end_with_a_wrong_producer_id_is_refused(98, ANY) "TXN-END-05";
    end_with_an_epoch_ahead_is_fenced(98, ANY) "TXN-END-06" => wrong_epoch(1);
    end_with_an_epoch_far_ahead_is_fenced(98, ANY) "TXN-END-06" => wrong_epoch(100);
    end_without_an_id_is_refused(98, ANY) "TXN-END-07";
    old_commit_may_be_repeated(98, ANY) "TXN-END-08" => repeated_v4(true);
    old_abort_may_be_repeated(98, ANY) "TXN-END-08" => repeated_v4(false);
    committed_cannot_be_aborted(98, ANY) "TXN-END-09" => other_end_v4(true);
    aborted_cannot_be_committed(98, ANY) "TXN-END-09" => other_end_v4(false);
    unknown_partition_enrols_none(98, ANY) "TXN-ADD-01";
    enrolling_with_an_old_epoch_is_fenced(98, ANY) "TXN-ADD-02";
    enrolling_for_an_unknown_id_is_refused(98, ANY) "TXN-ADD-03";
    enrolling_twice_is_a_success(98, ANY) "TXN-ADD-04";
    internal_topic_cannot_be_enrolled(98, ANY) "TXN-ADD-05";
    repeated_commit_gives_the_same_epoch(890, TV2) "TXN-TV2-05" => repeated_v5(true);
    repeated_abort_gives_the_same_epoch(890, TV2) "TXN-TV2-05" => repeated_v5(false);
    committed_cannot_be_aborted_later(890, TV2) "TXN-TV2-06" => other_end_v5(true);
    aborted_cannot_be_committed_later(890, TV2) "TXN-TV2-06" => other_end_v5(false);
    abort_of_nothing_takes_an_epoch(890, TV2) "TXN-TV2-07";
    new_epoch_begins_at_zero(890, TV2) "TXN-TV2-08";
    transaction_version_is_told(890, TV2) "TXN-TV2-09";
    timeout_aborts(98, ANY) "TXN-TIMEOUT-01" "TXN-TIMEOUT-02" "TXN-TIMEOUT-03";
}

async fn init_as(lab: &Lab, id: &Str, identity: (i64, i16), version: Option<i16>) -> Check<InitProducerIdResponse> {
    let request = InitProducerIdRequest {
        transactional_id: Some(id.clone()),
        transaction_timeout_ms: 60_000,
        producer_id: identity.0,
        producer_epoch: identity.1,
        ..Default::default()
    };
    let until = Instant::now() + Duration::from_secs(10);
    loop {
        let of = |r: &InitProducerIdResponse| r.error_code;
        let response = match id.is_empty() {
            true => {
                let node = lab.any_node().await?;
                lab.call(lab.cluster(), node, kafka_share::net::Purpose::Coordination, &request, version).await?
            }
            false => lab.coordinate(CoordinatorKind::Transaction, id, &request, version, of).await?,
        };
        if response.error_code != ErrorCode::CONCURRENT_TRANSACTIONS || Instant::now() > until {
            return Ok(response);
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn producer(lab: &Lab) -> Check<(Producer, Str)> {
    let id = Str::from(lab.name("x"));
    Ok((Producer::with_id(lab, &id).await?, id))
}

async fn empty_transactional_id_is_refused(lab: Lab) -> Check {
    let got = init_as(&lab, &Str::default(), (-1, -1), None).await?.error_code;
    code("InitProducerId with an empty id", got, &[ErrorCode::INVALID_REQUEST])
}

async fn half_identity(lab: Lab, id_only: bool) -> Check {
    let (producer, id) = producer(&lab).await?;
    let identity = if id_only { (producer.id, -1) } else { (-1, producer.epoch) };
    let got = init_as(&lab, &id, identity, None).await?.error_code;
    code(&format!("InitProducerId with identity {identity:?}"), got, &[ErrorCode::INVALID_REQUEST])
}

async fn identity_that_is_brought_goes_on(lab: Lab) -> Check {
    let (producer, id) = producer(&lab).await?;
    let response = init_as(&lab, &id, (producer.id, producer.epoch), None).await?;
    ok("InitProducerId with the producer's identity", response.error_code)?;
    equal("identity", (response.producer_id, response.producer_epoch), (producer.id, producer.epoch + 1))
}

async fn wrong_id_is_fenced_at_init(lab: Lab) -> Check {
    let (producer, id) = producer(&lab).await?;
    let got = init_as(&lab, &id, (producer.id + 1_000_000, producer.epoch), None).await?.error_code;
    code("InitProducerId with another producer id", got, &FENCED)
}

async fn old_epoch_is_fenced_at_init(lab: Lab) -> Check {
    let (old, id) = producer(&lab).await?;
    for _ in 0..2 {
        Producer::with_id(&lab, &id).await?;
    }
    let got = init_as(&lab, &id, (old.id, old.epoch), None).await?.error_code;
    code("InitProducerId with an old epoch", got, &FENCED)
}

async fn transactional_ids_are_apart(lab: Lab) -> Check {
    let ((first, _), (second, _)) = (producer(&lab).await?, producer(&lab).await?);
    that(first.id != second.id, || format!("two transactional ids have producer id {}", first.id))
}

async fn repeated_init_gets_the_same_epoch(lab: Lab) -> Check {
    let (producer, id) = producer(&lab).await?;
    let first = init_as(&lab, &id, (producer.id, producer.epoch), None).await?;
    ok("InitProducerId", first.error_code)?;
    let again = init_as(&lab, &id, (producer.id, producer.epoch), None).await?;
    ok("the same again", again.error_code)?;
    equal("epoch", again.producer_epoch, first.producer_epoch)
}

async fn fenced_as(lab: Lab, version: i16, want: ErrorCode) -> Check {
    let (old, id) = producer(&lab).await?;
    for _ in 0..2 {
        Producer::with_id(&lab, &id).await?;
    }
    let got = init_as(&lab, &id, (old.id, old.epoch), Some(version)).await?.error_code;
    code(&format!("InitProducerId version {version} of a fenced producer"), got, &[want])
}

async fn end_as(lab: &Lab, request: EndTxnRequest, version: Option<i16>) -> Check<EndTxnResponse> {
    let until = Instant::now() + Duration::from_secs(10);
    loop {
        let id = request.transactional_id.clone();
        let response = match id.is_empty() {
            true => {
                let node = lab.any_node().await?;
                lab.call(lab.cluster(), node, kafka_share::net::Purpose::Coordination, &request, version).await?
            }
            false => {
                let of = |r: &EndTxnResponse| r.error_code;
                lab.coordinate(CoordinatorKind::Transaction, &id, &request, version, of).await?
            }
        };
        if response.error_code != ErrorCode::CONCURRENT_TRANSACTIONS || Instant::now() > until {
            return Ok(response);
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

fn end(producer: &Producer, committed: bool) -> EndTxnRequest {
    EndTxnRequest {
        transactional_id: producer.transactional_id.clone().unwrap_or_default(),
        producer_id: producer.id,
        producer_epoch: producer.epoch,
        committed,
        ..Default::default()
    }
}

async fn unknown_id(lab: Lab, committed: bool) -> Check {
    let id = Str::from(lab.name("x"));
    let request =
        EndTxnRequest { transactional_id: id, producer_id: 1, producer_epoch: 0, committed, ..Default::default() };
    let got = end_as(&lab, request, None).await?.error_code;
    code("EndTxn of an unknown transactional id", got, &[ErrorCode::INVALID_PRODUCER_ID_MAPPING])
}

async fn end_with_a_wrong_producer_id_is_refused(lab: Lab) -> Check {
    let (producer, _) = producer(&lab).await?;
    let request = EndTxnRequest { producer_id: producer.id + 1_000_000, ..end(&producer, true) };
    let got = end_as(&lab, request, None).await?.error_code;
    code("EndTxn with another producer id", got, &[ErrorCode::INVALID_PRODUCER_ID_MAPPING])
}

async fn wrong_epoch(lab: Lab, ahead: i16) -> Check {
    let (producer, _) = producer(&lab).await?;
    let topic = lab.topic(1).await?;
    producer.produce(&topic, 0, 1).await?;
    let request = EndTxnRequest { producer_epoch: producer.epoch + ahead, ..end(&producer, true) };
    let got = end_as(&lab, request, None).await?.error_code;
    code(&format!("EndTxn with an epoch {ahead} ahead"), got, &FENCED)
}

async fn end_without_an_id_is_refused(lab: Lab) -> Check {
    let (producer, _) = producer(&lab).await?;
    let request = EndTxnRequest { transactional_id: Str::default(), ..end(&producer, true) };
    let got = end_as(&lab, request, None).await?.error_code;
    code("EndTxn with an empty transactional id", got, &[ErrorCode::INVALID_REQUEST])
}

/// A transaction of an older client, with one record, ended in version 4.
async fn ended_v4(lab: &Lab, committed: bool) -> Check<Producer> {
    let (mut producer, _) = producer(lab).await?;
    producer.tv2 = false;
    let topic = lab.topic(1).await?;
    producer.produce(&topic, 0, 1).await?;
    ok("EndTxn", end_as(lab, end(&producer, committed), Some(4)).await?.error_code)?;
    lab.settled(&topic, 2).await?;
    Ok(producer)
}

async fn repeated_v4(lab: Lab, committed: bool) -> Check {
    let producer = ended_v4(&lab, committed).await?;
    ok("the same EndTxn again", end_as(&lab, end(&producer, committed), Some(4)).await?.error_code)
}

async fn other_end_v4(lab: Lab, committed: bool) -> Check {
    let producer = ended_v4(&lab, committed).await?;
    let got = end_as(&lab, end(&producer, !committed), Some(4)).await?.error_code;
    code("the other end of an ended transaction", got, &[ErrorCode::INVALID_TXN_STATE])
}

async fn add(lab: &Lab, producer: &Producer, rows: &[(&Str, i32)]) -> Check<Vec<ErrorCode>> {
    let topic = |(name, partition): &(&Str, i32)| AddPartitionsToTxnTopic {
        name: (*name).clone(),
        partitions: vec![*partition],
        ..Default::default()
    };
    let id = producer.transactional_id.clone().unwrap_or_default();
    let request = AddPartitionsToTxnRequest {
        v3_and_below_transactional_id: id.clone(),
        v3_and_below_producer_id: producer.id,
        v3_and_below_producer_epoch: producer.epoch,
        v3_and_below_topics: rows.iter().map(topic).collect(),
        ..Default::default()
    };
    let codes = |r: &AddPartitionsToTxnResponse| -> Vec<(Str, ErrorCode)> {
        let rows = r.results_by_topic_v3_and_below.iter();
        rows.flat_map(|t| t.results_by_partition.iter().map(|p| (t.name.clone(), p.partition_error_code))).collect()
    };
    let of = |r: &AddPartitionsToTxnResponse| codes(r).first().map_or(ErrorCode::NONE, |(_, code)| *code);
    let response = lab.coordinate(CoordinatorKind::Transaction, &id, &request, Some(3), of).await?;
    let told = codes(&response);
    let one = |(name, _): &(&Str, i32)| told.iter().find(|(n, _)| n == *name).map_or(ErrorCode::NONE, |(_, c)| *c);
    Ok(rows.iter().map(one).collect())
}

async fn unknown_partition_enrols_none(lab: Lab) -> Check {
    let (producer, _) = producer(&lab).await?;
    let (topic, other) = (lab.topic(1).await?, lab.topic(1).await?);
    let got = add(&lab, &producer, &[(&topic.name, 0), (&other.name, 9)]).await?;
    let want = vec![ErrorCode::OPERATION_NOT_ATTEMPTED, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION];
    equal("codes of a good and an unknown partition", got, want)
}

async fn enrolling_with_an_old_epoch_is_fenced(lab: Lab) -> Check {
    let (old, id) = producer(&lab).await?;
    let topic = lab.topic(1).await?;
    for _ in 0..2 {
        Producer::with_id(&lab, &id).await?;
    }
    let got = add(&lab, &old, &[(&topic.name, 0)]).await?;
    code("AddPartitionsToTxn with an old epoch", got[0], &FENCED)
}

async fn enrolling_for_an_unknown_id_is_refused(lab: Lab) -> Check {
    let (mut producer, _) = producer(&lab).await?;
    let topic = lab.topic(1).await?;
    producer.transactional_id = Some(Str::from(lab.name("x")));
    let got = add(&lab, &producer, &[(&topic.name, 0)]).await?;
    code("AddPartitionsToTxn of an unknown id", got[0], &[ErrorCode::INVALID_PRODUCER_ID_MAPPING])
}

async fn enrolling_twice_is_a_success(lab: Lab) -> Check {
    let (producer, _) = producer(&lab).await?;
    let topic = lab.topic(1).await?;
    for _ in 0..2 {
        equal("code", add(&lab, &producer, &[(&topic.name, 0)]).await?, vec![ErrorCode::NONE])?;
    }
    Ok(())
}

async fn internal_topic_cannot_be_enrolled(lab: Lab) -> Check {
    let (producer, _) = producer(&lab).await?;
    let got = add(&lab, &producer, &[(&Str::from_static("__transaction_state"), 0)]).await?;
    that(got[0].is_err(), || "a partition of __transaction_state was enrolled for a client".into())
}

/// A transaction with one record, ended in the highest version.
async fn ended_v5(lab: &Lab, committed: bool) -> Check<(Producer, EndTxnResponse)> {
    let (producer, _) = producer(lab).await?;
    let topic = lab.topic(1).await?;
    producer.produce(&topic, 0, 1).await?;
    let response = end_as(lab, end(&producer, committed), None).await?;
    ok("EndTxn", response.error_code)?;
    lab.settled(&topic, 2).await?;
    Ok((producer, response))
}

async fn repeated_v5(lab: Lab, committed: bool) -> Check {
    let (producer, first) = ended_v5(&lab, committed).await?;
    let again = end_as(&lab, end(&producer, committed), None).await?;
    ok("the same EndTxn again", again.error_code)?;
    let identity = |r: &EndTxnResponse| (r.producer_id, r.producer_epoch);
    equal("identity of the second answer", identity(&again), identity(&first))
}

async fn other_end_v5(lab: Lab, committed: bool) -> Check {
    let (producer, _) = ended_v5(&lab, committed).await?;
    let got = end_as(&lab, end(&producer, !committed), None).await?.error_code;
    code("the other end of an ended transaction", got, &[ErrorCode::INVALID_TXN_STATE])
}

async fn abort_of_nothing_takes_an_epoch(lab: Lab) -> Check {
    let (producer, _) = producer(&lab).await?;
    let response = end_as(&lab, end(&producer, false), None).await?;
    ok("EndTxn that aborts nothing", response.error_code)?;
    equal("epoch", response.producer_epoch, producer.epoch + 1)
}

async fn new_epoch_begins_at_zero(lab: Lab) -> Check {
    let (mut producer, _) = producer(&lab).await?;
    let topic = lab.topic(1).await?;
    producer.produce(&topic, 0, 2).await?;
    producer.end(true).await?;
    let (got, _) = producer.send(&topic, 0, producer.batch(2, 1)?).await?;
    code("sequence 2 in a new epoch", got, &[ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER])
}

async fn transaction_version_is_told(lab: Lab) -> Check {
    let level = lab.feature("transaction.version").await?;
    that(level >= 2, || format!("transaction.version is told as {level}"))
}

async fn timeout_aborts(lab: Lab) -> Check {
    let topic = lab.topic(1).await?;
    let mut producer = Producer::plain(&lab).await?;
    producer.transactional_id = Some(Str::from(lab.name("x")));
    let response = producer.init(1000).await?;
    ok("InitProducerId with a timeout of 1 s", response.error_code)?;
    (producer.id, producer.epoch) = (response.producer_id, response.producer_epoch);
    producer.produce(&topic, 0, 2).await?;
    let log = lab.settled(&topic, 3).await?;
    equal("offsets that read_committed sees after the timeout", log.offsets, vec![])?;
    let got = end_as(&lab, end(&producer, true), if producer.tv2 { None } else { Some(4) }).await?.error_code;
    let allowed = [ErrorCode::PRODUCER_FENCED, ErrorCode::INVALID_PRODUCER_EPOCH, ErrorCode::INVALID_TXN_STATE];
    code("committing after the timeout", got, &allowed)
}
