//! One connection to one broker: correlation ids, in-flight limit, deadlines, throttling, idle close.
//!
//! Where the listener asks for it, authentication comes before any call, and again before it expires ([`SaslConfig`]).
//! The task that owns the socket feeds received bytes in and carries [`Output`]s out. A call is *sent* from the moment
//! its frame is handed out for transmission; a call that fails before that was certainly not seen by the broker.

mod sasl;

pub use sasl::{SaslConfig, SaslExchange, SaslStep};

use crate::versions::{ApiVersions, fallback_version};
use bytes::{Bytes, BytesMut};
use kafka_share_messages::{ApiVersionsRequest, ApiVersionsResponse, ErrorCode, Message, frame};
use kafka_share_wire::{Frame, FrameDecoder, Str};
use sasl::{Progress, Sasl};
use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

/// Settings of a connection.
#[derive(Debug, Clone)]
pub struct ConnectionConfig {
    /// `client.id`, sent with every request.
    pub client_id: Str,
    /// Largest frame accepted from the broker, in bytes.
    pub max_frame: usize,
    /// Requests written but not answered, at most.
    pub max_in_flight: usize,
    /// Calls waiting to be written, at most.
    pub max_queued: usize,
    /// Time for the ApiVersions exchange, and for an authentication.
    pub handshake_timeout: Duration,
    /// How to authenticate; `None` where the listener does not ask for it.
    pub sasl: Option<SaslConfig>,
    /// `connections.max.idle.ms`: quiet time after which the connection is closed.
    pub max_idle: Duration,
}

/// A request to be carried.
#[derive(Debug)]
pub struct Call {
    /// Correlation id that is in the frame; unique on this connection, from 1 on.
    pub correlation_id: i32,
    /// The encoded request.
    pub frame: Frame,
    /// When the answer is given up.
    pub deadline: Instant,
    /// False for Produce with acks 0, which the broker does not answer.
    pub answered: bool,
}

/// Why a call has no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// The connection ended before the request was written.
    #[error("not sent: {0}")]
    NotSent(String),
    /// The connection ended after the request was written: whether the broker acted on it is unknown.
    #[error("answer lost: {0}")]
    Unanswered(String),
    /// The deadline passed.
    #[error("no answer within the time limit")]
    TimedOut {
        /// Whether the request had been written.
        sent: bool,
    },
    /// Too many calls are waiting on this connection.
    #[error("too many requests are waiting on this connection")]
    QueueFull,
}

impl CallError {
    /// Whether the broker may have acted on the request.
    #[must_use]
    pub fn maybe_done(&self) -> bool {
        matches!(self, CallError::Unanswered(_) | CallError::TimedOut { sent: true })
    }
}

/// Why a connection is over.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ending {
    /// It was lost, or ended as it should. Another may do better.
    Lost(String),
    /// The broker told what it speaks, and closed at the first request. One that goes away may do so once; a listener of SASL
    /// does each time.
    Unheard(String),
    /// Broker and client do not take each other for whom they say they are, or speak different security protocols. Another
    /// would end in the same way.
    Refused(String),
}

impl Ending {
    /// In words.
    #[must_use]
    pub fn reason(&self) -> &str {
        match self {
            Ending::Lost(reason) | Ending::Unheard(reason) | Ending::Refused(reason) => reason,
        }
    }
}

/// What the task must do.
#[derive(Debug)]
pub enum Output {
    /// Write this frame.
    Transmit(Frame),
    /// Bring an exchange of the mechanism, made of fresh credentials, to [`Connection::handle_credentials`]. Calls that
    /// are under way go on meanwhile.
    Authenticate,
    /// The broker's versions are known, and the client is authenticated; calls flow from now on.
    Ready(ApiVersions),
    /// A call is over: the response frame without its size prefix, or why there is none.
    Done(i32, Result<Bytes, CallError>),
    /// Close the socket, for this reason.
    Close(Ending),
}

#[derive(Debug)]
enum State {
    Negotiating { version: i16, until: Instant },
    Authenticating { versions: ApiVersions, until: Instant },
    Ready,
    Closed,
}

/// The machine.
#[derive(Debug)]
pub struct Connection {
    config: ConnectionConfig,
    state: State,
    decoder: FrameDecoder,
    queued: VecDeque<Call>,
    in_flight: BTreeMap<i32, Instant>,
    /// Ids whose caller gave up; their late answers are dropped. Bounded by the in-flight limit.
    abandoned: BTreeMap<i32, Instant>,
    muted_until: Option<Instant>,
    last_used: Instant,
    sasl: Option<Box<Sasl>>,
    /// When an authentication that was begun beside calls is given up.
    renewal_until: Option<Instant>,
    /// The broker has answered a call.
    answers: bool,
    outputs: VecDeque<Output>,
}

/// Correlation id of ApiVersions and of authentication; callers number from 1.
const HANDSHAKE_ID: i32 = 0;
/// Largest frame taken from a broker that has not said yet what it speaks, or who it is, in bytes.
const MAX_EARLY_FRAME: usize = 1 << 20;
/// How a TLS alert begins: its content type, and the first byte of the version.
const TLS_ALERT: [u8; 2] = [0x15, 0x03];

impl Connection {
    /// A connection whose socket has just been opened; sends ApiVersions first.
    #[must_use]
    pub fn new(config: ConnectionConfig, now: Instant) -> Self {
        let decoder = FrameDecoder::new(config.max_frame.min(MAX_EARLY_FRAME));
        let mut this = Connection {
            state: State::Closed,
            decoder,
            queued: VecDeque::new(),
            in_flight: BTreeMap::new(),
            abandoned: BTreeMap::new(),
            muted_until: None,
            last_used: now,
            sasl: config.sasl.clone().map(|sasl| Box::new(Sasl::new(sasl, config.client_id.clone()))),
            renewal_until: None,
            answers: false,
            outputs: VecDeque::new(),
            config,
        };
        this.negotiate(now, ApiVersionsRequest::MAX_VERSION);
        this
    }

    fn negotiate(&mut self, now: Instant, version: i16) {
        let request = ApiVersionsRequest {
            client_software_name: Str::from_static("kafka-share-rust"),
            client_software_version: Str::from_static(env!("CARGO_PKG_VERSION")),
            ..ApiVersionsRequest::default()
        };
        let request = if version >= 3 { request } else { ApiVersionsRequest::default() };
        match frame::encode_request(&request, version, HANDSHAKE_ID, &self.config.client_id) {
            Ok(frame) => {
                self.state = State::Negotiating { version, until: now + self.config.handshake_timeout };
                self.outputs.push_back(Output::Transmit(frame));
            }
            Err(error) => self.close(format!("ApiVersions cannot be encoded: {error}")),
        }
    }

    /// Where received bytes are appended; call [`Connection::handle_received`] afterwards.
    pub fn buffer(&mut self) -> &mut BytesMut {
        self.decoder.buffer()
    }

    /// Looks at what was received.
    pub fn handle_received(&mut self, now: Instant) {
        if matches!(self.state, State::Negotiating { .. }) && self.decoder.buffer().starts_with(&TLS_ALERT) {
            let text = "the broker answered with a TLS alert: the listener speaks TLS; set security.protocol to SSL or SASL_SSL";
            return self.end(Ending::Refused(text.into()));
        }
        while !self.is_closed() {
            match self.decoder.next_frame() {
                Ok(Some(frame)) => self.handle_frame(now, frame),
                Ok(None) => break,
                Err(error) => self.close(error.to_string()),
            }
        }
    }

    fn handle_frame(&mut self, now: Instant, frame: Bytes) {
        let Ok(id) = frame::correlation_id(&frame) else {
            return self.close("the broker sent a frame of less than four bytes".into());
        };
        self.last_used = now;
        if let State::Negotiating { version, .. } = self.state {
            return self.handle_versions(now, version, id, frame.slice(4..));
        }
        if id == HANDSHAKE_ID && self.sasl.as_ref().is_some_and(|s| s.waits_for_broker()) {
            return self.handle_authentication(now, frame);
        }
        self.answers = true;
        if let Some(sasl) = &mut self.sasl {
            sasl.note_answered(now);
        }
        if self.in_flight.remove(&id).is_some() {
            self.outputs.push_back(Output::Done(id, Ok(frame)));
            self.transmit(now);
        } else if self.abandoned.remove(&id).is_some() {
            self.transmit(now);
        } else {
            self.close(format!("the broker answered request {id}, which is not waiting for an answer"));
        }
    }

    fn handle_versions(&mut self, now: Instant, version: i16, id: i32, body: Bytes) {
        if id != HANDSHAKE_ID {
            return self.close(format!("the broker answered request {id} before ApiVersions"));
        }
        // A refusal comes in version 0, whatever was asked (KIP-511).
        let refused = body.starts_with(&ErrorCode::UNSUPPORTED_VERSION.0.to_be_bytes());
        let response = match ApiVersionsResponse::decode_all(body, if refused { 0 } else { version }) {
            Ok(response) => response,
            Err(error) => return self.close(format!("ApiVersions answer is damaged: {error}")),
        };
        if response.error_code.is_ok() {
            let versions = ApiVersions::from_response(&response);
            let begun = self.sasl.as_mut().map(|sasl| sasl.begin(&versions));
            match begun {
                None => self.be_ready(now, versions),
                Some(Ok(())) => {
                    self.state = State::Authenticating { versions, until: now + self.config.handshake_timeout };
                    self.outputs.push_back(Output::Authenticate);
                }
                Some(Err(ending)) => self.end(ending),
            }
        } else if let Some(lower) = fallback_version(version, &response) {
            self.negotiate(now, lower);
        } else {
            self.close(format!("the broker refused ApiVersions version {version}: {}", response.error_code));
        }
    }

    fn be_ready(&mut self, now: Instant, versions: ApiVersions) {
        self.decoder.set_limit(self.config.max_frame);
        self.state = State::Ready;
        self.outputs.push_back(Output::Ready(versions));
        self.transmit(now);
    }

    /// What [`Output::Authenticate`] asked for: an exchange that has not begun, or why there is none.
    pub fn handle_credentials(&mut self, now: Instant, exchange: Result<Box<dyn SaslExchange>, Ending>) {
        let Some(sasl) = self.sasl.as_mut().filter(|_| !matches!(self.state, State::Closed)) else { return };
        match exchange.and_then(|exchange| sasl.start(exchange)) {
            Ok(frame) => {
                // Calls that the broker holds back are answered first.
                let calls = self.in_flight.values().chain(self.abandoned.values()).max().copied();
                self.renewal_until = Some(calls.unwrap_or(now).max(now) + self.config.handshake_timeout);
                self.outputs.push_back(Output::Transmit(frame));
            }
            // What the broker has taken is still good: what failed in passing is tried once more.
            Err(Ending::Lost(_)) if matches!(self.state, State::Ready) && sasl.put_off(now) => {
                self.renewal_until = None;
                self.transmit(now);
            }
            Err(ending) => self.end(ending),
        }
    }

    fn handle_authentication(&mut self, now: Instant, frame: Bytes) {
        let Some(sasl) = &mut self.sasl else { return };
        match sasl.handle_answer(now, frame) {
            Ok(Progress::Send(frame)) => self.outputs.push_back(Output::Transmit(frame)),
            Ok(Progress::Done) => {
                self.renewal_until = None;
                match std::mem::replace(&mut self.state, State::Ready) {
                    State::Authenticating { versions, .. } => self.be_ready(now, versions),
                    _ => self.transmit(now),
                }
            }
            Err(ending) => self.end(ending),
        }
    }

    /// Takes a call. It is written as soon as the connection is ready, not muted, and below its in-flight limit.
    pub fn handle_call(&mut self, now: Instant, call: Call) {
        if self.is_closed() {
            let reason = CallError::NotSent("the connection is closed".into());
            self.outputs.push_back(Output::Done(call.correlation_id, Err(reason)));
        } else if self.queued.len() >= self.config.max_queued {
            self.outputs.push_back(Output::Done(call.correlation_id, Err(CallError::QueueFull)));
        } else {
            self.last_used = now;
            self.queued.push_back(call);
            self.transmit(now);
        }
    }

    /// The caller of `correlation_id` went away. A call not yet written is dropped; one that was written keeps its
    /// place until its answer comes, so that the stream stays in step.
    pub fn handle_abandon(&mut self, correlation_id: i32) {
        self.queued.retain(|c| c.correlation_id != correlation_id);
        if let Some(deadline) = self.in_flight.remove(&correlation_id) {
            self.abandoned.insert(correlation_id, deadline);
        }
    }

    /// Holds back requests for as long as the broker asked in a response (`throttle_time_ms`).
    pub fn handle_throttle(&mut self, now: Instant, time: Duration) {
        let until = now + time;
        if self.muted_until.is_none_or(|m| m < until) {
            self.muted_until = Some(until);
        }
    }

    /// The socket ended or failed.
    pub fn handle_closed(&mut self, reason: &str) {
        let middle = if self.decoder.at_boundary() { "" } else { " in the middle of a frame" };
        let text = format!("{reason}{middle}{}", self.stage());
        self.end(if self.is_unheard() { Ending::Unheard(text) } else { Ending::Lost(text) });
    }

    /// The socket can never be of use: the other side is not who it should be, or does not speak what it should.
    pub fn handle_refused(&mut self, reason: String) {
        self.end(Ending::Refused(reason));
    }

    /// Requests were sent, and none was ever answered.
    fn is_unheard(&self) -> bool {
        matches!(self.state, State::Ready) && !self.answers && self.sasl.is_none() && !self.in_flight.is_empty()
    }

    /// What the end of the connection at this moment may have to do with.
    fn stage(&self) -> String {
        let authenticating = self.sasl.as_ref().filter(|s| s.waits_for_broker()).map(|s| s.mechanism());
        match (&self.state, authenticating) {
            (_, Some(mechanism)) => format!(", which authenticated SASL {mechanism} at that time"),
            (State::Negotiating { .. }, _) => {
                ", before it answered ApiVersions; is security.protocol that of the listener?".to_owned()
            }
            _ if self.is_unheard() => {
                ", before it answered any request; it may want authentication: is security.protocol that of the listener?"
                    .to_owned()
            }
            _ => String::new(),
        }
    }

    /// A deadline passed.
    pub fn handle_timeout(&mut self, now: Instant) {
        match self.state {
            State::Closed => return,
            State::Negotiating { until, .. } if until <= now => {
                return self.close("the broker did not answer ApiVersions in time".into());
            }
            State::Authenticating { until, .. } if until <= now => return self.give_up_authentication(),
            _ if self.renewal_until.is_some_and(|until| until <= now) => return self.give_up_authentication(),
            _ => {}
        }
        let mut late = Vec::new();
        self.queued.retain(|call| {
            let keep = call.deadline > now;
            if !keep {
                late.push((call.correlation_id, false));
            }
            keep
        });
        let overdue: Vec<i32> = self.in_flight.iter().filter(|(_, d)| **d <= now).map(|(id, _)| *id).collect();
        let stuck = !overdue.is_empty() || self.abandoned.values().any(|d| *d <= now);
        for id in overdue {
            self.in_flight.remove(&id);
            late.push((id, true));
        }
        for (id, sent) in late {
            self.outputs.push_back(Output::Done(id, Err(CallError::TimedOut { sent })));
        }
        if stuck {
            // Answers come in order: nothing behind a request without answer would arrive either.
            return self.close("the broker left a request unanswered".into());
        }
        if self.idle_deadline().is_some_and(|d| d <= now) {
            return self.close("idle".into());
        }
        self.transmit(now);
    }

    fn give_up_authentication(&mut self) {
        let mechanism = self.sasl.as_ref().map_or("", |s| s.mechanism().as_str());
        self.close(format!("authentication with SASL {mechanism} did not end in time"));
    }

    fn idle_deadline(&self) -> Option<Instant> {
        let busy = !self.in_flight.is_empty() || !self.queued.is_empty() || !self.abandoned.is_empty();
        (!busy && matches!(self.state, State::Ready)).then(|| self.last_used + self.config.max_idle)
    }

    fn transmit(&mut self, now: Instant) {
        if !matches!(self.state, State::Ready) || self.muted_until.is_some_and(|m| m > now) {
            return;
        }
        self.muted_until = None;
        if !self.queued.is_empty() && self.authentication_holds(now) {
            return;
        }
        while self.in_flight.len() + self.abandoned.len() < self.config.max_in_flight {
            let Some(call) = self.queued.pop_front() else { break };
            if call.answered {
                self.in_flight.insert(call.correlation_id, call.deadline);
                if let Some(sasl) = &mut self.sasl {
                    sasl.note_sent(now);
                }
            }
            let id = call.correlation_id;
            self.outputs.push_back(Output::Transmit(call.frame));
            if !call.answered {
                self.outputs.push_back(Output::Done(id, Ok(Bytes::new())));
            }
        }
    }

    /// Asks for the renewal of an authentication that comes to its end; whether calls wait for it. It comes behind those
    /// that are under way, whose answers the broker sends first.
    fn authentication_holds(&mut self, now: Instant) -> bool {
        let Some(sasl) = &mut self.sasl else { return false };
        if sasl.wants_renewal(now) {
            // Credentials that never come must not hold calls for ever.
            self.renewal_until = Some(sasl.held_from(now) + self.config.handshake_timeout);
            self.outputs.push_back(Output::Authenticate);
        }
        sasl.holds(now)
    }

    fn close(&mut self, reason: String) {
        self.end(Ending::Lost(reason));
    }

    fn end(&mut self, ending: Ending) {
        if self.is_closed() {
            return;
        }
        let reason = ending.reason().to_owned();
        self.state = State::Closed;
        for id in std::mem::take(&mut self.in_flight).into_keys() {
            self.outputs.push_back(Output::Done(id, Err(CallError::Unanswered(reason.clone()))));
        }
        for call in std::mem::take(&mut self.queued) {
            self.outputs.push_back(Output::Done(call.correlation_id, Err(CallError::NotSent(reason.clone()))));
        }
        self.abandoned.clear();
        self.outputs.push_back(Output::Close(ending));
    }

    /// Whether the connection is over.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        matches!(self.state, State::Closed)
    }

    /// What to do now; ask until `None`.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// When [`Connection::handle_timeout`] is due.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Instant> {
        let negotiation = match self.state {
            State::Closed => return None,
            State::Negotiating { until, .. } | State::Authenticating { until, .. } => Some(until),
            State::Ready => self.renewal_until,
        };
        let calls = self.queued.iter().map(|c| c.deadline).chain(self.in_flight.values().copied());
        let held = self.muted_until.into_iter().chain(self.sasl.as_ref().and_then(|s| s.wake()));
        let held = held.filter(|_| !self.queued.is_empty());
        let all = calls.chain(self.abandoned.values().copied()).chain(negotiation).chain(held);
        all.chain(self.idle_deadline()).min()
    }
}

#[cfg(test)]
#[path = "connection_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "connection/sasl_tests.rs"]
mod sasl_tests;
