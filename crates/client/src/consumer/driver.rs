//! The task behind a share consumer: carries the machine's requests to brokers and their answers back.

use super::ledger::{Follower, Found};
use super::shared::Shared;
use super::spans;
use crate::alarm::Alarm;
use crate::net::{Connection, CoordinatorKind, Purpose};
use crate::{Error, ErrorKind, Result};
use kafka_share_core::share_consumer::{
    Action, FetchAnswer, RequestFailure, ShareConsumer, TopicLeaders, decode_fetch,
};
use kafka_share_messages::{
    ShareAcknowledgeRequest, ShareAcknowledgeResponse, ShareFetchRequest, ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
};
use kafka_share_wire::Str;
use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tokio::task::{AbortHandle, JoinSet};
use tracing::{Instrument, Span};

/// Epoch of the request that opens a share session, on whichever connection.
const OPENING: i32 = 0;
/// How long a consumer that was dropped or closed goes on saying goodbye.
const GOODBYE: Duration = Duration::from_secs(30);

enum Done {
    Heartbeat(u64, Result<ShareGroupHeartbeatResponse>),
    Fetch(i32, u64, Result<FetchAnswer>),
    Acknowledge(i32, u64, Result<ShareAcknowledgeResponse>),
    Metadata(Result<Vec<TopicLeaders>>),
    Disconnected(i32, Connection),
    Ledger(Result<Found>),
}

/// Tells everybody who waits when the task ends, however it ends.
struct StopGuard(Arc<Shared>);

impl Drop for StopGuard {
    fn drop(&mut self) {
        self.0.cluster.drop_sessions(self.0.owner);
        // Whatever was said of records gets its outcome before anybody hears of the end.
        self.0.with(|m, now| m.abort(now));
        self.0.ledger.detach();
        self.0.stopped.store(true, Ordering::Release);
        self.0.wake_app();
    }
}

pub(super) async fn run(shared: Arc<Shared>) {
    let _guard = StopGuard(Arc::clone(&shared));
    let mut driver = Driver {
        shared: Arc::clone(&shared),
        tasks: JoinSet::new(),
        connections: HashMap::new(),
        heartbeat: None,
        answered: false,
        awaited: HashSet::new(),
        ledger: Follower::new(&shared),
    };
    let mut goodbye = None;
    let mut alarm = Alarm::new();
    loop {
        let deadline = driver.carry_actions();
        // Not at every turn: an application that waits for a fetch need not hear that it was sent.
        if std::mem::take(&mut driver.answered) {
            shared.wake_app();
        }
        if shared.with(|m, _| m.is_closed()) {
            return;
        }
        if shared.is_closing() {
            let until = *goodbye.get_or_insert_with(|| Instant::now() + GOODBYE);
            if Instant::now() >= until {
                return;
            }
        }
        let deadline = deadline.into_iter().chain(goodbye).min();
        tokio::select! {
            () = shared.driver_woken() => {}
            () = driver.ledger.news() => {}
            Some(done) = driver.tasks.join_next() => if driver.handle_done(done).is_break() { return },
            () = alarm.until(deadline) => {}
        }
        while let Some(done) = driver.tasks.try_join_next() {
            if driver.handle_done(done).is_break() {
                return;
            }
        }
    }
}

struct Driver {
    shared: Arc<Shared>,
    tasks: JoinSet<Done>,
    /// The connection that the session with a node lives on.
    connections: HashMap<i32, Connection>,
    /// The last heartbeat's task.
    heartbeat: Option<AbortHandle>,
    /// An answer has come that the application may wait for.
    answered: bool,
    /// Topics that do not exist, and are waited for.
    awaited: HashSet<Str>,
    ledger: Follower,
}

impl Driver {
    /// Starts what the machine asks for; answers when it wants to be asked again.
    fn carry_actions(&mut self) -> Option<Instant> {
        if let Some(search) = self.ledger.search(&self.shared) {
            self.tasks.spawn(async move { Done::Ledger(search.await) });
        }
        self.ledger.carry(&self.shared);
        let (actions, deadline, free) = self.shared.with(|m, now| {
            m.handle_timeout(now);
            let before = m.next_ask();
            let actions: Vec<Action> = std::iter::from_fn(|| m.poll_action(now)).collect();
            // Before it is sent: what the ledger forgets from here on may be in its answer.
            if m.next_ask() > before
                && let Some(tail) = self.shared.ledger.tail()
            {
                tail.with(|r| r.note_asked(m.next_ask()));
            }
            (actions, sleep_next(m), m.take_aside_news())
        });
        if free {
            self.shared.wake_app();
        }
        let failed = actions.into_iter().map(|action| self.start(action)).filter(|started| !started).count();
        // What could not be started has failed at once, and changed when there is something to do.
        if failed > 0 { self.shared.with(|m, _| sleep_next(m)) } else { deadline }
    }

    /// Answers whether it was started; else the machine has been told.
    fn start(&mut self, action: Action) -> bool {
        let shared = Arc::clone(&self.shared);
        match action {
            Action::Heartbeat(token, request) => {
                // A heartbeat that is being tried again must not overtake this one: a join after the leave that
                // follows it would make a member that nobody is.
                if let Some(former) = self.heartbeat.take() {
                    former.abort();
                }
                let span = spans::heartbeat(&shared, request.member_epoch);
                let inner = span.clone();
                let call = async move { Done::Heartbeat(token, heartbeat(&shared, &request, &inner).await) };
                self.heartbeat = Some(self.tasks.spawn(call.instrument(span)));
            }
            Action::RefreshMetadata(topics) => {
                self.tasks.spawn(async move { Done::Metadata(metadata(&shared, &topics).await) });
            }
            Action::Fetch(node, token, request) => match self.session_connection(node, request.share_session_epoch) {
                Ok(connection) => {
                    let span = spans::fetch(&shared, node, request.share_session_epoch);
                    let inner = span.clone();
                    let call =
                        async move { Done::Fetch(node, token, fetch(&shared, &connection, &request, &inner).await) };
                    self.tasks.spawn(call.instrument(span));
                }
                Err(error) => {
                    self.handle(Done::Fetch(node, token, Err(error)));
                    return false;
                }
            },
            Action::Acknowledge(node, token, request) => {
                match self.session_connection(node, request.share_session_epoch) {
                    Ok(connection) => {
                        let span = spans::acknowledge(&shared, node, &request);
                        let call = async move {
                            Done::Acknowledge(node, token, acknowledge(&shared, &connection, &request).await)
                        };
                        self.tasks.spawn(call.instrument(span));
                    }
                    Err(error) => {
                        self.handle(Done::Acknowledge(node, token, Err(error)));
                        return false;
                    }
                }
            }
        }
        true
    }

    /// The connection for a request of a node's session; its end is watched, because the session ends with it.
    fn session_connection(&mut self, node: i32, epoch: i32) -> Result<Connection> {
        let connection = self.shared.cluster.connection(node, Purpose::Session(self.shared.owner))?;
        let known = self.connections.get(&node).map(|old| old.same_as(&connection));
        if known == Some(false) && epoch != OPENING {
            // On another connection the broker could only say that there is no such session.
            self.connections.remove(&node);
            return Err(Error::new(ErrorKind::Disconnected, "the share session ended with its connection"));
        }
        if known != Some(true) {
            self.connections.insert(node, connection.clone());
            let watched = connection.clone();
            self.tasks.spawn(async move {
                watched.closed().await;
                Done::Disconnected(node, watched)
            });
        }
        Ok(connection)
    }

    fn handle_done(&mut self, done: std::result::Result<Done, tokio::task::JoinError>) -> ControlFlow<()> {
        match done {
            Ok(done) => {
                self.handle(done);
                ControlFlow::Continue(())
            }
            Err(error) if error.is_cancelled() => ControlFlow::Continue(()),
            // A panic, or the runtime shuts down. The machine would wait for the answer for ever: better to stop, and say so.
            Err(error) => {
                tracing::error!(%error, "a request task of the share consumer failed; the consumer stops");
                ControlFlow::Break(())
            }
        }
    }

    /// Tells the application which topics it may not see, as often as a broker says so.
    fn report_refused_topics(&self) {
        for name in self.shared.with(|m, _| m.subscription().to_vec()) {
            if let Some(code) = self.shared.cluster.topic_refusal(&name) {
                self.shared.report(Error::broker(code, format_args!("topic {name:?}"), None));
            }
        }
    }

    /// Tells the application that a broker does not take it for who it is, or the other way round.
    fn report_refusal(&self, error: Option<&Error>) {
        if let Some(error) = error.filter(|e| e.kind() == ErrorKind::Authentication) {
            self.shared.report(error.clone());
        }
    }

    /// Says, once each, which topics are waited for.
    fn report_unknown_topics(&mut self, found: &[TopicLeaders]) {
        for name in self.shared.with(|m, _| m.subscription().to_vec()) {
            let exists = found.iter().any(|topic| topic.name == name);
            if exists && self.awaited.remove(&name) {
                tracing::info!(topic = %name, "the topic exists now");
            } else if !exists && self.awaited.insert(name.clone()) {
                tracing::warn!(topic = %name, "the topic does not exist, or may not be seen; the consumer waits for it");
            }
        }
    }

    fn handle(&mut self, done: Done) {
        self.answered = true;
        match done {
            Done::Heartbeat(token, answer) => {
                if let Err(error) = &answer
                    && matches!(error.kind(), ErrorKind::Authorization | ErrorKind::Authentication)
                {
                    self.shared.report(error.clone());
                }
                self.shared.with(|m, now| match &answer {
                    Ok(response) => m.handle_heartbeat(now, token, Ok(response)),
                    Err(error) => m.handle_heartbeat(now, token, Err(failure(error))),
                });
            }
            Done::Fetch(node, token, answer) => {
                self.report_refusal(answer.as_ref().err());
                self.shared.with(|m, now| m.handle_fetch(now, node, token, answer.map_err(|e| failure(&e))));
            }
            Done::Acknowledge(node, token, answer) => {
                self.report_refusal(answer.as_ref().err());
                self.shared.with(|m, now| m.handle_acknowledge(now, node, token, answer.map_err(|e| failure(&e))));
            }
            Done::Metadata(Ok(topics)) => {
                self.report_refused_topics();
                self.report_unknown_topics(&topics);
                self.shared.with(|m, now| m.handle_metadata(now, &topics));
            }
            Done::Metadata(Err(error)) => {
                tracing::debug!(%error, "metadata of the subscribed topics is not available");
                if matches!(error.kind(), ErrorKind::Unsupported | ErrorKind::Authentication) {
                    self.shared.report(error);
                }
                self.shared.with(|m, now| m.handle_metadata_failure(now));
            }
            Done::Ledger(found) => self.ledger.found(&self.shared, found),
            Done::Disconnected(node, connection) => {
                if self.connections.get(&node).is_some_and(|c| c.same_as(&connection)) {
                    self.connections.remove(&node);
                    self.shared.with(|m, now| m.handle_disconnected(now, node));
                }
            }
        }
    }
}

/// When the machine wants to be asked again, and will be.
fn sleep_next(machine: &mut ShareConsumer) -> Option<Instant> {
    let deadline = machine.next_deadline();
    machine.sleeps_until(deadline);
    deadline
}

fn failure(error: &Error) -> RequestFailure {
    RequestFailure {
        maybe_done: error.maybe_done(),
        fatal: matches!(error.kind(), ErrorKind::Unsupported | ErrorKind::InvalidInput),
        text: error.to_string(),
    }
}

async fn heartbeat(
    shared: &Shared,
    request: &ShareGroupHeartbeatRequest,
    span: &Span,
) -> Result<ShareGroupHeartbeatResponse> {
    let deadline = Instant::now() + shared.cluster.config().request_timeout;
    let group = request.group_id.to_string();
    let started = Instant::now();
    let answer =
        shared.cluster.call_coordinator(CoordinatorKind::Group, &group, request, deadline, |r| r.error_code).await;
    if let Ok(answer) = &answer {
        let coordinator = shared.cluster.cached_coordinator(CoordinatorKind::Group, &group);
        span.record("broker", coordinator);
        shared.metrics.heartbeat(started.elapsed(), answer.assignment.is_some());
    }
    answer
}

async fn metadata(shared: &Shared, topics: &[Str]) -> Result<Vec<TopicLeaders>> {
    let deadline = Instant::now() + shared.cluster.config().request_timeout;
    shared.cluster.refresh_inner(topics, shared.creates_topics, deadline).await?;
    let known = topics.iter().filter_map(|name| shared.cluster.cached_topic(name));
    if known.clone().any(|t| t.id.is_zero()) {
        let text = "share groups are not supported by this cluster: it tells no topic ids, which need Metadata version 10 (Kafka 2.8)";
        return Err(Error::new(ErrorKind::Unsupported, text));
    }
    Ok(known.map(|t| TopicLeaders { id: t.id, name: t.name.clone(), leaders: t.leaders.clone() }).collect())
}

async fn fetch(
    shared: &Shared,
    connection: &Connection,
    request: &ShareFetchRequest,
    span: &Span,
) -> Result<FetchAnswer> {
    let deadline = Instant::now() + shared.cluster.config().request_timeout;
    let versions = connection.ready(deadline).await?;
    if request.share_acquire_mode != 0 && versions.pick::<ShareFetchRequest>().is_ok_and(|v| v < 2) {
        let text = "share.acquire.mode=record_limit is not supported by this cluster: it needs ShareFetch version 2 (Kafka 4.2)";
        return Err(Error::new(ErrorKind::Unsupported, text));
    }
    let renewals = versions.pick::<ShareAcknowledgeRequest>().is_ok_and(|v| v >= 2);
    if shared.renews && !renewals {
        let text = "lock_renewal is not supported by this cluster: it needs ShareAcknowledge version 2 (Kafka 4.2)";
        return Err(Error::new(ErrorKind::Unsupported, text));
    }
    let started = Instant::now();
    let response = connection.call(request, deadline).await?;
    let (latency, throttle) = (started.elapsed(), response.throttle_time_ms);
    let partitions = response.responses.iter().flat_map(|t| &t.partitions);
    let bytes = partitions.filter_map(|p| p.records.as_ref()).map(|r| r.len()).sum();
    let answer = decode_fetch(response, shared.decode_limits, renewals);
    let records: usize = answer.partitions.iter().map(|p| p.delivery.entries.len()).sum();
    shared.metrics.fetched(bytes, records, latency, throttle);
    span.record(spans::MESSAGE_COUNT, records);
    for partition in answer.partitions.iter().filter(|p| p.delivery.repeated > 0) {
        let (tp, offsets) = (partition.tp, partition.delivery.repeated);
        tracing::error!(
            topic_id = %tp.topic_id, partition = tp.partition, offsets,
            "the broker lists acquired offsets more than once; each is delivered once"
        );
    }
    Ok(answer)
}

async fn acknowledge(
    shared: &Shared,
    connection: &Connection,
    request: &ShareAcknowledgeRequest,
) -> Result<ShareAcknowledgeResponse> {
    let deadline = Instant::now() + shared.cluster.config().request_timeout;
    connection.call(request, deadline).await
}
