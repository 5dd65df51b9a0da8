//! The background task of a producer: carries the machine's requests to the brokers and their answers back.

use super::lane::{Lane, Outcome};
use super::shared::{Shared, Turn, failure};
use crate::alarm::Alarm;
use crate::net::CoordinatorKind;
use crate::{Error, ErrorKind, Result};
use kafka_share_core::producer::{BatchErrorKind, Output};
use kafka_share_core::transaction::ProducerIdentity;
use kafka_share_messages::{
    AddPartitionsToTxnRequest, AddPartitionsToTxnResponse, ErrorCode, InitProducerIdRequest, Request,
};
use kafka_share_wire::Str;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::Instant;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// Answers on their way back; requests are few at a time, so this is never full.
const EVENTS: usize = 1024;
/// Last AddPartitionsToTxn version that clients may use.
const CLIENT_ADD_PARTITIONS: i16 = 3;

enum Event {
    Identity(Result<ProducerIdentity>),
    Added(Result<AddPartitionsToTxnResponse>),
    Refreshed(Result<()>),
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
    lanes: HashMap<i32, Lane>,
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
        Sender { shared, stop, events, incoming, lanes: HashMap::new(), tasks: JoinSet::new() }
    }

    pub(super) async fn run(mut self) {
        let _farewell = Farewell(Arc::clone(&self.shared));
        let mut alarm = Alarm::new();
        loop {
            if self.stop.now.load(Ordering::Acquire) {
                self.shared.with(|s| s.machine.abort_unsent(BatchErrorKind::Closed, "the producer was closed"));
            }
            let Turn { outputs, deadline, idle } = self.shared.take_turn();
            for output in outputs {
                self.carry(output);
            }
            if self.stop.now.load(Ordering::Acquire) || (idle && self.stop.when_idle.load(Ordering::Acquire)) {
                return;
            }
            tokio::select! {
                biased;
                // First, as this also hands over what was just given out.
                outcomes = outcomes(&mut self.lanes) => {
                    let now = Instant::now();
                    self.shared.with(|s| {
                        for (request, result) in &outcomes {
                            s.machine.handle_produced(now, *request, result.as_ref());
                        }
                    });
                }
                () = self.shared.work.notified() => {}
                event = self.incoming.recv() => {
                    if let Some(event) = event {
                        self.handle(event);
                    }
                }
                () = alarm.until(deadline) => {}
            }
            // Whatever else keeps the task busy.
            while let Ok(event) = self.incoming.try_recv() {
                self.handle(event);
            }
            while self.tasks.try_join_next().is_some() {}
        }
    }

    fn carry(&mut self, output: Output) {
        match output {
            Output::Produce { node, request, draft } => {
                let shared = &self.shared;
                let lane = self.lanes.entry(node).or_insert_with(|| Lane::new(node, Arc::clone(shared)));
                lane.push(request, draft);
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
                self.spawn(async move { Event::Refreshed(refresh(&shared, &topics).await) });
            }
            Output::LeaderHint(tp, leader, nodes) => {
                self.shared.cluster.hint_leader(tp, leader, nodes);
            }
            // Settled by `Shared::take_turn`.
            Output::Done(..) | Output::Split(..) => {}
        }
    }

    fn spawn(&mut self, work: impl Future<Output = Event> + Send + 'static) {
        let events = self.events.clone();
        self.tasks.spawn(async move {
            let _ = events.send(work.await).await;
        });
    }

    fn handle(&mut self, event: Event) {
        let now = Instant::now();
        self.shared.with(|s| match event {
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
            // Nothing can be sent: what waits would wait in vain.
            Event::Refreshed(Err(error)) if error.kind() == ErrorKind::Authentication => {
                s.machine.abort_unsent(BatchErrorKind::Refused, &error.to_string());
            }
            Event::Refreshed(_) => {}
        });
    }
}

/// All that is there of what became of requests, at least one.
async fn outcomes(lanes: &mut HashMap<i32, Lane>) -> Vec<Outcome> {
    std::future::poll_fn(|context| {
        let mut all = Vec::new();
        for lane in lanes.values_mut() {
            while let Poll::Ready(outcome) = lane.poll(context) {
                all.push(outcome);
            }
        }
        if all.is_empty() { Poll::Pending } else { Poll::Ready(all) }
    })
    .await
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

async fn refresh(shared: &Shared, topics: &[Str]) -> Result<()> {
    let deadline = shared.request_deadline();
    let refreshed = shared.cluster.refresh_topics(topics, deadline).await;
    refreshed.inspect_err(|error| tracing::debug!(%error, "metadata was not refreshed"))?;
    for name in topics {
        if let Some(topic) = shared.cluster.cached_topic(name) {
            shared.with(|s| s.machine.handle_topic(&topic));
        }
    }
    Ok(())
}
