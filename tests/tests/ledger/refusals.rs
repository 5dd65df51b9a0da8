//! Ledgers that cannot be used, on whatever broker, and what a consumer and a producer say about them.

use super::stage::*;
use kafka_share::ledger::NewLedger;
use kafka_share::{AckType, Error, ErrorKind, Producer, ProducerRecord, ShareAcknowledgements};
use kafka_share_tests::acls::{self, Keeper, Operation, Resource};
use std::time::Instant;

pub(crate) async fn all(bootstrap: &str) {
    tokio::join!(
        a_ledger_that_is_missing_is_waited_for(bootstrap),
        settings_that_lose_intents(bootstrap),
        records_that_are_not_of_a_ledger(bootstrap),
    );
}

pub(crate) fn says(error: &Error, kind: ErrorKind, words: &[&str]) {
    assert_eq!(error.kind(), kind, "{error}");
    for word in words {
        assert!(error.to_string().contains(word), "{word:?} is not in: {error}");
    }
}

/// The error of a poll; records that come before it are an error of the test.
pub(crate) async fn refused(consumer: &kafka_share::KafkaShareConsumer) -> Error {
    let until = Instant::now() + LONG;
    loop {
        match consumer.poll(std::time::Duration::from_millis(100)).await {
            Err(error) => return error,
            Ok(records) => assert!(records.is_empty() && Instant::now() < until, "no error came"),
        }
    }
}

/// The error of a poll, which may come after records: an empty ledger has nothing to be read, so that a missing right shows once
/// records are there, whose transaction would be refused.
async fn refused_at_last(consumer: &kafka_share::KafkaShareConsumer) -> Error {
    let until = Instant::now() + LONG;
    loop {
        if let Err(error) = consumer.poll(std::time::Duration::from_millis(100)).await {
            return error;
        }
        assert!(Instant::now() < until, "no error came");
    }
}

async fn a_ledger_that_is_missing_is_waited_for(bootstrap: &str) {
    let mut stage = Stage::set(bootstrap, 3).await;
    stage.ledger = name("missing");
    let consumer = stage.consumer();
    let advice = [stage.ledger.as_str(), "does not exist", "kshare ledger create", "ledger.auto.create"];
    says(&refused(&consumer).await, ErrorKind::Config, &advice);
    let ledger = NewLedger::new().topic(&stage.ledger).replication_factor(1);
    stage.admin().create_ledger(&ledger).await.unwrap();
    let until = Instant::now() + LONG;
    while !consumer.poll(std::time::Duration::from_millis(100)).await.is_ok_and(|records| !records.is_empty()) {
        assert!(Instant::now() < until);
    }
}

async fn settings_that_lose_intents(bootstrap: &str) {
    for (setting, value, told) in [
        ("cleanup.policy", "delete", "must be compact alone"),
        ("cleanup.policy", "compact,delete", "must be compact alone"),
        ("unclean.leader.election.enable", "true", "must be false"),
    ] {
        let stage = Stage::set(bootstrap, 3).await;
        stage.set_ledger(setting, value).await;
        let consumer = stage.consumer();
        says(&refused(&consumer).await, ErrorKind::Config, &[&stage.ledger, setting, told]);
    }
}

async fn records_that_are_not_of_a_ledger(bootstrap: &str) {
    let mut intent = vec![1];
    intent.extend([7; 24]);
    let moving = "create a ledger under another name";
    for (key, value, word, advice, kind) in [
        (&b"user-17"[..], &b"{}"[..], "used for nothing else", moving, ErrorKind::Config),
        (&intent[..], b"KL\x02", "format 2", "upgrade this application", ErrorKind::Unsupported),
        (&intent[..], b"KL\x01\x01\x07\x00", "must never change", moving, ErrorKind::Config),
        (&intent[..], b"KL\x01\x01\x02\x00\x01", "damaged", moving, ErrorKind::Protocol),
    ] {
        let stage = Stage::set(bootstrap, 3).await;
        let stranger = Producer::builder("").cluster(std::sync::Arc::clone(&stage.cluster)).build().unwrap();
        for partition in 0..2 {
            let record = ProducerRecord::new(&stage.ledger).partition(partition).key(key).value(value);
            stranger.send(record).await.unwrap().await.unwrap();
        }
        let consumer = stage.consumer();
        says(&refused(&consumer).await, kind, &[&stage.ledger, "offset 0", word, advice]);
    }
}

/// On a broker with an authoriser.
pub(crate) async fn rights(bootstrap: &str, broker: Keeper<'_>) {
    for (operation, word) in [
        (Operation::Read, "lacks READ"),
        (Operation::Describe, "lacks DESCRIBE"),
        (Operation::DescribeConfigs, "lacks DESCRIBE_CONFIGS"),
    ] {
        let stage = Stage::set(bootstrap, 3).await;
        acls::allow_the_rest(broker, Resource::Topic, &stage.ledger).unwrap();
        acls::deny(broker, Resource::Topic, &stage.ledger, operation).unwrap();
        let consumer = stage.consumer();
        let error = match operation {
            Operation::Read => refused_at_last(&consumer).await,
            _ => refused(&consumer).await,
        };
        says(&error, ErrorKind::Authorization, &[&stage.ledger, word, "READ, WRITE, DESCRIBE and"]);
    }
    let stage = Stage::set(bootstrap, 3).await;
    let (consumer, producer) = (stage.consumer(), stage.producer().await);
    let records = some(&consumer).await;
    acls::allow_the_rest(broker, Resource::Topic, &stage.ledger).unwrap();
    acls::deny(broker, Resource::Topic, &stage.ledger, Operation::Write).unwrap();
    producer.begin_transaction().unwrap();
    stage.forward(&producer, &records).await;
    let acks = ShareAcknowledgements::from_records(&records, AckType::Accept).unwrap();
    let member = consumer.share_group_metadata().unwrap();
    let staged = producer.send_share_acks_to_transaction(acks, &member).await;
    let error = match staged {
        Ok(()) => producer.commit_transaction().await.unwrap_err(),
        Err(error) => error,
    };
    assert!(error.is_abortable(), "{error:?}");
    says(&error, error.kind(), &[&stage.ledger, "lacks WRITE", "READ, WRITE, DESCRIBE and"]);
    producer.abort_transaction().await.unwrap();
    assert!(stage.output().await.is_empty());
}
