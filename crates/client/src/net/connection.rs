//! One socket and the task that owns it. Callers hand over whole frames, so a dropped caller never tears one.

use super::report::{ConnectionInfo, ConnectionState, Traffic};
use crate::alarm::Alarm;
use crate::sasl::Sasl;
use crate::{Error, ErrorKind, Result};
use bytes::{Buf, Bytes};
use kafka_share_core::ApiVersions;
use kafka_share_core::connection::{
    Call, CallError, Connection as Machine, ConnectionConfig, Ending, Output, SaslExchange,
};
use kafka_share_messages::{ApiKey, Message, Request, frame};
use kafka_share_wire::{Frame, Str};
use std::collections::{HashMap, VecDeque};
use std::io::IoSlice;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot, watch};

/// Frames handed to the task at once, at most; callers beyond that wait.
const COMMANDS: usize = 256;
/// Segments per vectored write; the usual limit of operating systems is 1024.
const MAX_SLICES: usize = 64;
/// Time to hear from a broker that has closed the connection why it did, and to say goodbye to one that has not.
const LAST_WORDS: Duration = Duration::from_millis(200);

type Answer = std::result::Result<Bytes, CallError>;

enum Command {
    Call(Call, oneshot::Sender<Answer>),
    Abandon(i32),
    Throttle(Duration),
    /// The broker's answers cannot be trusted any more.
    Damaged(String),
}

/// Where a connection stands.
#[derive(Debug, Clone)]
pub(crate) enum Status {
    Connecting,
    Ready(Arc<ApiVersions>),
    Closed(Error),
}

/// A handle to one connection. Cloning shares it; the socket closes when the last handle is gone.
#[derive(Debug, Clone)]
pub struct Connection {
    handle: Arc<Handle>,
}

#[derive(Debug)]
struct Handle {
    commands: mpsc::Sender<Command>,
    status: watch::Receiver<Status>,
    next_id: AtomicI32,
    /// Microseconds that the last answer took; the largest number where there was none yet.
    pace: AtomicU64,
    traffic: Arc<Traffic>,
    client_id: Str,
    peer: Arc<str>,
}

impl std::fmt::Debug for Command {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Command")
    }
}

/// What the owner of the connection learns when it is over.
pub(crate) struct Ended {
    /// Whether the broker's versions were learned, so that the attempt counts as a success for back-off.
    pub(crate) was_ready: bool,
    /// Whether the broker closed it at the first request.
    pub(crate) unheard: bool,
    /// Why it is over.
    pub(crate) error: Error,
}

/// A kind of socket. The task is compiled for each, so that what one needs costs the others nothing.
pub(crate) trait Socket: AsyncRead + AsyncWrite + Unpin + Send + 'static {
    /// Whether it may keep bytes that it has taken, until it is flushed.
    const BUFFERS: bool;

    /// Why another connection would end in the same way, where an error of this socket says so.
    fn refusal(error: &std::io::Error, has_certificate: bool) -> Option<String>;
}

impl Socket for TcpStream {
    const BUFFERS: bool = false;

    fn refusal(_: &std::io::Error, _: bool) -> Option<String> {
        None
    }
}

impl Socket for crate::tls::Encrypted {
    const BUFFERS: bool = true;

    fn refusal(error: &std::io::Error, has_certificate: bool) -> Option<String> {
        crate::tls::refusal(error, has_certificate)
    }
}

/// What a connection is made with.
pub(crate) struct Setup {
    pub(crate) config: ConnectionConfig,
    /// Host and port, for messages.
    pub(crate) peer: String,
    /// Who the client is; the mechanism is in the configuration, too.
    pub(crate) sasl: Option<Sasl>,
    /// Whether the client shows a certificate.
    pub(crate) has_certificate: bool,
}

impl Connection {
    /// Starts the task. `open` yields the socket; `ended` runs once when the connection is over.
    pub(crate) fn spawn<S, F>(setup: Setup, open: F, ended: impl FnOnce(Ended) + Send + 'static) -> Connection
    where
        S: Socket,
        F: Future<Output = Result<S>> + Send + 'static,
    {
        let Setup { config, peer, sasl, has_certificate } = setup;
        let (commands, receiver) = mpsc::channel(COMMANDS);
        let (status_tx, status) = watch::channel(Status::Connecting);
        let handle = Connection::new(commands, status, &config, &peer);
        let traffic = Arc::clone(&handle.handle.traffic);
        tokio::spawn(async move {
            let (mut goodbye, mut unheard) = (None, false);
            let error = match open.await {
                Ok(socket) => {
                    let mut driver = Driver::new(socket, config, receiver, &status_tx);
                    (driver.sasl, driver.has_certificate, driver.traffic) = (sasl.clone(), has_certificate, traffic);
                    let (ending, socket) = driver.run().await;
                    goodbye = S::BUFFERS.then_some(socket);
                    unheard = matches!(ending, Ending::Unheard(_));
                    match ending {
                        Ending::Refused(why) => {
                            sasl.iter().for_each(Sasl::forget);
                            Error::new(ErrorKind::Authentication, format!("{peer}: {why}"))
                        }
                        ending => Error::new(ErrorKind::Disconnected, format!("{peer}: {}", ending.reason())),
                    }
                }
                Err(error) => error,
            };
            let was_ready = matches!(*status_tx.borrow(), Status::Ready(_));
            ended(Ended { was_ready, unheard, error: error.clone() });
            let _ = status_tx.send(Status::Closed(error));
            // Nobody waits for this.
            if let Some(mut socket) = goodbye {
                let _ = tokio::time::timeout(LAST_WORDS, socket.shutdown()).await;
            }
        });
        handle
    }

    /// One that is over before it began, for this reason.
    pub(crate) fn refused(config: &ConnectionConfig, peer: &str, error: Error) -> Connection {
        let (commands, _) = mpsc::channel(1);
        let (_, status) = watch::channel(Status::Closed(error));
        Connection::new(commands, status, config, peer)
    }

    fn new(
        commands: mpsc::Sender<Command>,
        status: watch::Receiver<Status>,
        config: &ConnectionConfig,
        peer: &str,
    ) -> Connection {
        let handle = Handle {
            commands,
            status,
            next_id: AtomicI32::new(1),
            pace: AtomicU64::new(u64::MAX),
            traffic: Arc::default(),
            client_id: config.client_id.clone(),
            peer: peer.into(),
        };
        Connection { handle: Arc::new(handle) }
    }

    /// Whether the connection is over.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        matches!(*self.handle.status.borrow(), Status::Closed(_)) || self.handle.commands.is_closed()
    }

    /// Waits until the broker's versions are known.
    ///
    /// # Cancel safety
    /// Nothing is lost: the connection goes on opening.
    ///
    /// # Errors
    /// Where the connection could not be opened, or not before `deadline`.
    pub async fn ready(&self, deadline: Instant) -> Result<Arc<ApiVersions>> {
        if let Status::Ready(versions) = &*self.handle.status.borrow() {
            return Ok(versions.clone());
        }
        // Seldom, and larger than all the rest of a call.
        let mut status = self.handle.status.clone();
        let wait = async {
            loop {
                match &*status.borrow_and_update() {
                    Status::Connecting => {}
                    Status::Ready(versions) => return Ok(versions.clone()),
                    Status::Closed(error) => return Err(error.clone()),
                }
                if status.changed().await.is_err() {
                    return Err(Error::new(
                        ErrorKind::Closed,
                        format!("{}: the client's runtime has stopped", self.handle.peer),
                    ));
                }
            }
        };
        match Box::pin(tokio::time::timeout_at(deadline.into(), wait)).await {
            Ok(result) => result,
            Err(_) => Err(Error::new(
                ErrorKind::Timeout,
                format!("{}: not connected within the time limit", self.handle.peer),
            )),
        }
    }

    /// Whether both handles are to the same connection.
    #[must_use]
    pub fn same_as(&self, other: &Connection) -> bool {
        Arc::ptr_eq(&self.handle, &other.handle)
    }

    /// Whether the last answer came within `limit` of its request.
    #[must_use]
    pub fn answers_within(&self, limit: Duration) -> bool {
        u128::from(self.handle.pace.load(Ordering::Relaxed)) <= limit.as_micros()
    }

    /// Adds what is known of it to its place's report.
    pub(super) fn describe(&self, info: &mut ConnectionInfo) {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        info.in_flight = if self.is_closed() { 0 } else { read(&self.handle.traffic.waiting) };
        (info.bytes_sent, info.bytes_received) = (read(&self.handle.traffic.sent), read(&self.handle.traffic.received));
        info.throttled_ms = read(&self.handle.traffic.throttled_ms);
        info.last_answer_us = Some(read(&self.handle.pace)).filter(|us| *us != u64::MAX);
        info.state = match &*self.handle.status.borrow() {
            Status::Connecting => ConnectionState::Connecting,
            Status::Ready(versions) => {
                info.api_versions = versions.ranges().collect();
                ConnectionState::Ready
            }
            Status::Closed(error) => ConnectionState::Closed(error.to_string()),
        };
    }

    /// Resolves when the connection is over.
    ///
    /// # Cancel safety
    /// Sends nothing and holds nothing.
    pub async fn closed(&self) {
        let mut status = self.handle.status.clone();
        let _ = status.wait_for(|s| matches!(s, Status::Closed(_))).await;
    }

    /// Sends a request in the highest common version and waits for its answer.
    ///
    /// # Cancel safety
    /// A request not yet written is dropped; one that was written reaches the broker whole, and its answer is
    /// thrown away. The connection stays usable in both cases.
    ///
    /// # Errors
    /// No common version, connection lost, deadline passed, damaged answer.
    pub async fn call<R: Request>(&self, request: &R, deadline: Instant) -> Result<R::Response> {
        let version = self.version::<R>(R::KEY, R::MAX_VERSION, deadline).await?;
        self.call_version(request, R::KEY, version, deadline).await
    }

    /// Highest version, up to `cap`, in which the broker and this client speak `R` under the key `api`.
    ///
    /// # Cancel safety
    /// Sends nothing: as [`Connection::ready`].
    ///
    /// # Errors
    /// No common version, no connection before `deadline`.
    pub async fn version<R: Request>(&self, api: ApiKey, cap: i16, deadline: Instant) -> Result<i16> {
        let versions = self.ready(deadline).await?;
        let unsupported = |text: String| Error::new(ErrorKind::Unsupported, format!("{}: {text}", self.handle.peer));
        let version = versions.pick_as::<R>(api).map_err(|e| unsupported(e.to_string()))?.min(cap);
        let lowest = versions.range(api).map_or(R::MIN_VERSION, |(min, _)| min.max(R::MIN_VERSION));
        if version < lowest {
            return Err(unsupported(format!("{} is offered from version {lowest} on, {cap} is needed", R::NAME)));
        }
        Ok(version)
    }

    /// As [`Connection::call`], in a given version and under a given key.
    ///
    /// # Cancel safety
    /// As [`Connection::call`].
    ///
    /// # Errors
    /// As [`Connection::call`].
    pub async fn call_version<R: Request>(
        &self,
        request: &R,
        key: ApiKey,
        version: i16,
        deadline: Instant,
    ) -> Result<R::Response> {
        self.submit(request, key, version, deadline).await?.answer().await
    }

    /// Hands a request over. Requests of one caller are written in the order in which this returned.
    ///
    /// # Cancel safety
    /// Nothing was handed over, and nothing is sent, where it did not return. From then on see [`Submitted::answer`].
    ///
    /// # Errors
    /// As [`Connection::call`].
    pub async fn submit<R: Request>(
        &self,
        request: &R,
        key: ApiKey,
        version: i16,
        deadline: Instant,
    ) -> Result<Submitted<R>> {
        let id = self.next_id();
        let frame = frame::encode_request_as(key, request, version, id, &self.handle.client_id).map_err(|e| {
            Error::new(ErrorKind::InvalidInput, format!("{} version {version} cannot carry this: {e}", R::NAME))
        })?;
        let pending = self.hand_over(id, frame, deadline, true, R::NAME).await?;
        Ok(Submitted { pending, started: Instant::now(), version, request: PhantomData })
    }

    /// Sends an encoded request that the broker does not answer (Produce with acks 0).
    ///
    /// # Cancel safety
    /// A request not yet written is dropped; one that was, or is being written, reaches the broker whole.
    ///
    /// # Errors
    /// As [`Connection::call`].
    pub async fn send_unanswered(&self, id: i32, frame: Frame, deadline: Instant, what: &'static str) -> Result<()> {
        self.exchange(id, frame, deadline, false, what).await.map(drop)
    }

    /// A correlation id for a frame that the caller encodes.
    #[must_use]
    pub fn next_id(&self) -> i32 {
        // Wraps within the positive numbers; 0 belongs to the handshake.
        loop {
            let id = self.handle.next_id.fetch_add(1, Ordering::Relaxed) & i32::MAX;
            if id != 0 {
                return id;
            }
        }
    }

    /// Client id to encode frames with.
    #[must_use]
    pub fn client_id(&self) -> &Str {
        &self.handle.client_id
    }

    /// Holds back requests on this connection, as a response asked.
    pub fn obey_throttle(&self, throttle_time_ms: i32) {
        if let Ok(ms @ 1..) = u64::try_from(throttle_time_ms) {
            Traffic::add(&self.handle.traffic.throttled_ms, ms);
            let _ = self.handle.commands.try_send(Command::Throttle(Duration::from_millis(ms)));
        }
    }

    /// Sends an encoded request and waits for the frame of its answer.
    ///
    /// # Cancel safety
    /// As [`Connection::call`].
    ///
    /// # Errors
    /// As [`Connection::call`].
    pub async fn exchange(
        &self,
        id: i32,
        frame: Frame,
        deadline: Instant,
        answered: bool,
        what: &'static str,
    ) -> Result<Bytes> {
        self.hand_over(id, frame, deadline, answered, what).await?.answer().await
    }

    async fn hand_over(
        &self,
        id: i32,
        frame: Frame,
        deadline: Instant,
        answered: bool,
        what: &'static str,
    ) -> Result<Pending> {
        let gone = || {
            Error::call(&CallError::NotSent("the connection is closed".into()), format!("{}: {what}", self.handle.peer))
        };
        let call = Call { correlation_id: id, frame, deadline, answered };
        // Mostly there is room, and no time limit to be set up.
        let permit = match self.handle.commands.try_reserve() {
            Ok(permit) => permit,
            Err(TrySendError::Closed(())) => return Err(gone()),
            Err(TrySendError::Full(())) => {
                let reserved = Box::pin(tokio::time::timeout_at(deadline.into(), self.handle.commands.reserve())).await;
                let late =
                    |_| Error::call(&CallError::TimedOut { sent: false }, format!("{}: {what}", self.handle.peer));
                reserved.map_err(late)?.map_err(|_| gone())?
            }
        };
        Ok(self.hand_in(permit, call, what))
    }

    fn hand_in(&self, permit: mpsc::Permit<'_, Command>, call: Call, what: &'static str) -> Pending {
        let (reply, answer) = oneshot::channel();
        let id = call.correlation_id;
        permit.send(Command::Call(call, reply));
        // A permit outlives the task's last look at its commands: what is sent then is never seen, and kept by the channel.
        let late = self.handle.commands.is_closed();
        let guard = AbandonGuard { connection: self.clone(), id, armed: true };
        Pending { answer, guard, what, late }
    }
}

/// A request that was handed over. Dropping it throws its answer away.
#[derive(Debug)]
pub struct Submitted<R> {
    pending: Pending,
    started: Instant,
    version: i16,
    request: PhantomData<fn() -> R>,
}

impl<R: Request> Submitted<R> {
    /// Waits for the answer.
    ///
    /// # Cancel safety
    /// As [`Connection::call`]: a request not yet written is dropped, and the answer to one that was is thrown away.
    ///
    /// # Errors
    /// As [`Connection::call`].
    pub async fn answer(self) -> Result<R::Response> {
        let connection = self.pending.guard.connection.clone();
        let body = self.pending.answer().await?;
        let took = u64::try_from(self.started.elapsed().as_micros()).unwrap_or(u64::MAX);
        connection.handle.pace.store(took, Ordering::Relaxed);
        let (_, response) = frame::decode_response::<R>(body, self.version).map_err(|e| {
            let text = format!("damaged answer to {} version {}: {e}", R::NAME, self.version);
            // What else it says is no better; and share sessions end with their connection, so that no record stays locked
            // that came in an answer which nobody could read.
            let _ = connection.handle.commands.try_send(Command::Damaged(text.clone()));
            Error::new(ErrorKind::Protocol, format!("{}: {text}", connection.handle.peer)).after_sending()
        })?;
        connection.obey_throttle(response.throttle_time_ms());
        Ok(response)
    }
}

#[derive(Debug)]
struct Pending {
    answer: oneshot::Receiver<Answer>,
    guard: AbandonGuard,
    what: &'static str,
    /// The task had ended its work already, and may not have seen the request.
    late: bool,
}

impl Pending {
    async fn answer(mut self) -> Result<Bytes> {
        let result = if self.late {
            self.guard.connection.closed().await;
            let unseen = |_| Err(CallError::NotSent("the connection is closed".into()));
            Ok(self.answer.try_recv().unwrap_or_else(unseen))
        } else {
            (&mut self.answer).await
        };
        self.guard.armed = false;
        let place = || format!("{}: {}", self.guard.connection.handle.peer, self.what);
        match result {
            Ok(Ok(body)) => Ok(body),
            Ok(Err(error)) => Err(Error::call(&error, place())),
            // The task ended without telling: its runtime is shutting down.
            Err(_) => Err(Error::call(&CallError::Unanswered("the client has stopped".into()), place())),
        }
    }
}

/// Tells the task when a caller goes away before its answer.
#[derive(Debug)]
struct AbandonGuard {
    connection: Connection,
    id: i32,
    armed: bool,
}

impl Drop for AbandonGuard {
    fn drop(&mut self) {
        if self.armed {
            // A full channel is no harm: the answer then finds no receiver and is dropped.
            let _ = self.connection.handle.commands.try_send(Command::Abandon(self.id));
        }
    }
}

struct Driver<'a, S> {
    socket: S,
    machine: Machine,
    commands: mpsc::Receiver<Command>,
    status: &'a watch::Sender<Status>,
    waiting: HashMap<i32, oneshot::Sender<Answer>>,
    outgoing: VecDeque<Bytes>,
    /// The socket may keep bytes that it has taken.
    unflushed: bool,
    closing: Option<Ending>,
    alarm: Alarm,
    sasl: Option<Sasl>,
    /// Credentials that are being fetched.
    credentials: Option<Credentials>,
    /// How long they may take.
    patience: Duration,
    has_certificate: bool,
    traffic: Arc<Traffic>,
}

type Credentials = Pin<Box<dyn Future<Output = Result<Box<dyn SaslExchange>>> + Send>>;

impl<'a, S: Socket> Driver<'a, S> {
    fn new(
        socket: S,
        config: ConnectionConfig,
        commands: mpsc::Receiver<Command>,
        status: &'a watch::Sender<Status>,
    ) -> Self {
        let patience = config.handshake_timeout;
        Driver {
            socket,
            machine: Machine::new(config, Instant::now()),
            commands,
            status,
            waiting: HashMap::new(),
            outgoing: VecDeque::new(),
            unflushed: false,
            closing: None,
            alarm: Alarm::new(),
            sasl: None,
            credentials: None,
            patience,
            has_certificate: false,
            traffic: Arc::default(),
        }
    }

    /// Until the connection is over; the socket is still to be closed.
    async fn run(mut self) -> (Ending, S) {
        loop {
            self.carry_outputs();
            if let Some(ending) = self.closing.take() {
                self.fail_queued_commands();
                return (ending, self.socket);
            }
            self.traffic.waiting.store(self.waiting.len() as u64, Ordering::Relaxed);
            let deadline = self.machine.next_deadline();
            let (mut reader, mut writer) = tokio::io::split(&mut self.socket);
            // Every branch is cancel safe: one read, one write of what is queued, one receive.
            tokio::select! {
                read = reader.read_buf(self.machine.buffer()) => match read {
                    Ok(0) => self.machine.handle_closed("connection closed by the broker"),
                    Ok(n) => {
                        Traffic::add(&self.traffic.received, n as u64);
                        self.machine.handle_received(Instant::now());
                    }
                    Err(error) => self.handle_lost(&error),
                },
                written = push(&mut writer, &self.outgoing), if self.unflushed || !self.outgoing.is_empty() => match written {
                    Ok(0) if self.outgoing.is_empty() => self.unflushed = false,
                    Ok(0) => self.machine.handle_closed("connection lost: the socket takes no more bytes"),
                    Ok(n) => {
                        Traffic::add(&self.traffic.sent, n as u64);
                        advance(&mut self.outgoing, n);
                        self.unflushed = S::BUFFERS;
                    }
                    Err(error) => self.handle_write_failed(error).await,
                },
                exchange = fetched(&mut self.credentials), if self.credentials.is_some() => {
                    self.credentials = None;
                    let unusable = |error: Error| match error.kind() {
                        ErrorKind::Authentication => Ending::Refused(error.to_string()),
                        _ => Ending::Lost(error.to_string()),
                    };
                    self.machine.handle_credentials(Instant::now(), exchange.map_err(unusable));
                }
                command = self.commands.recv() => match command {
                    Some(command) => {
                        self.handle_command(command);
                        // What came meanwhile goes out in the same write.
                        for _ in 1..COMMANDS {
                            let Ok(command) = self.commands.try_recv() else { break };
                            self.handle_command(command);
                        }
                    }
                    None => self.machine.handle_closed("no longer used"),
                },
                () = self.alarm.until(deadline) => self.machine.handle_timeout(Instant::now()),
            }
        }
    }

    /// The socket has failed.
    fn handle_lost(&mut self, error: &std::io::Error) {
        let began = matches!(*self.status.borrow(), Status::Ready(_));
        match S::refusal(error, self.has_certificate).filter(|_| !began) {
            Some(why) => self.machine.handle_refused(why),
            None => self.machine.handle_closed(&format!("connection lost: {error}")),
        }
    }

    /// A broker that has closed the connection may have said why, in words that are still to be read.
    async fn handle_write_failed(&mut self, error: std::io::Error) {
        let mut last = [0; 64];
        match tokio::time::timeout(LAST_WORDS, self.socket.read(&mut last)).await {
            Ok(Err(words)) if S::BUFFERS => self.handle_lost(&words),
            _ => self.handle_lost(&error),
        }
    }

    fn handle_command(&mut self, command: Command) {
        let now = Instant::now();
        match command {
            Command::Call(call, reply) => {
                self.waiting.insert(call.correlation_id, reply);
                self.machine.handle_call(now, call);
            }
            Command::Abandon(id) => {
                self.waiting.remove(&id);
                self.machine.handle_abandon(id);
            }
            Command::Throttle(time) => self.machine.handle_throttle(now, time),
            Command::Damaged(reason) => self.machine.handle_closed(&reason),
        }
    }

    fn carry_outputs(&mut self) {
        if self.machine.is_closed() {
            // Before anybody hears of it: who comes again at once must get another connection.
            self.commands.close();
        }
        while let Some(output) = self.machine.poll_output() {
            match output {
                Output::Transmit(frame) => self.outgoing.extend(frame.into_segments()),
                Output::Authenticate => {
                    let limit = self.patience;
                    let fetch = |sasl: Sasl| -> Credentials { Box::pin(async move { sasl.exchange(limit).await }) };
                    self.credentials = self.sasl.clone().map(fetch);
                }
                Output::Ready(versions) => drop(self.status.send(Status::Ready(Arc::new(versions)))),
                Output::Done(id, result) => {
                    if let Some(reply) = self.waiting.remove(&id) {
                        let _ = reply.send(result);
                    }
                }
                Output::Close(ending) => self.closing = Some(ending),
            }
        }
    }

    /// Calls that were handed over but not yet seen by the machine certainly did not reach the broker.
    fn fail_queued_commands(&mut self) {
        self.commands.close();
        while let Ok(command) = self.commands.try_recv() {
            if let Command::Call(_, reply) = command {
                let _ = reply.send(Err(CallError::NotSent("the connection is closed".into())));
            }
        }
    }
}

async fn fetched(credentials: &mut Option<Credentials>) -> Result<Box<dyn SaslExchange>> {
    match credentials {
        Some(credentials) => credentials.await,
        None => std::future::pending().await,
    }
}

/// Writes what the socket takes at once; where there is nothing left to write, has it let go of what it keeps, and answers 0.
async fn push<W: AsyncWrite + Unpin>(writer: &mut W, outgoing: &VecDeque<Bytes>) -> std::io::Result<usize> {
    if outgoing.is_empty() {
        return writer.flush().await.map(|()| 0);
    }
    let mut slices = [IoSlice::new(&[]); MAX_SLICES];
    let mut count = 0;
    for (slot, segment) in slices.iter_mut().zip(outgoing) {
        *slot = IoSlice::new(segment);
        count += 1;
    }
    writer.write_vectored(&slices[..count]).await
}

fn advance(outgoing: &mut VecDeque<Bytes>, mut written: usize) {
    while let Some(front) = outgoing.front_mut() {
        if written < front.len() {
            front.advance(written);
            return;
        }
        written -= front.len();
        outgoing.pop_front();
    }
}

#[cfg(test)]
#[path = "connection_tests.rs"]
mod tests;
