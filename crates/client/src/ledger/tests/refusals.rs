//! Ledgers that cannot be used, and what is said about them.

use super::*;
use crate::admin::NewTopic;
use crate::{Error, ErrorKind, Producer, ProducerRecord};
use kafka_share_broker::{Fault, FaultAction, Rewrite};
use kafka_share_messages::{ApiKey, DescribeConfigsResponse, ErrorCode, MetadataResponse};

/// The error of a first staging, whose acknowledgements go back to their consumer.
async fn refusal(broker: &EmbeddedBroker, backend: AckBackendChoice) -> Error {
    let settings = TransactionalProducer::builder(&broker.bootstrap_servers(), "a").share_ack_backend(backend);
    let producer = settings.max_block(SOON).build().unwrap();
    producer.init_transactions().await.unwrap();
    producer.begin_transaction().unwrap();
    let member = Member::new(broker, GROUP, SOON);
    let error = producer.send_share_acks_to_transaction(acks(0, 4, AckType::Accept), &member.metadata()).await;
    // Nothing was staged: the transaction goes on without.
    producer.commit_transaction().await.unwrap();
    error.unwrap_err()
}

fn says(error: &Error, kind: ErrorKind, words: &[&str]) {
    assert_eq!(error.kind(), kind, "{error}");
    for word in words {
        assert!(error.to_string().contains(word), "{word:?} is not in: {error}");
    }
}

async fn bare() -> EmbeddedBroker {
    EmbeddedBroker::builder().transactional_acks(false).topic("out", 1).start().await.unwrap()
}

#[tokio::test]
async fn a_ledger_that_does_not_exist() {
    let broker = bare().await;
    let advice = ["share-ack-ledger", "does not exist", "kshare ledger create", "ledger.auto.create"];
    says(&refusal(&broker, AckBackendChoice::Ledger).await, ErrorKind::Config, &advice);
    // On its own, it says what is missing for either way.
    says(
        &refusal(&broker, AckBackendChoice::Auto).await,
        ErrorKind::Unsupported,
        &["KIP-1289", "kshare ledger create"],
    );
    says(&refusal(&broker, AckBackendChoice::Native).await, ErrorKind::Unsupported, &["KIP-1289"]);
    let none = refusal(&broker, AckBackendChoice::None).await;
    says(&none, ErrorKind::Unsupported, &["share.ack.transaction.backend is none"]);
}

#[tokio::test]
async fn it_is_made_where_that_is_asked_for() {
    let broker = bare().await;
    let settings = [
        ("bootstrap.servers", broker.bootstrap_servers()),
        ("transactional.id", "a".to_owned()),
        ("ledger.auto.create", "true".to_owned()),
        ("share.ack.ledger.topic", "my-ledger".to_owned()),
    ];
    let producer = TransactionalProducer::from_properties(settings).unwrap();
    producer.init_transactions().await.unwrap();
    producer.begin_transaction().unwrap();
    let member = Member::new(&broker, GROUP, SOON);
    producer.send_share_acks_to_transaction(acks(0, 4, AckType::Accept), &member.metadata()).await.unwrap();
    producer.commit_transaction().await.unwrap();
    assert_eq!(member.tail().topic().name, "my-ledger");
    let cluster = Arc::clone(&member.cluster);
    LedgerTopic::open(&cluster, "my-ledger", false, deadline()).await.unwrap();
}

#[tokio::test]
async fn settings_that_lose_intents() {
    for (name, value, told) in [
        ("cleanup.policy", "delete", "must be compact alone"),
        ("cleanup.policy", "compact,delete", "must be compact alone"),
        ("unclean.leader.election.enable", "true", "must be false"),
    ] {
        let broker = bare().await;
        admin(&broker).create_ledger(&NewLedger::new().config(name, value)).await.unwrap();
        says(&refusal(&broker, AckBackendChoice::Ledger).await, ErrorKind::Config, &["share-ack-ledger", name, told]);
    }
}

#[tokio::test]
async fn less_safe_than_the_output() {
    let builder = EmbeddedBroker::builder().nodes(3).transactional_acks(false);
    let broker = builder.start().await.unwrap();
    let admin = admin(&broker);
    let out = NewTopic::new("out", 1).replication_factor(3).config("min.insync.replicas", "2");
    admin.create_topic(out).await.unwrap();
    for (name, replicas, in_sync, word) in
        [("l1", 2, 2, "2 replicas"), ("l2", 3, 1, "min.insync.replicas is 1"), ("l3", 3, 2, "")]
    {
        let ledger = NewLedger::new().topic(name).replication_factor(replicas).min_in_sync_replicas(in_sync);
        admin.create_ledger(&ledger).await.unwrap();
        let settings = TransactionalProducer::builder(&broker.bootstrap_servers(), "a").ledger_topic(name);
        let producer = settings.build().unwrap();
        producer.init_transactions().await.unwrap();
        producer.begin_transaction().unwrap();
        drop(producer.send(ProducerRecord::new("out").value("1")).await.unwrap());
        let member = Member::new(&broker, GROUP, SOON);
        producer.send_share_acks_to_transaction(acks(0, 4, AckType::Accept), &member.metadata()).await.unwrap();
        let result = producer.commit_transaction().await;
        if word.is_empty() {
            result.unwrap();
            continue;
        }
        let error = result.unwrap_err();
        assert!(error.is_abortable() && error.to_string().contains(word), "{error}");
        producer.abort_transaction().await.unwrap();
        assert_eq!(member.ends(), [TransactionEnd::Aborted]);
    }
}

#[tokio::test]
async fn rights_that_are_missing() {
    let broker = broker(2).await;
    let describe = Rewrite::message(|_, answer: &mut MetadataResponse| {
        for topic in
            answer.topics.iter_mut().filter(|t| t.name.as_ref().is_some_and(|n| n.as_str() == "share-ack-ledger"))
        {
            topic.error_code = ErrorCode::TOPIC_AUTHORIZATION_FAILED;
            topic.partitions.clear();
        }
    });
    broker.fault(Fault::new(FaultAction::Rewrite(describe)).key(ApiKey::METADATA).times(u32::MAX));
    let rights = ["share-ack-ledger", "READ, WRITE, DESCRIBE and"];
    says(&refusal(&broker, AckBackendChoice::Ledger).await, ErrorKind::Authorization, &rights);
    broker.clear_faults();
    let configs = Rewrite::message(|_, answer: &mut DescribeConfigsResponse| {
        answer.results.iter_mut().for_each(|r| r.error_code = ErrorCode::TOPIC_AUTHORIZATION_FAILED);
    });
    broker.fault(Fault::new(FaultAction::Rewrite(configs)).key(ApiKey::DESCRIBE_CONFIGS));
    says(&refusal(&broker, AckBackendChoice::Ledger).await, ErrorKind::Authorization, &["DESCRIBE_CONFIGS"]);
}

/// Commits a transaction whose ledger holds a record of somebody else.
async fn commit_beside(key: &[u8], value: &[u8]) -> (Error, Arc<Member>) {
    let broker = broker(2).await;
    let partition = kafka_share_core::ledger::Layout::new(8).unwrap().partition_for(GROUP);
    let stranger = Producer::builder(&broker.bootstrap_servers()).build().unwrap();
    let record = ProducerRecord::new("share-ack-ledger").partition(partition).key(key).value(value);
    stranger.send(record).await.unwrap().await.unwrap();
    let member = Member::new(&broker, GROUP, SOON);
    let producer = producer(&broker, "a").await;
    let staged = producer.send_share_acks_to_transaction(acks(0, 4, AckType::Accept), &member.metadata()).await;
    let error = match staged {
        Ok(()) => producer.commit_transaction().await.unwrap_err(),
        Err(error) => error,
    };
    producer.abort_transaction().await.unwrap();
    assert_eq!(member.ends(), [TransactionEnd::Aborted], "nothing is acknowledged");
    (error, member)
}

#[tokio::test]
async fn records_of_others_newer_ones_and_damaged_ones() {
    let mut intent = vec![1];
    intent.extend([7; 24]);
    let moving = "create a ledger under another name";
    for (key, value, word, advice, kind) in [
        (&b"user-17"[..], &b"{}"[..], "used for nothing else", moving, ErrorKind::Config),
        (&intent[..], b"KL\x02", "format 2", "upgrade this application", ErrorKind::Unsupported),
        (&intent[..], b"KL\x01\x01\x07\x00", "must never change", moving, ErrorKind::Config),
        (&intent[..], b"KL\x01\x01\x08\x00\x01", "damaged", moving, ErrorKind::Protocol),
    ] {
        let (error, member) = commit_beside(key, value).await;
        assert!(error.is_abortable() && error.to_string().contains(word), "{error}");
        let words = ["share-ack-ledger", "offset 0", word, advice];
        says(&member.tail().error().expect("an error that stays"), kind, &words);
    }
}

#[tokio::test]
async fn metadata_that_was_put_together_by_hand() {
    let broker = broker(2).await;
    let producer = producer(&broker, "a").await;
    let metadata = ShareGroupMetadata::new(GROUP, "m", 1);
    let error = producer.send_share_acks_to_transaction(acks(0, 4, AckType::Accept), &metadata).await.unwrap_err();
    says(&error, ErrorKind::Unsupported, &["share_group_metadata()"]);
    producer.commit_transaction().await.unwrap();
}

#[tokio::test]
async fn a_ledger_that_cannot_be_written_to() {
    let broker = broker(2).await;
    let member = Member::new(&broker, GROUP, SOON);
    let producer = producer(&broker, "a").await;
    for code in [ErrorCode::INVALID_RECORD, ErrorCode::TOPIC_AUTHORIZATION_FAILED, ErrorCode::POLICY_VIOLATION] {
        producer.send_share_acks_to_transaction(acks(0, 4, AckType::Accept), &member.metadata()).await.unwrap();
        broker.fault(Fault::new(FaultAction::Error(code)).key(ApiKey::PRODUCE));
        let error = producer.commit_transaction().await.unwrap_err();
        assert!(error.is_abortable(), "{error}");
        let rights =
            error.to_string().contains("lacks WRITE on it; it needs READ, WRITE, DESCRIBE and DESCRIBE_CONFIGS");
        assert_eq!(rights, code == ErrorCode::TOPIC_AUTHORIZATION_FAILED, "{error}");
        producer.abort_transaction().await.unwrap();
        member.until_standing(0, Standing::Free).await;
        producer.begin_transaction().unwrap();
    }
    assert_eq!(member.ends(), [TransactionEnd::Aborted; 3]);
}

#[tokio::test]
async fn partitions_that_were_added_end_it() {
    let broker = broker(2).await;
    let member = Member::new(&broker, GROUP, SOON);
    let producer = producer(&broker, "a").await;
    producer.send_share_acks_to_transaction(acks(0, 4, AckType::Accept), &member.metadata()).await.unwrap();
    producer.commit_transaction().await.unwrap();
    admin(&broker).create_partitions("share-ack-ledger", 9).await.unwrap();
    // Whoever looks anew sees it.
    member.cluster.refresh_topics(&["share-ack-ledger".into()], deadline()).await.unwrap();
    let mut news = member.tail().subscribe();
    let wait = async {
        while member.tail().error().is_none() {
            news.changed().await.unwrap();
        }
    };
    tokio::time::timeout(SOON, wait).await.unwrap();
    says(&member.tail().error().unwrap(), ErrorKind::Config, &["9 partitions", "had 8", "never change"]);
    producer.begin_transaction().unwrap();
    let error =
        producer.send_share_acks_to_transaction(acks(5, 9, AckType::Accept), &member.metadata()).await.unwrap_err();
    assert!(error.is_abortable() && error.to_string().contains("9 partitions"), "{error}");
    producer.abort_transaction().await.unwrap();
}

#[tokio::test]
async fn a_ledger_without_enough_replicas_in_sync_and_a_full_disk() {
    tokio::join!(cannot_append(ErrorCode::NOT_ENOUGH_REPLICAS), cannot_append(ErrorCode::KAFKA_STORAGE_ERROR));
}

async fn cannot_append(code: ErrorCode) {
    let broker = broker(2).await;
    let member = Member::new(&broker, GROUP, SOON);
    let mut settings = TransactionalProducer::builder(&broker.bootstrap_servers(), "a");
    for (name, value) in [("delivery.timeout.ms", "5000"), ("request.timeout.ms", "2500"), ("retry.backoff.ms", "50")] {
        settings.set(name, value).unwrap();
    }
    let producer = settings.build().unwrap();
    producer.init_transactions().await.unwrap();
    producer.begin_transaction().unwrap();
    producer.send_share_acks_to_transaction(acks(0, 4, AckType::Accept), &member.metadata()).await.unwrap();
    broker.fault(Fault::new(FaultAction::Error(code)).key(ApiKey::PRODUCE).times(u32::MAX));
    let error = producer.commit_transaction().await.unwrap_err();
    let told = [error.to_string().contains("share-ack-ledger"), error.to_string().contains(&code.to_string())];
    assert!(error.is_abortable() && told == [true; 2], "{error}");
    producer.abort_transaction().await.unwrap();
    assert_eq!(member.ends(), [TransactionEnd::Aborted], "nothing is acknowledged");
    broker.clear_faults();
    producer.begin_transaction().unwrap();
    producer.send_share_acks_to_transaction(acks(0, 4, AckType::Accept), &member.metadata()).await.unwrap();
    producer.commit_transaction().await.unwrap();
}

/// With the settings as they are by default: the time of the call is over before that of the record.
#[tokio::test]
async fn what_the_ledgers_leader_answers_is_named_when_the_time_is_over() {
    let run = async |code: ErrorCode| {
        let broker = broker(2).await;
        let member = Member::new(&broker, GROUP, SOON);
        let producer = patient(&broker).await;
        producer.send_share_acks_to_transaction(acks(0, 4, AckType::Accept), &member.metadata()).await.unwrap();
        broker.fault(Fault::new(FaultAction::Error(code)).key(ApiKey::PRODUCE).times(u32::MAX));
        let error = producer.commit_transaction().await.unwrap_err();
        says(&error, ErrorKind::Broker, &["ledger share-ack-ledger-", &code.to_string(), code.about()]);
        assert!(error.is_abortable() && error.code() == Some(code), "{error:?}");
        broker.clear_faults();
        producer.abort_transaction().await.unwrap();
        assert_eq!(member.ends(), [TransactionEnd::Aborted], "nothing is acknowledged");
    };
    tokio::join!(run(ErrorCode::NOT_ENOUGH_REPLICAS), run(ErrorCode::KAFKA_STORAGE_ERROR));
}

/// `max.block.ms` is far below the limits of the requests that are made on the way.
const BLOCK: Duration = Duration::from_secs(3);

async fn patient(broker: &EmbeddedBroker) -> TransactionalProducer {
    let settings = TransactionalProducer::builder(&broker.bootstrap_servers(), "a");
    let producer = settings.share_ack_backend(AckBackendChoice::Ledger).max_block(BLOCK).build().unwrap();
    producer.init_transactions().await.unwrap();
    producer.begin_transaction().unwrap();
    producer
}

#[tokio::test]
async fn brokers_that_do_not_answer_hold_nobody_longer_than_max_block() {
    let silent = |key| Fault::new(FaultAction::Ignore).key(key).times(u32::MAX);
    let staging = async |key: ApiKey| {
        let broker = broker(2).await;
        let (member, producer) = (Member::new(&broker, GROUP, SOON), patient(&broker).await);
        broker.fault(silent(key));
        let begun = Instant::now();
        let acks = acks(0, 4, AckType::Accept);
        let error = producer.send_share_acks_to_transaction(acks, &member.metadata()).await.unwrap_err();
        assert!(begun.elapsed() < 5 * BLOCK, "{:?}: {error}", begun.elapsed());
        assert!(error.to_string().contains("share-ack-ledger"), "{error}");
    };
    let commit = async |key: ApiKey| {
        let broker = broker(2).await;
        let (member, producer) = (Member::new(&broker, GROUP, SOON), patient(&broker).await);
        drop(producer.send(ProducerRecord::new("out").value("1")).await.unwrap());
        producer.send_share_acks_to_transaction(acks(0, 4, AckType::Accept), &member.metadata()).await.unwrap();
        broker.fault(silent(key));
        let begun = Instant::now();
        let error = producer.commit_transaction().await.unwrap_err();
        assert!(begun.elapsed() < 5 * BLOCK, "{:?}: {error}", begun.elapsed());
        says(&error, ErrorKind::Broker, &["\"out\"", "share-ack-ledger"]);
        assert!(error.is_abortable(), "{error:?}");
    };
    let (metadata, configs) = (ApiKey::METADATA, ApiKey::DESCRIBE_CONFIGS);
    tokio::join!(staging(metadata), staging(configs), commit(metadata), commit(configs));
}

/// Only a comparison is left out.
#[tokio::test]
async fn an_output_whose_settings_may_not_be_looked_at_is_written_to() {
    let broker = broker(2).await;
    let (member, producer) = (Member::new(&broker, GROUP, SOON), patient(&broker).await);
    drop(producer.send(ProducerRecord::new("out").value("1")).await.unwrap());
    producer.send_share_acks_to_transaction(acks(0, 4, AckType::Accept), &member.metadata()).await.unwrap();
    let configs = Rewrite::message(|_, answer: &mut DescribeConfigsResponse| {
        answer.results.iter_mut().for_each(|r| r.error_code = ErrorCode::TOPIC_AUTHORIZATION_FAILED);
    });
    let fault = broker.fault(Fault::new(FaultAction::Rewrite(configs)).key(ApiKey::DESCRIBE_CONFIGS));
    producer.commit_transaction().await.unwrap();
    assert_eq!(broker.fault_hits(fault), 1);
}
