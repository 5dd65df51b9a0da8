//! The ledger's backend and reader on the embedded broker, beside a stand-in for the consumer: what a transaction writes,
//! what stops it, and which topics are refused.

mod compaction;
mod contention;
mod refusals;
mod transactions;

use super::{AckBackendChoice, LedgerMember, LedgerPart, LedgerSettings, LedgerTopic, NewLedger, Tail};
use crate::acknowledgements::{
    ShareAcknowledgements, ShareGroupMetadata, StagedPart, TopicIdPartition, TransactionEnd,
};
use crate::net::Cluster;
use crate::{AckType, Admin, ClientConfig, Result, TransactionalProducer, Uuid};
use kafka_share_broker::EmbeddedBroker;
use kafka_share_core::ledger::{Conflict, LedgerReader, Standing};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

const TP: TopicIdPartition = TopicIdPartition { topic_id: Uuid([5; 16]), partition: 0 };
const GROUP: &str = "g";
const SOON: Duration = Duration::from_secs(30);

/// A consumer that holds whatever it is asked for.
#[derive(Debug)]
struct Member {
    cluster: Arc<Cluster>,
    group: String,
    tail: OnceLock<Arc<Tail>>,
    lock: Duration,
    told: Arc<Mutex<Told>>,
    me: std::sync::Weak<Member>,
}

/// What its staged parts were told.
#[derive(Debug, Default)]
struct Told {
    ends: Vec<TransactionEnd>,
    done: Vec<Conflict>,
    contended: usize,
}

struct Part {
    member: Arc<Member>,
    by_ledger: bool,
}

impl StagedPart for Part {
    fn refused(&mut self, _which: &dyn Fn(TopicIdPartition) -> bool) {}

    fn ledger(&self) -> Option<LedgerPart> {
        let member: Arc<dyn LedgerMember> = Arc::<Member>::clone(&self.member);
        Some(LedgerPart { member, lowest_ask: 1 })
    }

    fn staged_by_ledger(&mut self) {
        self.by_ledger = true;
    }

    fn contended(&mut self, group: &str, done: &[Conflict]) {
        assert_eq!(group, self.member.group);
        let mut told = self.member.told.lock().unwrap();
        told.contended += 1;
        told.done.extend(done);
    }

    fn ended(self: Box<Self>, end: TransactionEnd) {
        assert!(self.by_ledger || end == TransactionEnd::NotStaged);
        self.member.told.lock().unwrap().ends.push(end);
    }
}

impl LedgerMember for Member {
    fn group(&self) -> &str {
        &self.group
    }

    fn attach(&self, topic: &Arc<LedgerTopic>, settings: &LedgerSettings) -> Result<Arc<Tail>> {
        if let Some(tail) = self.tail.get() {
            return Ok(Arc::clone(tail));
        }
        // It has asked once, and holds what that brought.
        let tail = Tail::start(Arc::clone(&self.cluster), Arc::clone(topic), &self.group, settings, (2, 1))?;
        tail.with(|r| r.set_record_lock(self.lock));
        Ok(Arc::clone(self.tail.get_or_init(|| tail)))
    }

    fn needs_intent(&self) -> Option<bool> {
        self.tail.get().map(|tail| tail.with(|r| r.needs_intent()))
    }

    fn goes_by_ledger_alone(&self) {}

    fn is_reading(&self) -> bool {
        self.tail.get().is_some_and(|tail| tail.with(|r| !r.is_caught_up()))
    }

    fn stage(&self, _acks: &ShareAcknowledgements) -> Result<Box<dyn StagedPart>> {
        let member = self.me.upgrade().expect("alive");
        Ok(Box::new(Part { member, by_ledger: false }))
    }
}

impl Member {
    fn new(broker: &EmbeddedBroker, group: &str, lock: Duration) -> Arc<Self> {
        Self::on(Cluster::new(ClientConfig::new(&broker.bootstrap_servers())).unwrap(), group, lock)
    }

    fn on(cluster: Arc<Cluster>, group: &str, lock: Duration) -> Arc<Self> {
        Arc::new_cyclic(|me| Member {
            cluster,
            group: group.into(),
            tail: OnceLock::new(),
            lock,
            told: Arc::default(),
            me: me.clone(),
        })
    }

    fn metadata(self: &Arc<Self>) -> ShareGroupMetadata {
        let member: Arc<dyn LedgerMember> = Arc::<Member>::clone(self);
        ShareGroupMetadata::new(self.group.as_str(), "m", 1).of_member(member)
    }

    fn tail(&self) -> &Arc<Tail> {
        self.tail.get().expect("attached")
    }

    fn ends(&self) -> Vec<TransactionEnd> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner).ends.clone()
    }

    /// Waits until the reader says so.
    async fn until(&self, what: &str, is_so: impl Fn(&mut LedgerReader) -> bool) {
        let mut news = self.tail().subscribe();
        let wait = async {
            while !self.tail().with(&is_so) {
                news.changed().await.unwrap();
            }
        };
        tokio::time::timeout(SOON, wait).await.unwrap_or_else(|_| panic!("{what}: {:?}", self.tail().trouble()));
    }

    async fn until_standing(&self, offset: i64, standing: Standing) {
        let is_so = |r: &mut LedgerReader| r.standings(TP, offset, offset)[0].standing == standing;
        self.until(&format!("offset {offset} is {standing:?}"), is_so).await;
    }
}

fn acks(first: i64, last: i64, ack: AckType) -> ShareAcknowledgements {
    let mut acks = ShareAcknowledgements::new();
    acks.add(TP, first, last, ack).unwrap();
    acks
}

async fn broker(transaction_version: i16) -> EmbeddedBroker {
    let builder = EmbeddedBroker::builder().nodes(2).transaction_version(transaction_version);
    let broker = builder.transactional_acks(false).topic("out", 1).start().await.unwrap();
    admin(&broker).create_ledger(&NewLedger::new()).await.unwrap();
    broker
}

fn admin(broker: &EmbeddedBroker) -> Admin {
    Admin::new(ClientConfig::new(&broker.bootstrap_servers())).unwrap()
}

/// A producer that has begun a transaction.
async fn producer(broker: &EmbeddedBroker, id: &str) -> TransactionalProducer {
    let settings = TransactionalProducer::builder(&broker.bootstrap_servers(), id);
    let producer = settings.share_ack_backend(AckBackendChoice::Auto).max_block(SOON).build().unwrap();
    producer.init_transactions().await.unwrap();
    producer.begin_transaction().unwrap();
    producer
}

fn metric(producer: &TransactionalProducer, name: &str) -> f64 {
    producer.metrics().get(&format!("share-ack-ledger-{name}-total")).unwrap()
}

fn deadline() -> Instant {
    Instant::now() + SOON
}
