//! Members that may do what the guide to the ledger says and nothing else, on a broker with an authoriser: all that is in
//! play has entries, so that whatever these do not allow is denied.

use super::stage::*;
use kafka_share::{ErrorKind, KafkaShareConsumer, ShareRecords, TransactionalProducer};
use kafka_share_tests::acls::{self, Keeper, Operation, Resource};
use std::time::{Duration, Instant};

const RECORDS: usize = 6;

/// A stage whose topics, group and transactional ids have the guide's entries.
async fn set(bootstrap: &str, broker: Keeper<'_>, ids: &str) -> Stage {
    use Operation::{Describe, DescribeConfigs, Read, Write};
    let stage = Stage::set(bootstrap, RECORDS).await;
    let members = format!("{ids}*");
    let table: [(Resource, &str, &[Operation]); 5] = [
        (Resource::Topic, &stage.ledger, &[Read, Write, Describe, DescribeConfigs]),
        (Resource::TransactionalId, &members, &[Write, Describe]),
        (Resource::Group, &stage.group, &[Read, Describe]),
        (Resource::Topic, &stage.input, &[Read, Describe]),
        (Resource::Topic, &stage.output, &[Write, Describe, DescribeConfigs]),
    ];
    acls::allow_only(broker, &table).unwrap();
    until_in_force(&stage, broker).await;
    stage
}

/// Entries are taken in by brokers in their order: so all before are, once the broker does not tell any more whether there is a
/// topic on which nobody may do anything that implies DESCRIBE.
async fn until_in_force(stage: &Stage, broker: Keeper<'_>) {
    let last = name("last");
    acls::allow_only(broker, &[(Resource::Topic, &last, &[Operation::DescribeConfigs])]).unwrap();
    let until = Instant::now() + LONG;
    loop {
        let looked = stage.admin().describe_topics(&[last.as_str()]).await.unwrap();
        if looked.iter().any(|(_, found)| found.as_ref().is_err_and(|e| e.kind() == ErrorKind::Authorization)) {
            return;
        }
        assert!(Instant::now() < until, "the entries take no effect");
    }
}

async fn read(stage: &Stage) -> kafka_share::Result<()> {
    let cluster = std::sync::Arc::clone(&stage.cluster);
    let mut reader = kafka_share::PartitionReader::read_committed(cluster, &stage.output).await?;
    reader.read_to_end().await.map(drop)
}

async fn producer(stage: &Stage, id: &str) -> TransactionalProducer {
    let builder = TransactionalProducer::builder("", id).cluster(std::sync::Arc::clone(&stage.cluster));
    let producer = builder.ledger_topic(&stage.ledger).max_block(LONG).build().unwrap();
    producer.init_transactions().await.unwrap();
    producer
}

/// A member that goes as far as its intent, and stops; with the numbers of its records.
async fn stopped(stage: &Stage, id: &str) -> (TransactionalProducer, Vec<usize>) {
    let (consumer, producer) = (stage.consumer(), producer(stage, id).await);
    let records = some(&consumer).await;
    producer.begin_transaction().unwrap();
    stage.process(&producer, &consumer, &records).await;
    drop(producer.prepare_transaction().await.unwrap());
    let claimed = numbers(&records);
    consumer.close(LONG).await.unwrap();
    (producer, claimed)
}

async fn commit(
    stage: &Stage,
    consumer: &KafkaShareConsumer,
    producer: &TransactionalProducer,
    records: &ShareRecords,
) {
    producer.begin_transaction().unwrap();
    stage.process(producer, consumer, records).await;
    producer.commit_transaction().await.unwrap();
}

async fn do_the_rest(stage: &Stage, consumer: &KafkaShareConsumer, producer: &TransactionalProducer, mut left: usize) {
    while left > 0 {
        let records = some(consumer).await;
        left -= records.len();
        commit(stage, consumer, producer, &records).await;
    }
    stage.until_done(consumer, &stage.group).await;
}

fn fences(consumer: &KafkaShareConsumer) -> f64 {
    consumer.metrics().get("share-ack-ledger-fences-total").unwrap()
}

/// What is committed is known once reading it is allowed.
async fn check(stage: &Stage, broker: Keeper<'_>) {
    acls::allow_only(broker, &[(Resource::Topic, &stage.output, &[Operation::Read])]).unwrap();
    let until = Instant::now() + LONG;
    while read(stage).await.is_err() {
        assert!(Instant::now() < until, "the output cannot be read");
    }
    stage.check_output(RECORDS).await;
}

pub(crate) async fn what_the_guide_lists_is_enough(bootstrap: &str, broker: Keeper<'_>) {
    let ids = name("id");
    let stage = set(bootstrap, broker, &ids).await;
    let (_stopped, _) = stopped(&stage, &format!("{ids}-stopped")).await;
    let (consumer, producer) = (stage.consumer(), producer(&stage, &format!("{ids}-other")).await);
    do_the_rest(&stage, &consumer, &producer, RECORDS).await;
    assert!(fences(&consumer) > 0.5, "it took over by itself");
    check(&stage, broker).await;
}

pub(crate) async fn without_write_on_others_ids_their_records_wait(bootstrap: &str, broker: Keeper<'_>) {
    let ids = name("id");
    let stage = set(bootstrap, broker, &ids).await;
    let theirs = format!("{ids}-stopped");
    let (stopped, claimed) = stopped(&stage, &theirs).await;
    acls::deny(broker, Resource::TransactionalId, &theirs, Operation::Write).unwrap();
    until_in_force(&stage, broker).await;
    let (consumer, own) = (stage.consumer(), producer(&stage, &format!("{ids}-other")).await);
    let (until, mut left) = (Instant::now() + LONG, RECORDS);
    while fences(&consumer) < 0.5 || left > claimed.len() {
        assert!(Instant::now() < until, "it does not try");
        let records = consumer.poll(Duration::from_millis(100)).await.unwrap();
        assert!(numbers(&records).iter().all(|n| !claimed.contains(n)), "an open transaction claims them");
        if !records.is_empty() {
            left -= records.len();
            commit(&stage, &consumer, &own, &records).await;
        }
    }
    // The owner ends it.
    acls::allow(broker, Resource::TransactionalId, &theirs, Operation::Write).unwrap();
    let until = Instant::now() + LONG;
    while stopped.abort_transaction().await.is_err() {
        assert!(Instant::now() < until, "the right does not come back");
    }
    do_the_rest(&stage, &consumer, &own, left).await;
    check(&stage, broker).await;
}
