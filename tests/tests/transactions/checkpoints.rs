//! Transactions that follow checkpoints, killed at every step and recovered.

use super::embedded;
use super::scenarios::{topic, values};
use super::staging::{RECORDS, Setup, setup};
use kafka_share::net::Cluster;
use kafka_share::{
    AckType, AcknowledgementMode, Admin, CheckpointCoordinator, CheckpointState, ClientConfig, ErrorKind,
    KafkaShareConsumer, ProducerRecord, ShareAcknowledgements, TransactionalProducer, TransactionalProducerBuilder,
};
use kafka_share_broker::{EmbeddedBroker, Fault, FaultAction, GroupBounds};
use kafka_share_messages::ApiKey;
use std::sync::Arc;
use std::time::Duration;

const POOL: usize = 3;

fn settings(bootstrap: &str, prefix: &str) -> TransactionalProducerBuilder {
    let cluster = Cluster::new(ClientConfig::new(bootstrap)).unwrap();
    TransactionalProducer::builder("", prefix).cluster(cluster).max_block(Duration::from_secs(20))
}

async fn write(coordinator: &CheckpointCoordinator, topic: &str, value: &str) {
    let transaction = coordinator.transaction().await.unwrap();
    drop(transaction.producer().send(ProducerRecord::new(topic).value(value)).await.unwrap());
}

/// Through text, as it would be kept.
fn kept(state: CheckpointState) -> CheckpointState {
    state.to_string().parse().unwrap()
}

pub(crate) async fn checkpoints_commit_what_came_before_them_and_no_more(bootstrap: &str) {
    let (cluster, topic) = topic(bootstrap, 1).await;
    let coordinator = CheckpointCoordinator::open(settings(bootstrap, &topic), POOL).await.unwrap();
    write(&coordinator, &topic, "1").await;
    coordinator.prepare_commit(1).await.unwrap();
    write(&coordinator, &topic, "2").await;
    let error = coordinator.prepare_commit(1).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidState, "{error}");
    coordinator.prepare_commit(2).await.unwrap();
    write(&coordinator, &topic, "3").await;
    let error = coordinator.prepare_commit(3).await.unwrap_err();
    assert!(error.to_string().contains("larger pool"), "{error}");
    assert!(values(&cluster, &topic).await.is_empty());
    coordinator.notify_checkpoint_complete(1).await.unwrap();
    assert_eq!(values(&cluster, &topic).await, ["1"]);
    // 2 is complete and its transaction not committed when the process dies; 3 was not even prepared.
    let state = kept(coordinator.snapshot_state());
    assert_eq!(state.prepared.keys().copied().collect::<Vec<_>>(), [2]);
    drop(coordinator);
    for _ in 0..2 {
        let (coordinator, found) =
            CheckpointCoordinator::recover(settings(bootstrap, &topic), POOL, &state).await.unwrap();
        if found.committed != [2] {
            // Once more, after a new life of its ids: what became of it cannot be told any more, and is not made up.
            assert_eq!((found.committed.len(), found.lost.len(), found.unknown.len()), (0, 0, 1), "{found:?}");
        }
        assert_eq!(values(&cluster, &topic).await[..2], ["1", "2"]);
        drop(coordinator);
    }
    let coordinator = CheckpointCoordinator::open(settings(bootstrap, &topic), POOL).await.unwrap();
    for round in 10..20 {
        write(&coordinator, &topic, &round.to_string()).await;
        coordinator.prepare_commit(round).await.unwrap();
        if round % 3 == 0 {
            coordinator.abort_checkpoint(round).await.unwrap();
        } else {
            coordinator.notify_checkpoint_complete(round).await.unwrap();
        }
    }
    write(&coordinator, &topic, "never").await;
    coordinator.abort_current().await.unwrap();
    coordinator.notify_checkpoint_complete(u64::MAX).await.unwrap();
    coordinator.close(Duration::from_secs(10)).await.unwrap();
    assert_eq!(values(&cluster, &topic).await, ["1", "2", "10", "11", "13", "14", "16", "17", "19"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn prepares_that_wait_for_their_turn_have_a_transaction_each() {
    let broker = embedded(2).await;
    let (cluster, topic) = topic(&broker.bootstrap_servers(), 1).await;
    let coordinator = CheckpointCoordinator::open(settings(&broker.bootstrap_servers(), &topic), 4).await.unwrap();
    write(&coordinator, &topic, "1").await;
    coordinator.prepare_commit(1).await.unwrap();
    write(&coordinator, &topic, "2").await;
    broker.fault(Fault::new(FaultAction::Delay(Duration::from_millis(300))).key(ApiKey::END_TXN));
    // Both come while the first checkpoint is being committed.
    let (committed, second, third) = tokio::join!(
        coordinator.notify_checkpoint_complete(1),
        coordinator.prepare_commit(2),
        coordinator.prepare_commit(3)
    );
    committed.and(second).and(third).unwrap();
    let state = coordinator.snapshot_state();
    assert_ne!(state.prepared[&2].transactional_id, state.prepared[&3].transactional_id);
    coordinator.notify_checkpoint_complete(3).await.unwrap();
    assert_eq!(values(&cluster, &topic).await, ["1", "2"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_abort_that_was_not_answered_does_not_block_its_transactional_id() {
    let broker = embedded(2).await;
    let (cluster, topic) = topic(&broker.bootstrap_servers(), 1).await;
    let coordinator = CheckpointCoordinator::open(settings(&broker.bootstrap_servers(), &topic), 2).await.unwrap();
    write(&coordinator, &topic, "given up").await;
    coordinator.transaction().await.unwrap().producer().flush().await.unwrap();
    let slow = broker.fault(Fault::new(FaultAction::Delay(Duration::from_secs(3))).key(ApiKey::END_TXN));
    tokio::select! {
        result = coordinator.abort_current() => unreachable!("it is answered later: {result:?}"),
        () = async { while broker.fault_hits(slow) == 0 { tokio::time::sleep(Duration::from_millis(5)).await } } => {}
    }
    write(&coordinator, &topic, "kept").await;
    coordinator.prepare_commit(1).await.unwrap();
    coordinator.notify_checkpoint_complete(1).await.unwrap();
    assert_eq!(values(&cluster, &topic).await, ["kept"]);
}

/// Where the process dies, in the life of a checkpoint.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Death {
    Never,
    BeforePrepare,
    AfterPrepare,
    AfterSnapshot,
    AfterComplete,
    AfterCommit,
}

const DEATHS: [Death; 5] =
    [Death::BeforePrepare, Death::AfterPrepare, Death::AfterSnapshot, Death::AfterComplete, Death::AfterCommit];

/// A stream processor with its own, safe store: the state of the last complete checkpoint, and how many records it counted.
struct Processor {
    coordinator: CheckpointCoordinator,
    consumer: KafkaShareConsumer,
    counted: usize,
}

/// What the store has.
#[derive(Clone, Default)]
struct Store {
    checkpoint: u64,
    state: CheckpointState,
    counted: usize,
}

impl Processor {
    async fn start(broker: &EmbeddedBroker, store: &Store) -> Processor {
        let bootstrap = broker.bootstrap_servers();
        let (coordinator, found) =
            CheckpointCoordinator::recover(settings(&bootstrap, "flow"), POOL, &store.state).await.unwrap();
        assert!(found.lost.is_empty() && found.unknown.is_empty(), "{found:?}");
        let builder = KafkaShareConsumer::builder(&bootstrap, "g").acknowledgement_mode(AcknowledgementMode::Explicit);
        let consumer = builder.max_poll_records(10).build().unwrap();
        consumer.subscribe(["in"]).unwrap();
        Processor { coordinator, consumer, counted: store.counted }
    }

    /// One checkpoint; answers whether the process lives still.
    async fn run(&mut self, store: &mut Store, death: Death) -> bool {
        let number = store.checkpoint + 1;
        let transaction = self.coordinator.transaction().await.unwrap();
        let records = self.consumer.poll(Duration::from_millis(500)).await.unwrap();
        if !records.is_empty() {
            for record in records.iter() {
                let out = ProducerRecord::new("out").value(record.value().unwrap());
                drop(transaction.producer().send(out).await.unwrap());
            }
            let acks = ShareAcknowledgements::from_records(&records, AckType::Accept).unwrap();
            let member = self.consumer.share_group_metadata().unwrap();
            transaction.producer().send_share_acks_to_transaction(acks, &member).await.unwrap();
            self.counted += records.len();
        }
        if death == Death::BeforePrepare {
            return false;
        }
        self.coordinator.prepare_commit(number).await.unwrap();
        if death == Death::AfterPrepare {
            return false;
        }
        let state = kept(self.coordinator.snapshot_state());
        if death == Death::AfterSnapshot {
            return false;
        }
        *store = Store { checkpoint: number, state, counted: self.counted };
        if death == Death::AfterComplete {
            return false;
        }
        self.coordinator.notify_checkpoint_complete(number).await.unwrap();
        death != Death::AfterCommit
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_processor_that_dies_at_every_step_counts_each_record_once() {
    for version in [1, 2] {
        // Every death costs what was acquired a delivery, seen or not, and at the limit it is archived.
        let bounds = GroupBounds { delivery_count_limit: (2, 10_000), ..GroupBounds::default() };
        let builder = EmbeddedBroker::builder().nodes(3).transaction_version(version).group_bounds(bounds);
        let broker = builder.start().await.unwrap();
        let Setup { cluster, consumer, producer } = setup(&broker).await;
        drop((consumer, producer));
        let admin = Admin::on(Arc::clone(&cluster));
        admin.alter_share_group_configs("g", &[("share.delivery.count.limit", "10000")]).await.unwrap();
        let mut store = Store::default();
        let mut processor = Processor::start(&broker, &store).await;
        let mut deaths = DEATHS.into_iter().flat_map(|death| [Death::Never, death]).cycle();
        for _ in 0..200 {
            if store.counted == RECORDS {
                break;
            }
            if !processor.run(&mut store, deaths.next().unwrap()).await {
                // Killed: nothing is closed, what it held is free once its locks have ended.
                drop(processor);
                processor = Processor::start(&broker, &store).await;
                broker.expire_locks("g");
            }
        }
        let left = broker.dump().share;
        assert_eq!(store.counted, RECORDS, "version {version}: the processor's own count, {left:?}");
        processor.coordinator.notify_checkpoint_complete(store.checkpoint).await.unwrap();
        let mut output: Vec<usize> =
            values(&Arc::clone(&cluster), "out").await.iter().map(|v| v.parse().unwrap()).collect();
        output.sort_unstable();
        assert_eq!(output, (0..RECORDS).collect::<Vec<_>>(), "version {version}");
        assert!(processor.consumer.poll(Duration::from_millis(700)).await.unwrap().is_empty(), "all are acknowledged");
    }
}
