//! The steps by which a connection of a SASL listener authenticates, and does so again (KIP-43, KIP-152, KIP-368).

use super::oauth::{self, INVALID_TOKEN, Verdict};
use super::scram::{self, Challenged};
use super::{ANONYMOUS, Credentials, Mechanism, Secrets, plain};
use crate::Now;
use kafka_share_messages::ApiKey;
use kafka_share_wire::Str;
use std::time::Duration;

/// A session may be begun anew only so often, as in Kafka.
const LEAST_BETWEEN: Duration = Duration::from_secs(1);

/// Why a token is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The client is told this.
    Told(String),
    /// The client is told that its credentials are invalid.
    Credentials,
    /// The connection is closed without a word.
    Silent(&'static str),
}

/// What a connection has proved, and what it may do next.
#[derive(Debug)]
pub(crate) enum Auth {
    /// Nothing is left to prove.
    Open(Str),
    /// It authenticates, or has done so, by SASL.
    Sasl(Box<Sasl>),
}

/// A connection of a SASL listener.
#[derive(Debug)]
pub(crate) struct Sasl {
    phase: Phase,
    /// Tokens come without headers (SaslHandshake v0).
    bare_tokens: bool,
    /// Who the client has proved to be, and how.
    proved: Option<(Str, Mechanism)>,
    /// When the session ends.
    ends: Option<Duration>,
    /// When the session was last begun anew.
    last_again: Option<Duration>,
}

#[derive(Debug)]
enum Phase {
    /// Nothing came yet, or the client was told the versions, which happens once.
    Handshake { versions_told: bool },
    /// Tokens are exchanged.
    Exchange(Mechanism, Exchange),
    /// The handshake of a new session asked for another mechanism than the session has.
    OtherMechanism,
    /// Requests are served.
    Done,
    /// The connection is about to be closed.
    Failed,
}

#[derive(Debug)]
enum Exchange {
    First,
    Challenged(Box<Challenged>),
    TokenRefused,
}

/// What may be done with a request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Gate {
    /// It is served, for this principal.
    Serve(Str),
    /// It is answered with ILLEGAL_SASL_STATE, and then the connection is closed.
    Illegal,
    /// The connection is closed: it would have to authenticate first.
    Unauthenticated,
    /// The connection is closed: its session is over.
    Expired,
}

/// What a handshake comes to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Handshake {
    Accepted,
    /// There is nothing to authenticate, or not now.
    Illegal,
    /// The mechanism is not offered; the connection ends.
    Unsupported,
    /// The connection ends without a word.
    Silent,
}

/// What a good token comes to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Progress {
    pub(crate) token: Vec<u8>,
    /// How long the session lasts, in milliseconds; 0 while there is none, or for ever.
    pub(crate) lifetime_ms: i64,
}

impl Auth {
    pub(crate) fn sasl() -> Self {
        Auth::Sasl(Box::new(Sasl {
            phase: Phase::Handshake { versions_told: false },
            bare_tokens: false,
            proved: None,
            ends: None,
            last_again: None,
        }))
    }

    /// Whether the next frame is a token without a header.
    pub(crate) fn takes_bare_token(&self) -> bool {
        matches!(self, Auth::Sasl(sasl) if sasl.bare_tokens && matches!(sasl.phase, Phase::Exchange(..)))
    }

    /// Whether requests are served.
    pub(crate) fn is_open(&self) -> bool {
        match self {
            Auth::Open(_) => true,
            Auth::Sasl(sasl) => sasl.proved.is_some(),
        }
    }

    /// Who is asking.
    pub(crate) fn principal(&self) -> Str {
        match self {
            Auth::Open(principal) => principal.clone(),
            Auth::Sasl(sasl) => sasl.proved.as_ref().map_or(ANONYMOUS, |(principal, _)| principal.clone()),
        }
    }

    /// What may be done with a request of this API.
    pub(crate) fn gate(&mut self, now: Now, key: ApiKey) -> Gate {
        let principal = self.principal();
        let Auth::Sasl(sasl) = self else { return Gate::Serve(principal) };
        let (may_begin_anew, expired) = (sasl.may_begin_anew(now), sasl.ends.is_some_and(|end| now.mono > end));
        match (&sasl.phase, key) {
            (Phase::Handshake { .. }, ApiKey::SASL_HANDSHAKE) => Gate::Serve(principal),
            (Phase::Handshake { versions_told: false }, ApiKey::API_VERSIONS) => Gate::Serve(principal),
            (Phase::Handshake { .. } | Phase::Failed | Phase::OtherMechanism, _) => Gate::Unauthenticated,
            (Phase::Exchange(..), ApiKey::SASL_AUTHENTICATE) => Gate::Serve(principal),
            (Phase::Exchange(..), _) => {
                sasl.phase = Phase::Failed;
                Gate::Illegal
            }
            (Phase::Done, ApiKey::SASL_HANDSHAKE) if may_begin_anew => Gate::Serve(principal),
            (Phase::Done, _) if expired => Gate::Expired,
            (Phase::Done, _) => Gate::Serve(principal),
        }
    }

    /// ApiVersions was answered with the versions. A refusal does not count: the client asks again.
    pub(crate) fn told_versions(&mut self) {
        if let Auth::Sasl(sasl) = self
            && let Phase::Handshake { versions_told } = &mut sasl.phase
        {
            *versions_told = true;
        }
    }

    /// The client chose a mechanism.
    pub(crate) fn handshake(&mut self, known: &Credentials, now: Now, name: &str, version: i16) -> Handshake {
        let Auth::Sasl(sasl) = self else { return Handshake::Illegal };
        let anew = matches!(sasl.phase, Phase::Done);
        if anew && !sasl.may_begin_anew(now) {
            return Handshake::Illegal;
        }
        let chosen = Mechanism::from_name(name).filter(|mechanism| known.mechanisms.contains(mechanism));
        let Some(mechanism) = chosen else {
            sasl.phase = Phase::Failed;
            return if anew { Handshake::Silent } else { Handshake::Unsupported };
        };
        if anew {
            sasl.last_again = Some(now.mono);
        }
        let other = sasl.proved.as_ref().is_some_and(|(_, before)| *before != mechanism);
        sasl.phase = if other { Phase::OtherMechanism } else { Phase::Exchange(mechanism, Exchange::First) };
        sasl.bare_tokens = version == 0;
        Handshake::Accepted
    }

    /// The client sent a token. `None` if none is expected.
    pub(crate) fn token(
        &mut self,
        known: &Credentials,
        now: Now,
        secrets: &mut Secrets,
        token: &[u8],
    ) -> Option<Result<Progress, Failure>> {
        match self {
            Auth::Sasl(sasl) if matches!(sasl.phase, Phase::Exchange(..)) => {
                Some(sasl.step(known, now, secrets, token).map_err(|failure| sasl.fail(failure)))
            }
            _ => None,
        }
    }
}

/// What a step of an exchange comes to.
enum Step {
    /// The client has to answer this.
    Ask(Vec<u8>, Exchange),
    /// The client is known: its name, a last token, and when its credentials end.
    Proved(String, Vec<u8>, Option<i64>),
}

impl Sasl {
    fn may_begin_anew(&self, now: Now) -> bool {
        self.ends.is_some() && self.last_again.is_none_or(|last| now.mono.saturating_sub(last) >= LEAST_BETWEEN)
    }

    /// Names the mechanism in what the client is told.
    fn fail(&mut self, failure: Failure) -> Failure {
        let before = std::mem::replace(&mut self.phase, Phase::Failed);
        match (failure, before) {
            (Failure::Credentials, Phase::Exchange(mechanism, _)) => {
                let what = if self.proved.is_some() { "re-authentication" } else { "authentication" };
                Failure::Told(format!(
                    "Authentication failed during {what} due to invalid credentials with SASL mechanism {}",
                    mechanism.name()
                ))
            }
            (failure, _) => failure,
        }
    }

    fn step(
        &mut self,
        known: &Credentials,
        now: Now,
        secrets: &mut Secrets,
        token: &[u8],
    ) -> Result<Progress, Failure> {
        let Phase::Exchange(mechanism, exchange) = &self.phase else { return Err(Failure::Credentials) };
        let mechanism = *mechanism;
        let step = match exchange {
            Exchange::First => first(mechanism, known, now, secrets, token)?,
            Exchange::Challenged(challenged) => {
                let (name, last) = challenged.verify(token)?;
                Step::Proved(name, last, None)
            }
            Exchange::TokenRefused if token == [1] => return Err(Failure::Told(INVALID_TOKEN.to_owned())),
            Exchange::TokenRefused => return Err(Failure::Credentials),
        };
        match step {
            Step::Ask(token, next) => {
                self.phase = Phase::Exchange(mechanism, next);
                Ok(Progress { token, lifetime_ms: 0 })
            }
            Step::Proved(name, token, until_ms) => {
                let lifetime_ms = self.prove(known, now, mechanism, &name, until_ms)?;
                Ok(Progress { token, lifetime_ms })
            }
        }
    }

    fn prove(
        &mut self,
        known: &Credentials,
        now: Now,
        mechanism: Mechanism,
        name: &str,
        until_ms: Option<i64>,
    ) -> Result<i64, Failure> {
        let principal = Str::from(format!("User:{name}"));
        if let Some((before, _)) = self.proved.as_ref().filter(|(before, _)| *before != principal) {
            let before = before.strip_prefix("User:").unwrap_or(before);
            let why = format!("Cannot change principals during re-authentication from User.{before}: User.{name}");
            return Err(Failure::Told(why));
        }
        let longest =
            (!known.max_reauth.is_zero()).then(|| i64::try_from(known.max_reauth.as_millis()).unwrap_or(i64::MAX));
        let credentials = until_ms.map(|until| until.saturating_sub(now.wall_ms).max(0));
        let lifetime = [longest, credentials].into_iter().flatten().min();
        // 0 would mean that the session never ends.
        let lifetime = lifetime.map(|ms| ms.max(1));
        self.ends = lifetime.map(|ms| now.after_ms(ms));
        self.proved = Some((principal, mechanism));
        self.phase = Phase::Done;
        Ok(lifetime.unwrap_or(0))
    }
}

fn first(
    mechanism: Mechanism,
    known: &Credentials,
    now: Now,
    secrets: &mut Secrets,
    token: &[u8],
) -> Result<Step, Failure> {
    let scram = |users: &std::collections::HashMap<String, scram::ScramCredential>, secrets: &mut Secrets| {
        let nonce = format!("{:032x}", secrets.next());
        let (challenged, answer) = scram::challenge(|name| users.get(name).cloned(), token, &nonce)?;
        Ok(Step::Ask(answer, Exchange::Challenged(Box::new(challenged))))
    };
    match mechanism {
        Mechanism::Plain => Ok(Step::Proved(plain::check(&known.plain.0, token)?, Vec::new(), None)),
        Mechanism::ScramSha256 => scram(&known.scram256.0, secrets),
        Mechanism::ScramSha512 => scram(&known.scram512.0, secrets),
        Mechanism::OAuthBearer => {
            let key = known.token_key.as_ref().ok_or(Failure::Credentials)?;
            Ok(match oauth::check(key, token, now.wall_ms)? {
                Verdict::Known { name, until_ms } => Step::Proved(name, Vec::new(), Some(until_ms)),
                Verdict::Refused => Step::Ask(INVALID_TOKEN.as_bytes().to_vec(), Exchange::TokenRefused),
            })
        }
    }
}
