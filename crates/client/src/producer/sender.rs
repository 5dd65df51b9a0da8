//! The background task of a producer: carries the machine's requests to the brokers and their answers back.

use super::shared::Shared;
use crate::net::{CoordinatorKind, Purpose, Submitted};
use crate::{Error, Result};
use kafka_share_core::producer::{BatchErrorKind, Output, ProduceFailure};
use kafka_share_core::transaction::ProducerIdentity;
use kafka_share_messages::{
    AddPartitionsToTxnRequest, AddPartitionsToTxnResponse, ApiKey, ErrorCode, InitProducerIdRequest, ProduceRequest,
    ProduceResponse, Request,
};
use kafka_share_wire::Str;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// Answers on their way back; requests are few at a time, so this is never full.
const EVENTS: usize = 1024;
/// Last Produce version whose partitions must be added to a transaction beforehand.
const LAST_V1_PRODUCE: i16 = 11;
/// Last AddPartitionsToTxn version that clients may use.
const CLIENT_ADD_PARTITIONS: i16 = 3;

enum Event {
    Produced(u64, Result<ProduceResponse>),
    Identity(Result<ProducerIdentity>),
    Added(Result<AddPartitionsToTxnResponse>),
    Refreshed,
}

/// Ends the task; see [`Sender::run`].
#[derive(Debug, Default)]
pub(super) struct Stop {
    /// Ends once all is delivered.
    pub(super) when_idle: AtomicBool,
    /// Ends at once.
    pub(super) now: AtomicBool,
}

pub(super) struct Sender {
    shared: Arc<Shared>,
    stop: Arc<Stop>,
    events: mpsc::Sender<Event>,
    incoming: mpsc::Receiver<Event>,
    /// One task per broker hands requests over, so that they are written in order.
    workers: HashMap<i32, mpsc::UnboundedSender<(u64, ProduceRequest)>>,
    tasks: JoinSet<()>,
}

/// Fails what waits when the task ends, for whatever reason.
struct Farewell(Arc<Shared>);

impl Drop for Farewell {
    fn drop(&mut self) {
        self.0.handle_gone();
    }
}

impl Sender {
    pub(super) fn new(shared: Arc<Shared>, stop: Arc<Stop>) -> Self {
        let (events, incoming) = mpsc::channel(EVENTS);
        Sender { shared, stop, events, incoming, workers: HashMap::new(), tasks: JoinSet::new() }
    }

    pub(super) async fn run(mut self) {
        let _farewell = Farewell(Arc::clone(&self.shared));
        loop {
            if self.stop.now.load(Ordering::Acquire) {
                self.shared.with(|s| s.machine.abort_unsent(BatchErrorKind::Closed, "the producer was closed"));
            }
            for output in self.shared.take_outputs() {
                self.carry(output);
            }
            let (deadline, idle) = self.shared.with(|s| (s.machine.next_deadline(), s.machine.is_idle()));
            if self.stop.now.load(Ordering::Acquire) || (idle && self.stop.when_idle.load(Ordering::Acquire)) {
                return;
            }
            tokio::select! {
                () = self.shared.work.notified() => {}
                event = self.incoming.recv() => {
                    if let Some(event) = event {
                        self.handle(event);
                    }
                    while let Ok(event) = self.incoming.try_recv() {
                        self.handle(event);
                    }
                }
                () = sleep_until(deadline), if deadline.is_some() => {}
            }
            while self.tasks.try_join_next().is_some() {}
        }
    }

    fn carry(&mut self, output: Output) {
        match output {
            Output::Produce { node, request, body, sent } => {
                self.shared.metrics.sent(&sent);
                self.produce(node, request, body);
            }
            Output::NewIdentity(request) => {
                let shared = Arc::clone(&self.shared);
                self.spawn(async move { Event::Identity(new_identity(&shared, &request).await) });
            }
            Output::AddPartitions(request) => {
                let shared = Arc::clone(&self.shared);
                self.spawn(async move { Event::Added(add_partitions(&shared, &request).await) });
            }
            Output::RefreshMetadata(topics) => {
                let shared = Arc::clone(&self.shared);
                self.spawn(async move {
                    refresh(&shared, &topics).await;
                    Event::Refreshed
                });
            }
            Output::LeaderHint(tp, leader, nodes) => {
                self.shared.cluster.hint_leader(tp, leader, nodes);
            }
            // Settled by `Shared::take_outputs`.
            Output::Done(..) | Output::Split(..) => {}
        }
    }

    fn spawn(&mut self, work: impl Future<Output = Event> + Send + 'static) {
        let events = self.events.clone();
        self.tasks.spawn(async move {
            let _ = events.send(work.await).await;
        });
    }

    fn produce(&mut self, node: i32, request: u64, body: ProduceRequest) {
        let worker = self.workers.entry(node).or_insert_with(|| {
            let (sender, receiver) = mpsc::unbounded_channel();
            let (shared, events) = (Arc::clone(&self.shared), self.events.clone());
            self.tasks.spawn(work_for(node, shared, receiver, events));
            sender
        });
        // The worker lives as long as this task: it ends when this sender goes away.
        let _ = worker.send((request, body));
    }

    fn handle(&mut self, event: Event) {
        let now = Instant::now();
        self.shared.with(|s| match event {
            Event::Produced(request, Ok(response)) => s.machine.handle_produced(now, request, Ok(&response)),
            Event::Produced(request, Err(error)) => s.machine.handle_produced(now, request, Err(&failure(&error))),
            Event::Identity(Ok(identity)) => s.machine.handle_identity(identity),
            Event::Identity(Err(error)) => {
                s.machine.handle_identity_failure();
                if error.is_fatal() {
                    let why = format!("no producer id was given: {error}");
                    s.machine.abort_unsent(BatchErrorKind::Refused, &why);
                }
            }
            Event::Added(Ok(response)) => s.machine.handle_added(now, &response),
            Event::Added(Err(error)) => s.machine.handle_add_failure(now, &failure(&error)),
            Event::Refreshed => {}
        });
    }
}

fn failure(error: &Error) -> ProduceFailure {
    // A damaged answer says nothing about the request: it is sent again as it is.
    let damaged = error.kind() == crate::ErrorKind::Protocol;
    ProduceFailure { maybe_done: error.maybe_done(), fatal: error.is_fatal() && !damaged, text: error.to_string() }
}

async fn work_for(
    node: i32,
    shared: Arc<Shared>,
    mut requests: mpsc::UnboundedReceiver<(u64, ProduceRequest)>,
    events: mpsc::Sender<Event>,
) {
    let mut answers = JoinSet::new();
    while let Some((request, body)) = requests.recv().await {
        while answers.try_join_next().is_some() {}
        let events = events.clone();
        let (started, metrics) = (Instant::now(), Arc::clone(&shared));
        match submit(node, &shared, body).await {
            Ok(submitted) => {
                answers.spawn(async move {
                    let answer = submitted.answer().await;
                    if let Ok(response) = &answer {
                        metrics.metrics.answered(started.elapsed(), response.throttle_time_ms);
                    }
                    let _ = events.send(Event::Produced(request, answer)).await;
                });
            }
            Err(error) => {
                let _ = events.send(Event::Produced(request, Err(error))).await;
            }
        }
    }
}

async fn submit(node: i32, shared: &Shared, body: ProduceRequest) -> Result<Submitted<ProduceRequest>> {
    let deadline = shared.request_deadline();
    let v2 = shared.with(|s| s.machine.transaction().map(kafka_share_core::transaction::Transaction::is_v2));
    let cap = if v2 == Some(false) {
        LAST_V1_PRODUCE
    } else {
        <ProduceRequest as kafka_share_messages::Message>::MAX_VERSION
    };
    let connection = shared.cluster.connection(node, Purpose::Produce)?;
    let version = connection.version::<ProduceRequest>(ApiKey::PRODUCE, cap, deadline).await?;
    connection.submit(&body, ApiKey::PRODUCE, version, deadline).await
}

async fn new_identity(shared: &Shared, request: &InitProducerIdRequest) -> Result<ProducerIdentity> {
    let deadline = shared.block_deadline();
    let mut attempt = 0;
    loop {
        let response = shared.cluster.call_any(request, deadline).await?;
        if response.error_code.is_ok() {
            return Ok(ProducerIdentity { id: response.producer_id, epoch: response.producer_epoch });
        }
        attempt += 1;
        let code = response.error_code;
        if !code.is_retriable() || !shared.cluster.pause_before_retry(attempt, deadline).await {
            return Err(Error::broker(code, "asking for a producer id", None));
        }
    }
}

async fn add_partitions(shared: &Shared, request: &AddPartitionsToTxnRequest) -> Result<AddPartitionsToTxnResponse> {
    let deadline = shared.request_deadline();
    let key = request.v3_and_below_transactional_id.as_str();
    let moved = |response: &AddPartitionsToTxnResponse| {
        let mut codes = response.results_by_topic_v3_and_below.iter().flat_map(|t| &t.results_by_partition);
        codes.find(|p| p.partition_error_code.is_err()).map_or(ErrorCode::NONE, |p| p.partition_error_code)
    };
    let api = (AddPartitionsToTxnRequest::KEY, CLIENT_ADD_PARTITIONS);
    shared.cluster.call_coordinator_as(CoordinatorKind::Transaction, key, request, api, deadline, moved).await
}

async fn refresh(shared: &Shared, topics: &[Str]) {
    let deadline = shared.request_deadline();
    if let Err(error) = shared.cluster.refresh_topics(topics, deadline).await {
        tracing::debug!(%error, "metadata was not refreshed");
        return;
    }
    for name in topics {
        if let Some(topic) = shared.cluster.cached_topic(name) {
            shared.with(|s| s.machine.handle_topic(&topic));
        }
    }
}

async fn sleep_until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline.into()).await,
        None => std::future::pending().await,
    }
}
