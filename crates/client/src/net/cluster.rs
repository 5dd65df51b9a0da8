//! A cluster as the clients see it: connections by broker and purpose, metadata, features.

use super::connection::Connection;
use super::report::{ConnectionInfo, ConnectionState};
use super::slot::Slot;
use crate::config::split_address;
use crate::security::Secured;
use crate::{ClientConfig, Error, ErrorKind, Result};
use kafka_share_core::ApiVersions;
use kafka_share_core::backoff::Jitter;
use kafka_share_core::metadata::{Leader, Metadata, Node, Topic, TopicIdPartition};
use kafka_share_messages::metadata_request::MetadataRequestTopic;
use kafka_share_messages::{ApiKey, ErrorCode, MetadataRequest, Request};
use kafka_share_wire::{Str, Uuid};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Sends a request that any broker can answer, for as long as `limit`; once connected until `whole` where it may change
/// something, so that it is not sent twice.
async fn call_within<R: Request>(
    connection: &Connection,
    request: &R,
    limit: Instant,
    whole: Instant,
) -> Result<R::Response> {
    let reads = matches!(R::KEY, ApiKey::METADATA | ApiKey::FIND_COORDINATOR | ApiKey::DESCRIBE_CLUSTER);
    if !reads {
        connection.ready(limit).await?;
        return connection.call(request, whole).await;
    }
    // Given up and not timed out: other requests of the connection, which the broker answers in order, may be what it waits
    // for, and a request that times out ends its connection.
    let answer = tokio::time::timeout_at(limit.into(), connection.call(request, whole)).await;
    answer.unwrap_or_else(|_| Err(Error::new(ErrorKind::Timeout, "the broker takes long to answer")))
}

/// Time for the first broker of several to answer a request that any can answer; it doubles with every round.
const FIRST_PATIENCE: Duration = Duration::from_secs(2);
/// How long a broker that let a request time out is asked last.
const SLOW_MEMORY: Duration = Duration::from_secs(30);

/// What a connection is for. A ShareFetch waits at the broker and answers come in order, so fetches have their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Purpose {
    /// Partition reads.
    Fetch,
    /// The share sessions of one consumer: its fetches wait at the broker, and its sessions end with the connection, so
    /// no other client may share it.
    Session(SessionOwner),
    /// Produce.
    Produce,
    /// Groups, transactions, metadata, administration.
    Coordination,
}

/// Names the consumer that a session connection belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SessionOwner(u64);

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Place {
    Broker(i32),
    Bootstrap(usize),
}

/// Connections and metadata of one cluster; shared by the consumers, producers and admin clients built on it.
#[derive(Debug)]
pub struct Cluster {
    config: ClientConfig,
    secured: Secured,
    state: Mutex<State>,
    /// One metadata request at a time; what it brings serves all who waited.
    refresh: tokio::sync::Semaphore,
    pub(super) coordinators: Mutex<HashMap<(i8, String), i32>>,
    next_owner: AtomicU64,
}

#[derive(Debug)]
struct State {
    metadata: Metadata,
    slots: HashMap<(Place, Purpose), Slot>,
    addresses: HashMap<Place, (Str, u16)>,
    features: Option<Arc<ApiVersions>>,
    refreshed: HashMap<Str, Instant>,
    /// Brokers that let a request wait too long, and when; others are asked first for a while.
    slow: HashMap<Place, Instant>,
    jitter: Jitter,
}

impl Cluster {
    /// Checks the settings, and reads the certificates and keys that they name. Connects to nothing yet.
    ///
    /// # Errors
    /// Settings that make no sense; files that cannot be read, or have something else in them.
    pub fn new(config: ClientConfig) -> Result<Arc<Self>> {
        config.validate()?;
        let secured = config.security.open()?;
        let seed = std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), 0);
        let state = State {
            metadata: Metadata::new(),
            slots: HashMap::new(),
            addresses: HashMap::new(),
            features: None,
            refreshed: HashMap::new(),
            slow: HashMap::new(),
            jitter: Jitter::new(seed),
        };
        Ok(Arc::new(Cluster {
            config,
            secured,
            state: Mutex::new(state),
            refresh: tokio::sync::Semaphore::new(1),
            coordinators: Mutex::new(HashMap::new()),
            next_owner: AtomicU64::new(1),
        }))
    }

    /// A name for a consumer's own connections.
    #[must_use]
    pub fn new_session_owner(&self) -> SessionOwner {
        SessionOwner(self.next_owner.fetch_add(1, Ordering::Relaxed))
    }

    /// Forgets a consumer's connections; they close once nobody uses them.
    pub fn drop_sessions(&self, owner: SessionOwner) {
        self.state().slots.retain(|(_, purpose), _| *purpose != Purpose::Session(owner));
    }

    /// The settings.
    #[must_use]
    pub fn config(&self) -> &ClientConfig {
        &self.config
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Deadline of a single request that starts now, within `limit`.
    #[must_use]
    pub fn request_deadline(&self, limit: Instant) -> Instant {
        limit.min(Instant::now() + self.config.request_timeout)
    }

    /// Pause before try number `attempt` (from 1) after a retriable error.
    #[must_use]
    pub fn retry_pause(&self, attempt: u32) -> Duration {
        let random = self.state().jitter.next_u64();
        self.config.retry_backoff.pause(attempt, random)
    }

    /// Sleeps before a retry. Answers false, at once, where the pause would pass `deadline`.
    ///
    /// # Cancel safety
    /// Holds nothing.
    pub async fn pause_before_retry(&self, attempt: u32, deadline: Instant) -> bool {
        let pause = self.retry_pause(attempt);
        if Instant::now() + pause >= deadline {
            return false;
        }
        tokio::time::sleep(pause).await;
        true
    }

    /// The connection to a broker, opened if need be.
    ///
    /// # Errors
    /// Where the broker is not in the metadata.
    pub fn connection(&self, node: i32, purpose: Purpose) -> Result<Connection> {
        let mut state = self.state();
        let Some(Node { host, port, .. }) = state.metadata.node(node).cloned() else {
            let text = format!("broker {node} is not known: metadata has no address for it");
            return Err(Error::new(ErrorKind::Disconnected, text));
        };
        Ok(self.slot(&mut state, Place::Broker(node), purpose, &host, port))
    }

    /// The connection to a broker, if it is open and its last answer came within `limit`.
    #[must_use]
    pub fn quick_connection(&self, node: i32, purpose: Purpose, limit: Duration) -> Option<Connection> {
        let state = self.state();
        state.slots.get(&(Place::Broker(node), purpose))?.live().filter(|c| c.answers_within(limit)).cloned()
    }

    fn slot(&self, state: &mut State, place: Place, purpose: Purpose, host: &Str, port: u16) -> Connection {
        let seed = state.jitter.next_u64();
        let moved =
            state.addresses.insert(place.clone(), (host.clone(), port)).is_some_and(|old| old != (host.clone(), port));
        if moved {
            // The broker came back under another address: none of its old connections is of use.
            state.slots.retain(|(p, _), slot| {
                if *p == place {
                    slot.drop_connection();
                }
                true
            });
        }
        let first = state.metadata.nodes().next().is_none();
        let slot = state.slots.entry((place, purpose)).or_insert_with(|| Slot::new(seed));
        slot.get(&self.config, &self.secured, (host, port), first)
    }

    /// Sends a request to a broker.
    ///
    /// # Cancel safety
    /// As [`Connection::call`].
    ///
    /// # Errors
    /// As [`Connection::call`], and brokers that are not known.
    pub async fn call_node<R: Request>(
        &self,
        node: i32,
        purpose: Purpose,
        request: &R,
        deadline: Instant,
    ) -> Result<R::Response> {
        self.connection(node, purpose)?.call(request, deadline).await
    }

    /// As [`Cluster::call_node`], under a given API key and in no higher version than a given one.
    ///
    /// # Cancel safety
    /// As [`Connection::call`].
    ///
    /// # Errors
    /// As [`Cluster::call_node`].
    pub async fn call_node_as<R: Request>(
        &self,
        node: i32,
        purpose: Purpose,
        request: &R,
        (api, cap): (ApiKey, i16),
        deadline: Instant,
    ) -> Result<R::Response> {
        let connection = self.connection(node, purpose)?;
        let version = connection.version::<R>(api, cap, deadline).await?;
        connection.call_version(request, api, version, deadline).await
    }

    /// Sends a request to any broker that answers, known ones first, then the bootstrap addresses. One that takes long to
    /// connect is left for the next, and asked last for a while; so is one that takes long to answer a request that changes
    /// nothing.
    ///
    /// # Cancel safety
    /// As [`Connection::call`].
    ///
    /// # Errors
    /// The last error, where no broker answered before `deadline`.
    pub async fn call_any<R: Request>(&self, request: &R, deadline: Instant) -> Result<R::Response> {
        let mut attempt = 0;
        loop {
            attempt += 1;
            let mut last = Error::new(ErrorKind::Connect, "no broker is known");
            let mut refused = None;
            let candidates = self.candidates()?;
            let count = candidates.len();
            for (at, (place, connection)) in candidates.into_iter().enumerate() {
                let limit = self.share_of_time(deadline, attempt, count - at);
                match call_within(&connection, request, limit, self.request_deadline(deadline)).await {
                    Ok(response) => {
                        self.state().slow.remove(&place);
                        if let Ok(versions) = connection.ready(deadline).await {
                            self.note_features(versions);
                        }
                        return Ok(response);
                    }
                    // No other broker would do better.
                    Err(error) if error.kind() == ErrorKind::Unsupported => return Err(error),
                    // One broker may have a wrong certificate.
                    Err(error) if error.kind() == ErrorKind::Authentication => refused = refused.or(Some(error)),
                    Err(error) => {
                        if error.is_timeout() {
                            self.state().slow.insert(place, Instant::now());
                        }
                        last = error;
                    }
                }
            }
            // One that is asked again with a wrong password may lock the account.
            if let Some(error) = refused {
                return Err(error);
            }
            if !self.pause_before_retry(attempt, deadline).await {
                return Err(last.context(format!("no broker of {} answered", self.config.bootstrap_servers.join(","))));
            }
        }
    }

    /// Deadline for one of `left` brokers to be asked: short while there are others, longer with each round, so that
    /// neither one that hangs nor a slow cluster keeps the answer away.
    fn share_of_time(&self, deadline: Instant, round: u32, left: usize) -> Instant {
        let whole = self.request_deadline(deadline);
        if left <= 1 && round > 1 {
            return whole;
        }
        let patience = FIRST_PATIENCE.saturating_mul(1 << (round - 1).min(8));
        whole.min(Instant::now() + patience)
    }

    fn candidates(&self) -> Result<Vec<(Place, Connection)>> {
        let mut state = self.state();
        let mut nodes: Vec<Node> = state.metadata.nodes().cloned().collect();
        if !nodes.is_empty() {
            let turn = state.jitter.next_u64() as usize % nodes.len();
            nodes.rotate_left(turn);
        }
        // Bootstrap addresses come last: they serve when all known brokers are gone (KIP-899).
        let mut all: Vec<(Place, Str, u16)> =
            nodes.into_iter().map(|n| (Place::Broker(n.id), n.host, n.port)).collect();
        for (i, server) in self.config.bootstrap_servers.iter().enumerate() {
            let (host, port) = split_address(server)?;
            all.push((Place::Bootstrap(i), Str::from(host), port));
        }
        state.slow.retain(|_, at| at.elapsed() < SLOW_MEMORY);
        all.sort_by_key(|(place, _, _)| state.slow.contains_key(place));
        Ok(all
            .into_iter()
            .map(|(place, host, port)| {
                let connection = self.slot(&mut state, place.clone(), Purpose::Coordination, &host, port);
                (place, connection)
            })
            .collect())
    }

    fn note_features(&self, versions: Arc<ApiVersions>) {
        let mut state = self.state();
        if state.features.as_ref().is_none_or(|f| f.features_epoch() <= versions.features_epoch()) {
            state.features = Some(versions);
        }
    }

    /// Versions and finalised features, as the newest answer of any broker has them.
    ///
    /// # Cancel safety
    /// At most Metadata has gone out, once. What was learned before stays.
    ///
    /// # Errors
    /// Where no broker answers before `deadline`.
    pub async fn features(&self, deadline: Instant) -> Result<Arc<ApiVersions>> {
        if let Some(features) = self.state().features.clone() {
            return Ok(features);
        }
        Box::pin(self.refresh_topics(&[], deadline)).await?;
        self.state()
            .features
            .clone()
            .ok_or_else(|| Error::new(ErrorKind::Connect, "the cluster's features are not known"))
    }

    /// Asks for the metadata of `topics` (none: brokers only), unless another caller just did.
    ///
    /// # Cancel safety
    /// What was learned before stays.
    ///
    /// # Errors
    /// Where no broker answers before `deadline`. A topic that does not exist is no error here.
    pub async fn refresh_topics(&self, topics: &[Str], deadline: Instant) -> Result<()> {
        self.refresh_inner(topics, false, deadline).await
    }

    /// Asks for the metadata of topics by id.
    ///
    /// # Cancel safety
    /// At most Metadata has gone out, whose answer nobody hears. What was learned before stays.
    ///
    /// # Errors
    /// Where no broker answers before `deadline`. A topic that does not exist is no error here.
    pub async fn refresh_topics_by_id(&self, ids: &[Uuid], deadline: Instant) -> Result<()> {
        let names: Option<Vec<Str>> = ids.iter().map(|id| Some(self.cached_topic_by_id(*id)?.name.clone())).collect();
        if let Some(names) = names {
            return self.refresh_topics(&names, deadline).await;
        }
        let row = |id: &Uuid| MetadataRequestTopic { name: None, topic_id: *id, ..MetadataRequestTopic::default() };
        let request = MetadataRequest {
            topics: Some(ids.iter().map(row).collect()),
            allow_auto_topic_creation: false,
            ..MetadataRequest::default()
        };
        let response = self.call_any(&request, deadline).await?;
        self.state().metadata.update(&response);
        Ok(())
    }

    pub(crate) async fn refresh_inner(&self, topics: &[Str], create: bool, deadline: Instant) -> Result<()> {
        let asked = Instant::now();
        let permit = tokio::time::timeout_at(deadline.into(), self.refresh.acquire()).await;
        let _permit = permit.map_err(|_| Error::new(ErrorKind::Timeout, "metadata was not refreshed in time"))?;
        if !topics.is_empty() && topics.iter().all(|t| self.state().refreshed.get(t).is_some_and(|at| *at >= asked)) {
            return Ok(());
        }
        let row = |name: &Str| MetadataRequestTopic { name: Some(name.clone()), ..MetadataRequestTopic::default() };
        let request = MetadataRequest {
            topics: Some(topics.iter().map(row).collect()),
            allow_auto_topic_creation: create,
            ..MetadataRequest::default()
        };
        let response = self.call_any(&request, deadline).await?;
        let mut state = self.state();
        state.metadata.update(&response);
        let now = Instant::now();
        for topic in topics {
            state.refreshed.insert(topic.clone(), now);
        }
        Ok(())
    }

    /// A topic, from the cache or from a broker; waits while the topic does not exist or has no leaders yet.
    ///
    /// # Cancel safety
    /// Metadata may have gone out, and with `create` a broker may create the topic because of it. What was learned
    /// before stays.
    ///
    /// # Errors
    /// The broker's last word on the topic, where `deadline` passes first; authorisation and invalid names at once.
    pub async fn topic(&self, name: &str, create: bool, deadline: Instant) -> Result<Arc<Topic>> {
        let mut attempt = 0;
        loop {
            if let Some(topic) = self.cached_topic(name).filter(|t| attempt > 0 || t.leaders.iter().all(|l| l.id >= 0))
            {
                return Ok(topic);
            }
            self.refresh_inner(&[Str::from(name)], create, deadline).await?;
            if let Some(topic) = self.cached_topic(name) {
                return Ok(topic);
            }
            let code = self.state().metadata.topic_error(name).unwrap_or(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
            attempt += 1;
            if !code.is_retriable() || !self.pause_before_retry(attempt, deadline).await {
                return Err(Error::broker(code, format_args!("topic {name:?}"), None));
            }
        }
    }

    /// A topic, from the cache only.
    #[must_use]
    pub fn cached_topic(&self, name: &str) -> Option<Arc<Topic>> {
        self.state().metadata.topic(name).cloned()
    }

    /// A topic by id, from the cache only.
    #[must_use]
    pub fn cached_topic_by_id(&self, id: Uuid) -> Option<Arc<Topic>> {
        self.state().metadata.topic_by_id(id).cloned()
    }

    /// The error, not to be healed by a retry, that the brokers gave for a topic last.
    pub(crate) fn topic_refusal(&self, name: &str) -> Option<ErrorCode> {
        self.state().metadata.topic_error(name).filter(|code| code.is_err() && !code.is_retriable())
    }

    /// Leader of a partition, from the cache only.
    #[must_use]
    pub fn leader(&self, tp: TopicIdPartition) -> Option<Leader> {
        self.state().metadata.leader(tp)
    }

    /// Takes a leader and addresses that an error response named (KIP-951). Answers whether they were news.
    pub fn hint_leader(&self, tp: TopicIdPartition, leader: Leader, nodes: impl IntoIterator<Item = Node>) -> bool {
        let mut state = self.state();
        for node in nodes {
            state.metadata.hint_node(node);
        }
        state.metadata.hint_leader(tp, leader)
    }

    /// Adds or corrects a broker's address.
    pub(super) fn hint_node(&self, node: Node) {
        self.state().metadata.hint_node(node);
    }

    /// Ids of the known brokers.
    #[must_use]
    pub fn node_ids(&self) -> Vec<i32> {
        self.state().metadata.nodes().map(|n| n.id).collect()
    }

    /// How the connections stand, by broker; without secrets. A broker has one for each purpose that it was used for.
    #[must_use]
    pub fn connections(&self) -> Vec<ConnectionInfo> {
        let principal = self.secured.principal();
        let state = self.state();
        let one = |((place, purpose), slot): (&(Place, Purpose), &Slot)| {
            let address = state.addresses.get(place).map_or_else(String::new, |(host, port)| format!("{host}:{port}"));
            let mut info = ConnectionInfo {
                node: if let Place::Broker(id) = place { Some(*id) } else { None },
                address,
                purpose: purpose.name(),
                state: ConnectionState::None,
                in_flight: 0,
                bytes_sent: 0,
                bytes_received: 0,
                throttled_ms: 0,
                last_answer_us: None,
                api_versions: Vec::new(),
                security_protocol: self.config.security.protocol,
                principal: principal.clone(),
            };
            slot.last().into_iter().for_each(|connection| connection.describe(&mut info));
            info
        };
        let mut all: Vec<ConnectionInfo> = state.slots.iter().map(one).collect();
        all.sort_by(|a, b| (a.node, &a.address, a.purpose).cmp(&(b.node, &b.address, b.purpose)));
        all
    }

    /// Id of the cluster, once known.
    #[must_use]
    pub fn cluster_id(&self) -> Option<String> {
        self.state().metadata.cluster_id().map(ToString::to_string)
    }

    /// The controller's broker id as the brokers tell it.
    #[must_use]
    pub fn controller(&self) -> i32 {
        self.state().metadata.controller()
    }
}
