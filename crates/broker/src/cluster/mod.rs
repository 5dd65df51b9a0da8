//! The whole cluster as one machine: connections in, frames out, time and chance as arguments.

mod authentication;
mod connections;
mod dispatch;
mod durable;
mod faults;
mod housekeeping;
mod leaders;
mod limits;
mod nodes;
mod partitions;
mod placement;
mod rights;
mod settings;
mod topics;
mod transactions;
mod waiters;

pub use connections::{CloseReason, ConnId};
pub(crate) use nodes::Node;
pub(crate) use partitions::TopicRef;
pub use placement::CoordinatorKind;
pub(crate) use placement::share_key;
pub(crate) use topics::Refusal;
pub(crate) use topics::check_name as check_topic_name;
pub(crate) use topics::{Partition, Topic, Topics};
pub(crate) use waiters::{Parked, WaitKey};

use crate::faults::Faults;
use crate::fetch_sessions::{FetchSessions, Limits};
use crate::rng::Rng;
use crate::security::{Credentials, KEY_BYTES, Secrets};
use crate::settings::Overrides;
use crate::share::Share;
use crate::txn_coordinator::{self, Transactions};
use crate::{ClusterConfig, Now};
use bytes::Bytes;
use connections::Connections;
use kafka_share_wire::Uuid;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;
use waiters::Waiters;

/// `min.incremental.fetch.session.eviction.ms`.
const FETCH_SESSION_EVICTION: Duration = Duration::from_secs(120);

/// What the machine wants done on a connection, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Output {
    /// Write these segments, one after the other. They are one response frame, size prefix included, unless a fault
    /// says otherwise.
    Send {
        /// Where to.
        conn: ConnId,
        /// What; shared with the log, not copied.
        segments: Vec<Bytes>,
    },
    /// A fault makes time jump: the owner's [`Now`] is this much later from here on.
    AdvanceClock {
        /// How much.
        by: Duration,
    },
    /// Close the connection after what was sent before. The machine has forgotten it already.
    Close {
        /// Which.
        conn: ConnId,
    },
}

/// All nodes, topics, logs and coordinators of an embedded cluster.
///
/// The owner calls [`Cluster::connect`], [`Cluster::handle_frame`] and [`Cluster::disconnect`] as things happen, then
/// takes all of [`Cluster::poll_output`], and calls [`Cluster::handle_timeout`] when [`Cluster::next_deadline`] comes.
pub struct Cluster {
    pub(crate) config: ClusterConfig,
    pub(crate) cluster_id: String,
    pub(crate) rng: Rng,
    /// Where nonces and salts of authentication come from.
    secrets: Secrets,
    /// What each listener checks clients against.
    credentials: Vec<Credentials>,
    pub(crate) nodes: Vec<Node>,
    pub(crate) topics: Topics,
    pub(crate) share: Share,
    faults: Faults,
    pub(crate) transactions: Transactions,
    pub(crate) fetch_sessions: FetchSessions,
    /// Bytes of all logs.
    pub(crate) log_bytes: usize,
    /// When old records and idle producers are looked for next.
    housekeeping: Duration,
    /// When idle producers were last looked for.
    producers_checked: Duration,
    group_overrides: BTreeMap<String, Overrides>,
    /// How often the cluster was started, if its data are kept.
    starts: i64,
    identity_changed: bool,
    dirty: durable::Dirty,
    /// How far a fault's clock is ahead of what the owner knows.
    ahead: Duration,
    connections: Connections,
    waiters: Waiters,
    output: VecDeque<Output>,
}

impl Cluster {
    /// A cluster without topics. Equal seeds and equal calls give equal outputs.
    #[must_use]
    pub fn new(config: ClusterConfig, seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let cluster_id = rng.uuid().to_string();
        // Apart from the ids, which a listener more or less must not change.
        let mut secrets = Secrets::seeded(&mut Rng::new(seed ^ 0x5ec2e7));
        let credentials = config.listeners.iter().map(|listener| Credentials::new(listener, &mut secrets)).collect();
        let nodes = config.nodes.iter().map(Node::new).collect();
        Cluster {
            cluster_id,
            rng,
            secrets,
            credentials,
            nodes,
            topics: Topics::default(),
            group_overrides: BTreeMap::new(),
            starts: 0,
            identity_changed: false,
            dirty: durable::Dirty::default(),
            faults: Faults::default(),
            share: Share::new(&config),
            transactions: Transactions::new(txn_coordinator::Limits {
                max_timeout_ms: config.transaction_max_timeout_ms,
                two_phase_commit: config.features.two_phase_commit,
                keep_prepared: config.features.two_phase_commit && config.features.transaction_version >= 2,
                marker_delay: Duration::from_millis(config.marker_delay_ms),
                max_ids: config.max_transactional_ids,
            }),
            fetch_sessions: FetchSessions::new(Limits {
                slots: config.fetch_session_slots,
                eviction: FETCH_SESSION_EVICTION,
                session_bytes: 1 << 20,
                total_bytes: 64 << 20,
            }),
            log_bytes: 0,
            housekeeping: housekeeping::EVERY,
            producers_checked: Duration::ZERO,
            ahead: Duration::ZERO,
            connections: Connections::default(),
            waiters: Waiters::default(),
            output: VecDeque::new(),
            config,
        }
    }

    /// The next thing to do on a connection.
    pub fn poll_output(&mut self) -> Option<Output> {
        let output = self.output.pop_front();
        if let Some(Output::AdvanceClock { by }) = &output {
            self.ahead = self.ahead.saturating_sub(*by);
        }
        output
    }

    /// When [`Cluster::handle_timeout`] should be called next, on the monotonic clock of [`Now`].
    #[must_use]
    pub fn next_deadline(&self) -> Option<Duration> {
        let housekeeping = (self.topics.len() > 0).then_some(self.housekeeping);
        let share = crate::share::next_deadline(self);
        [self.waiters.next_deadline(), self.transactions.next_deadline(), share, housekeeping]
            .into_iter()
            .flatten()
            .min()
    }

    /// Lets time pass: waiting fetches, transaction and session timeouts, locks.
    pub fn handle_timeout(&mut self, now: Now) {
        self.transactions.handle_timeout(now);
        self.complete_transactions(now);
        self.keep_house(now);
        crate::share::handle_timeout(self, now);
        self.expire_waiters(now);
        self.run_woken(now);
    }

    /// Makes the nonces and salts of authentication follow from this, which should come from the operating system: whoever
    /// knows the seed of the cluster could foresee them, and let an old exchange happen again. To be called before anybody
    /// connects; derives the keys of SCRAM anew.
    pub fn seed_secrets(&mut self, key: [u8; KEY_BYTES]) {
        self.secrets = Secrets::new(key);
        let listeners = self.config.listeners.iter();
        self.credentials = listeners.map(|listener| Credentials::new(listener, &mut self.secrets)).collect();
    }

    /// Id of the cluster, as clients see it.
    #[must_use]
    pub fn cluster_id(&self) -> &str {
        &self.cluster_id
    }

    /// Id of a topic that exists.
    #[must_use]
    pub fn topic_id(&self, name: &str) -> Option<Uuid> {
        self.topics.get(name).map(|topic| topic.id)
    }
}

impl std::fmt::Debug for Cluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cluster")
            .field("cluster_id", &self.cluster_id)
            .field("nodes", &self.nodes)
            .field("topics", &self.topics.len())
            .field("connections", &self.connections.len())
            .field("waiting", &self.waiters.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
pub(crate) mod tests;

#[cfg(test)]
mod data_tests;

#[cfg(test)]
mod txn_tests;

#[cfg(test)]
mod compaction_tests;
