//! Authentication on one connection (KIP-43, KIP-152) and its renewal before it expires (KIP-368).
//!
//! What a mechanism says is the business of a [`SaslExchange`]; here is when it may speak, how its words travel, and until
//! when what they brought about is good.

use super::{Ending, HANDSHAKE_ID};
use crate::backoff::Jitter;
use crate::versions::ApiVersions;
use bytes::Bytes;
use kafka_share_messages::{
    ErrorCode, SaslAuthenticateRequest, SaslAuthenticateResponse, SaslHandshakeRequest, SaslHandshakeResponse, frame,
};
use kafka_share_wire::{Frame, Str};
use std::collections::VecDeque;
use std::fmt;
use std::time::{Duration, Instant};

/// Largest message of a mechanism that is accepted from a broker, in bytes.
const MAX_CHALLENGE: usize = 512 << 10;
/// Messages of one exchange, at most; the longest of the mechanisms has three.
const MAX_ROUNDS: u32 = 16;

/// Authentication that a listener asks for.
#[derive(Debug, Clone)]
pub struct SaslConfig {
    /// The mechanism's name, as brokers know it (`PLAIN`, `SCRAM-SHA-256`, ..).
    pub mechanism: Str,
    /// For jitter, so that connections do not renew their authentication all at once.
    pub seed: u64,
}

/// Pause before credentials that could not be had are asked for again.
const PAUSE: Duration = Duration::from_secs(1);

/// Brokers refuse to authenticate a connection again within a second (`KafkaChannel` in Kafka 4.4.0), by their clock.
const LEAST_INTERVAL: Duration = Duration::from_millis(1010);

/// What a mechanism does next.
#[derive(PartialEq, Eq)]
pub enum SaslStep {
    /// This message goes to the broker.
    Send(Vec<u8>),
    /// The exchange is complete; where the mechanism proves who the broker is, it has.
    Done,
}

impl fmt::Debug for SaslStep {
    /// Without the message, which may be a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if *self == SaslStep::Done { "Done" } else { "Send(..)" })
    }
}

/// One run of a mechanism, on the client's side. It holds secrets: its `Debug` must not show them.
pub trait SaslExchange: Send + fmt::Debug {
    /// The next step, given the broker's message; at first there is none.
    ///
    /// # Errors
    /// The broker's message is not what the mechanism allows, or the broker is not who it should be: in words, without
    /// secrets. No retry heals that.
    fn step(&mut self, challenge: Option<&[u8]>) -> Result<SaslStep, String>;
}

/// How far authentication has come.
#[derive(Debug)]
enum Phase {
    /// There is none, or it is done.
    Idle,
    /// Credentials were asked for, and have not come.
    Asked,
    /// The mechanism was named to the broker.
    Handshake(Box<dyn SaslExchange>),
    /// Messages go to and fro.
    Exchange(Box<dyn SaslExchange>, u32),
}

/// Until when the broker takes requests on the strength of the last authentication.
#[derive(Debug, Clone, Copy)]
pub(super) struct Session {
    /// When it is to be renewed.
    pub(super) due: Instant,
    /// From here on no request may be written before it is: a broker that reads one after the end closes the connection. A
    /// session that is too short for [`LEAST_INTERVAL`] is held before it is due, and renewed after its end, which brokers
    /// allow as long as nothing else comes in between.
    pub(super) hold: Instant,
    /// The end of it, by our clock.
    end: Instant,
    /// The earliest that requests may have to wait.
    middle: Instant,
    /// Brokers do not renew before, or credentials are not asked for again.
    earliest: Instant,
}

/// What comes after an answer of the broker's.
pub(super) enum Progress {
    /// This goes out.
    Send(Frame),
    /// The client is authenticated.
    Done,
}

/// Authentication of one connection.
#[derive(Debug)]
pub(super) struct Sasl {
    config: SaslConfig,
    client_id: Str,
    jitter: Jitter,
    authenticate_version: i16,
    phase: Phase,
    pub(super) session: Option<Session>,
    /// When the last authentication was begun, at the latest.
    begun: Option<Instant>,
    /// When the requests that are under way were written, in their order.
    sent: VecDeque<Instant>,
    /// Longest that the broker took to come to a request that was written behind others, since the last authentication and
    /// between the two before.
    behind: [Duration; 2],
}

impl Sasl {
    pub(super) fn new(config: SaslConfig, client_id: Str) -> Self {
        let jitter = Jitter::new(config.seed);
        Sasl {
            config,
            client_id,
            jitter,
            authenticate_version: 0,
            phase: Phase::Idle,
            session: None,
            begun: None,
            sent: VecDeque::new(),
            behind: [Duration::ZERO; 2],
        }
    }

    /// Learns what the broker speaks, and that credentials are needed.
    pub(super) fn begin(&mut self, versions: &ApiVersions) -> Result<(), Ending> {
        let mechanism = &self.config.mechanism;
        let none = |what: &str| {
            Ending::Refused(format!(
                "SASL {mechanism} is not possible: {what}; if the listener asks for no authentication, set security.protocol to PLAINTEXT or SSL"
            ))
        };
        // Version 0 has its messages outside of Kafka's frames, without a word on what went wrong; brokers speak 1 since 1.0.
        match versions.pick::<SaslHandshakeRequest>() {
            Ok(1..) => {}
            Ok(_) => return Err(none("the broker offers SaslHandshake version 0 only")),
            Err(error) => return Err(none(&error.to_string())),
        }
        self.authenticate_version =
            versions.pick::<SaslAuthenticateRequest>().map_err(|error| none(&error.to_string()))?;
        self.phase = Phase::Asked;
        Ok(())
    }

    /// Whether credentials are to be asked for, so that what waits can go out. Says so once.
    pub(super) fn wants_renewal(&mut self, now: Instant) -> bool {
        let due = matches!(self.phase, Phase::Idle) && self.session.is_some_and(|s| self.due(&s) <= now);
        if due {
            self.phase = Phase::Asked;
        }
        due
    }

    /// Whether requests have to wait: the broker would take one for a part of the exchange, or for one that comes too late.
    pub(super) fn holds(&self, now: Instant) -> bool {
        match self.phase {
            Phase::Idle | Phase::Asked => self.session.is_some_and(|s| self.hold(&s) <= now),
            Phase::Handshake(_) | Phase::Exchange(..) => true,
        }
    }

    /// When a renewal that calls wait for is due.
    pub(super) fn wake(&self) -> Option<Instant> {
        let session = self.session?;
        let due = self.due(&session);
        (matches!(self.phase, Phase::Idle) && self.hold(&session) < due).then_some(due)
    }

    /// A request was written.
    pub(super) fn note_sent(&mut self, now: Instant) {
        self.sent.push_back(now);
    }

    /// The broker has answered the first of the requests under way, and comes to the next.
    pub(super) fn note_answered(&mut self, now: Instant) {
        self.sent.pop_front();
        if let Some(next) = self.sent.front() {
            self.behind[0] = self.behind[0].max(now.saturating_duration_since(*next));
        }
    }

    /// What is written from then on might be read after the end, with all that is before it.
    fn hold(&self, session: &Session) -> Instant {
        let margin = 2 * self.behind[0].max(self.behind[1]);
        let by_pace = session.end.checked_sub(margin).unwrap_or(session.middle);
        session.hold.min(by_pace.max(session.middle))
    }

    fn due(&self, session: &Session) -> Instant {
        session.due.min(self.hold(session)).max(session.earliest)
    }

    /// There are no credentials at the moment. Answers whether there is time to ask again, as it will.
    pub(super) fn put_off(&mut self, now: Instant) -> bool {
        let Some(session) = self.session.as_mut().filter(|s| now < s.hold) else { return false };
        // The pause counts even where the broker's pace has calls held already.
        session.earliest = session.earliest.max((now + PAUSE).min(session.hold));
        self.phase = Phase::Idle;
        true
    }

    /// Until when calls can go out while credentials are fetched, where there is such a time.
    pub(super) fn held_from(&self, now: Instant) -> Instant {
        self.session.map_or(now, |session| self.hold(&session).max(now))
    }

    /// Whether the broker owes an answer of the exchange.
    pub(super) fn waits_for_broker(&self) -> bool {
        matches!(self.phase, Phase::Handshake(_) | Phase::Exchange(..))
    }

    /// Name of the mechanism.
    pub(super) fn mechanism(&self) -> &Str {
        &self.config.mechanism
    }

    /// Credentials have come; the frame that names the mechanism.
    pub(super) fn start(&mut self, exchange: Box<dyn SaslExchange>) -> Result<Frame, Ending> {
        let request = SaslHandshakeRequest { mechanism: self.config.mechanism.clone() };
        let frame = frame::encode_request(&request, 1, HANDSHAKE_ID, &self.client_id).map_err(|e| self.lost(&e))?;
        self.phase = Phase::Handshake(exchange);
        Ok(frame)
    }

    /// The broker's answer to the last frame.
    pub(super) fn handle_answer(&mut self, now: Instant, answer: Bytes) -> Result<Progress, Ending> {
        match std::mem::replace(&mut self.phase, Phase::Idle) {
            Phase::Handshake(exchange) => {
                let (_, response) =
                    frame::decode_response::<SaslHandshakeRequest>(answer, 1).map_err(|e| self.lost(&e))?;
                self.check_handshake(&response)?;
                self.begun = Some(now);
                self.step(exchange, None, 0)
            }
            Phase::Exchange(exchange, rounds) => {
                let version = self.authenticate_version;
                let decoded = frame::decode_response::<SaslAuthenticateRequest>(answer, version);
                let (_, response) = decoded.map_err(|e| self.lost(&e))?;
                self.check_answer(&response)?;
                self.remember(now, response.session_lifetime_ms);
                self.step(exchange, Some(&response.auth_bytes), rounds + 1)
            }
            Phase::Idle | Phase::Asked => {
                Err(Ending::Lost("the broker answered an authentication that nobody asked for".into()))
            }
        }
    }

    fn step(
        &mut self,
        mut exchange: Box<dyn SaslExchange>,
        challenge: Option<&[u8]>,
        rounds: u32,
    ) -> Result<Progress, Ending> {
        let mechanism = &self.config.mechanism;
        let step = exchange.step(challenge);
        match step.map_err(|why| Ending::Refused(format!("SASL {mechanism} has failed: {why}")))? {
            SaslStep::Done => Ok(Progress::Done),
            SaslStep::Send(_) if rounds >= MAX_ROUNDS => {
                Err(Ending::Refused(format!("SASL {mechanism} has failed: it comes to no end")))
            }
            SaslStep::Send(message) => {
                let request =
                    SaslAuthenticateRequest { auth_bytes: message.into(), ..SaslAuthenticateRequest::default() };
                let version = self.authenticate_version;
                let frame = frame::encode_request(&request, version, HANDSHAKE_ID, &self.client_id);
                let frame = frame.map_err(|e| self.lost(&e))?;
                self.phase = Phase::Exchange(exchange, rounds);
                Ok(Progress::Send(frame))
            }
        }
    }

    fn lost(&self, error: &dyn fmt::Display) -> Ending {
        Ending::Lost(format!("authenticating with SASL {}: {error}", self.config.mechanism))
    }

    fn check_handshake(&self, response: &SaslHandshakeResponse) -> Result<(), Ending> {
        let mechanism = &self.config.mechanism;
        let offered: Vec<&str> = response.mechanisms.iter().map(Str::as_str).collect();
        let why = match response.error_code {
            ErrorCode::NONE => return Ok(()),
            ErrorCode::UNSUPPORTED_SASL_MECHANISM => {
                format!("the broker offers {} on this listener; set sasl.mechanism to one of them", offered.join(", "))
            }
            ErrorCode::ILLEGAL_SASL_STATE if self.session.is_some() => {
                let text = format!("the broker does not let SASL {mechanism} be renewed so soon");
                return Err(Ending::Lost(text));
            }
            ErrorCode::ILLEGAL_SASL_STATE => {
                "the listener asks for no authentication; set security.protocol to PLAINTEXT or SSL".to_owned()
            }
            code => return Err(self.refused(code, None)),
        };
        Err(Ending::Refused(format!("SASL {mechanism} was refused: {}: {why}", response.error_code)))
    }

    fn check_answer(&self, response: &SaslAuthenticateResponse) -> Result<(), Ending> {
        if response.error_code.is_err() {
            return Err(self.refused(response.error_code, response.error_message.as_ref()));
        }
        if response.auth_bytes.len() > MAX_CHALLENGE {
            return Err(self.lost(&format_args!("the broker sent {} bytes at once", response.auth_bytes.len())));
        }
        Ok(())
    }

    fn refused(&self, code: ErrorCode, message: Option<&Str>) -> Ending {
        let mechanism = &self.config.mechanism;
        let about = message.map_or(code.about(), Str::as_str);
        let text = format!("SASL {mechanism} was refused: {code}: {about}");
        if code.is_retriable() {
            return Ending::Lost(text);
        }
        let advice = match mechanism.as_str() {
            "OAUTHBEARER" => "check the token and where it comes from",
            _ => "check the user name and the password in sasl.jaas.config",
        };
        Ending::Refused(format!("{text}; {advice}"))
    }

    /// Times the next authentication: at 85 % to 95 % of what the broker gives, which may be nothing at all.
    pub(super) fn remember(&mut self, now: Instant, lifetime_ms: i64) {
        let lifetime = u64::try_from(lifetime_ms).unwrap_or(0);
        let random = 850 + self.jitter.next_u64() % 101;
        let part = |thousandths: u64| {
            let ms = u128::from(lifetime) * u128::from(thousandths) / 1000;
            now.checked_add(Duration::from_millis(u64::try_from(ms).unwrap_or(u64::MAX)))
        };
        self.behind = [Duration::ZERO, self.behind[0]];
        let earliest = self.begun.map_or(now, |begun| begun + LEAST_INTERVAL);
        // A time that no clock reaches is none.
        self.session = match (lifetime, part(500), part(random), part((random + 1000) / 2), part(1000)) {
            (1.., Some(middle), Some(due), Some(hold), Some(end)) => {
                Some(Session { due: due.max(earliest), hold, end, middle, earliest })
            }
            _ => None,
        };
    }
}
