//! Tokens of OAUTHBEARER: where they come from, and how long one is used.

use crate::secret::Secret;
use crate::{Error, ErrorKind, Result};
use async_trait::async_trait;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use kafka_share_core::backoff::Jitter;
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// Longest token file that is read, in bytes.
const MAX_TOKEN: u64 = 1 << 20;

/// A bearer token. It is not shown.
#[derive(Debug, Clone)]
pub struct OAuthToken {
    value: Secret,
    expires: Option<SystemTime>,
    extensions: BTreeMap<String, String>,
}

impl OAuthToken {
    /// From the token itself. When it expires is read from it where it is a JWT.
    #[must_use]
    pub fn new(value: &str) -> Self {
        let value = value.trim();
        OAuthToken { expires: expiry(value), value: Secret::new(value), extensions: BTreeMap::new() }
    }

    /// When it expires. It is used for most of that time (`sasl.login.refresh.window.factor`), and for one connection only
    /// where that is not known.
    #[must_use]
    pub fn expires_at(mut self, time: SystemTime) -> Self {
        self.expires = Some(time);
        self
    }

    /// A SASL extension (KIP-342) that goes with it.
    #[must_use]
    pub fn extension(mut self, name: &str, value: &str) -> Self {
        self.extensions.insert(name.to_owned(), value.to_owned());
        self
    }

    pub(super) fn value(&self) -> &[u8] {
        self.value.bytes()
    }

    pub(super) fn extensions(&self) -> &BTreeMap<String, String> {
        &self.extensions
    }

    /// A stray separator would let a token pass for something else.
    fn check(&self) -> Result<()> {
        let wrong = |text: String| Err(Error::new(ErrorKind::Authentication, text));
        if self.value.is_empty() || !self.value.bytes().iter().all(|b| matches!(b, 0x21..=0x7e)) {
            return wrong("the token for OAUTHBEARER is empty, or has other signs than a token can have".into());
        }
        for (name, value) in &self.extensions {
            let good_value = value.bytes().all(|b| matches!(b, 0x20..=0x7e | b'\t' | b'\r' | b'\n'));
            if name.is_empty() || !name.bytes().all(|b| b.is_ascii_alphabetic()) || name == "auth" || !good_value {
                return wrong(format!("the SASL extension {name:?} has a name or a value that is not allowed"));
            }
        }
        Ok(())
    }
}

/// Where tokens come from.
#[async_trait]
pub trait TokenProvider: Send + Sync + 'static {
    /// A token that is good now. It is asked for when a connection is opened, or its authentication renewed, and the one from
    /// before has not long to live.
    ///
    /// # Cancel safety
    /// A connection that is given up drops the call, and so does one for which it takes longer than
    /// `socket.connection.setup.timeout.ms`. Calls come one at a time.
    ///
    /// # Errors
    /// [`ErrorKind::Authentication`] where no retry heals it; others are tried again with the connection. A panic is taken for
    /// one of those.
    async fn token(&self) -> Result<OAuthToken>;
}

/// Reads what is in the middle of a JWT, without checking anything: that is for the broker.
fn expiry(token: &str) -> Option<SystemTime> {
    let claims = URL_SAFE_NO_PAD.decode(token.split('.').nth(1)?.trim_end_matches('=')).ok()?;
    let claims: serde_json::Value = serde_json::from_slice(&claims).ok()?;
    let seconds = claims.get("exp")?.as_f64().filter(|s| (0.0..1e15).contains(s))?;
    UNIX_EPOCH.checked_add(Duration::from_secs_f64(seconds))
}

/// When a token is replaced (`sasl.login.refresh.*`).
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Refresh {
    pub(super) factor: f64,
    pub(super) jitter: f64,
    pub(super) min_period: Duration,
    pub(super) buffer: Duration,
}

impl Default for Refresh {
    fn default() -> Self {
        Refresh { factor: 0.8, jitter: 0.05, min_period: Duration::from_secs(60), buffer: Duration::from_secs(300) }
    }
}

impl Refresh {
    /// How long to use a token that lives so much longer. `random` is from 0 to 1.
    fn usable_for(&self, life: Duration, random: f64) -> Duration {
        let part = life.mul_f64((self.factor + self.jitter * random).clamp(0.0, 1.0));
        if life >= self.min_period + self.buffer {
            return part.min(life - self.buffer).max(self.min_period);
        }
        part
    }
}

/// A provider, and the last token that it gave.
pub(super) struct Tokens {
    provider: Arc<dyn TokenProvider>,
    refresh: Refresh,
    asking: Semaphore,
    state: Mutex<State>,
}

struct State {
    last: Option<(OAuthToken, SystemTime)>,
    jitter: Jitter,
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tokens").field("refresh", &self.refresh).finish_non_exhaustive()
    }
}

impl Tokens {
    pub(super) fn new(provider: Box<dyn TokenProvider>, refresh: Refresh, seed: u64) -> Self {
        let state = State { last: None, jitter: Jitter::new(seed) };
        Tokens { provider: provider.into(), refresh, asking: Semaphore::new(1), state: Mutex::new(state) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn usable(&self) -> Option<OAuthToken> {
        let state = self.state();
        state.last.as_ref().filter(|(_, until)| SystemTime::now() < *until).map(|(token, _)| token.clone())
    }

    /// As [`Tokens::bring`], within a time: whoever waits for the provider keeps all others waiting.
    pub(super) async fn token(&self, limit: Duration) -> Result<OAuthToken> {
        let late = |_| Error::new(ErrorKind::Timeout, format!("no token for OAUTHBEARER came within {limit:?}"));
        tokio::time::timeout(limit, self.bring()).await.map_err(late)?
    }

    /// Forgets the last token, which a broker has refused.
    pub(super) fn forget(&self) {
        self.state().last = None;
    }

    /// Asks the provider, in a task of its own, so that a panic there is no more than an error here.
    async fn ask(&self) -> Result<OAuthToken> {
        let provider = Arc::clone(&self.provider);
        let mut task = JoinSet::new();
        task.spawn(async move { provider.token().await });
        match task.join_next().await {
            Some(Ok(result)) => result,
            _ => Err(Error::new(ErrorKind::Connect, "the token provider has panicked")),
        }
    }

    /// A token that is good for a while. What one caller brings serves all who wait.
    async fn bring(&self) -> Result<OAuthToken> {
        if let Some(token) = self.usable() {
            return Ok(token);
        }
        let _turn = self.asking.acquire().await;
        if let Some(token) = self.usable() {
            return Ok(token);
        }
        let token = self.ask().await.map_err(|e| e.context("no token for OAUTHBEARER"))?;
        token.check()?;
        let mut state = self.state();
        let random = state.jitter.next_u64() as f64 / u64::MAX as f64;
        let now = SystemTime::now();
        let life = token.expires.and_then(|at| at.duration_since(now).ok());
        let until = life.and_then(|life| now.checked_add(self.refresh.usable_for(life, random)));
        state.last = until.map(|until| (token.clone(), until));
        Ok(token)
    }
}

/// A token in a file, which something else keeps up to date.
#[derive(Debug)]
pub(super) struct FileTokens(pub(super) PathBuf);

#[async_trait]
impl TokenProvider for FileTokens {
    async fn token(&self) -> Result<OAuthToken> {
        let fail = |text: String| Error::new(ErrorKind::Connect, format!("{}: {text}", self.0.display()));
        let size = std::fs::metadata(&self.0).map_err(|e| fail(e.to_string()))?.len();
        if size > MAX_TOKEN {
            return Err(fail(format!("{size} bytes are too many for a token")));
        }
        let text = std::fs::read_to_string(&self.0).map_err(|e| fail(e.to_string()))?;
        if text.trim().is_empty() {
            return Err(fail("the file is empty; is it just being written?".into()));
        }
        Ok(OAuthToken::new(&text))
    }
}

/// Tokens that nobody has signed, for tests: brokers take them only where they are told to.
#[derive(Debug)]
pub(super) struct UnsecuredTokens {
    pub(super) claims: serde_json::Map<String, serde_json::Value>,
    pub(super) lifetime: Duration,
    pub(super) extensions: BTreeMap<String, String>,
}

#[async_trait]
impl TokenProvider for UnsecuredTokens {
    async fn token(&self) -> Result<OAuthToken> {
        let now = SystemTime::now();
        let seconds = |time: SystemTime| time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
        let expires = now.checked_add(self.lifetime).ok_or_else(|| {
            Error::new(ErrorKind::Authentication, "unsecuredLoginLifetimeSeconds is beyond what a clock can tell")
        })?;
        let mut claims = self.claims.clone();
        claims.entry("iat").or_insert_with(|| seconds(now).into());
        claims.entry("exp").or_insert_with(|| seconds(expires).into());
        let encode = |json: String| URL_SAFE_NO_PAD.encode(json);
        let claims = encode(serde_json::Value::Object(claims).to_string());
        let mut token = OAuthToken::new(&format!("{}.{claims}.", encode("{\"alg\":\"none\"}".into())));
        token.extensions.clone_from(&self.extensions);
        Ok(token)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    const LONG: Duration = Duration::from_secs(60);

    struct Counting(Arc<AtomicU32>, Option<Duration>);

    #[async_trait]
    impl TokenProvider for Counting {
        async fn token(&self) -> Result<OAuthToken> {
            let count = self.0.fetch_add(1, Ordering::Relaxed);
            let token = OAuthToken::new(&format!("token-{count}"));
            Ok(match self.1 {
                Some(life) => token.expires_at(SystemTime::now() + life),
                None => token,
            })
        }
    }

    #[tokio::test]
    async fn a_token_serves_while_it_lives_and_no_longer() {
        for (life, expected) in [(Some(Duration::from_secs(3600)), 1), (None, 3), (Some(Duration::ZERO), 3)] {
            let count = Arc::new(AtomicU32::new(0));
            let tokens = Tokens::new(Box::new(Counting(Arc::clone(&count), life)), Refresh::default(), 1);
            for _ in 0..3 {
                tokens.token(LONG).await.unwrap();
            }
            assert_eq!(count.load(Ordering::Relaxed), expected, "{life:?}");
            assert!(!format!("{tokens:?}").contains("token-"));
        }
    }

    #[tokio::test]
    async fn a_token_that_was_refused_is_not_used_again() {
        let count = Arc::new(AtomicU32::new(0));
        let tokens = Tokens::new(Box::new(Counting(Arc::clone(&count), Some(LONG * 60))), Refresh::default(), 1);
        tokens.token(LONG).await.unwrap();
        tokens.forget();
        assert_eq!(tokens.token(LONG).await.unwrap().value(), b"token-1");
    }

    /// Never answers the first time, panics the second, and has a token then.
    struct Moody(AtomicU32);

    #[async_trait]
    impl TokenProvider for Moody {
        async fn token(&self) -> Result<OAuthToken> {
            match self.0.fetch_add(1, Ordering::Relaxed) {
                0 => std::future::pending().await,
                1 => panic!("in the provider"),
                _ => Ok(OAuthToken::new("t")),
            }
        }
    }

    #[tokio::test]
    async fn a_provider_that_hangs_or_panics_is_asked_again() {
        let tokens = Tokens::new(Box::new(Moody(AtomicU32::new(0))), Refresh::default(), 1);
        let late = tokens.token(Duration::from_millis(20)).await.unwrap_err();
        assert!(late.kind() == ErrorKind::Timeout && late.is_retriable(), "{late}");
        let panicked = tokens.token(LONG).await.unwrap_err();
        assert!(panicked.is_retriable() && panicked.to_string().contains("panicked"), "{panicked}");
        assert_eq!(tokens.token(LONG).await.unwrap().value(), b"t");
    }

    #[tokio::test]
    async fn a_token_file_that_is_being_written_is_read_again() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("token");
        let tokens = Tokens::new(Box::new(FileTokens(path.clone())), Refresh::default(), 1);
        for content in [None, Some(&b" \n"[..]), Some(b"\xff")] {
            if let Some(content) = content {
                std::fs::write(&path, content).unwrap();
            }
            let error = tokens.token(LONG).await.unwrap_err();
            assert!(error.is_retriable(), "{content:?}: {error}");
        }
        std::fs::write(&path, "t\n").unwrap();
        assert_eq!(tokens.token(LONG).await.unwrap().value(), b"t");
    }

    #[tokio::test]
    async fn a_lifetime_that_no_clock_reaches_is_an_error() {
        let lifetime = Duration::from_secs(u64::MAX);
        let unsecured = UnsecuredTokens { claims: serde_json::Map::new(), lifetime, extensions: BTreeMap::new() };
        assert!(unsecured.token().await.is_err());
    }

    #[test]
    fn it_is_replaced_in_time() {
        let refresh = Refresh::default();
        let seconds = Duration::from_secs;
        assert_eq!(refresh.usable_for(seconds(3600), 0.0), seconds(2880));
        assert_eq!(refresh.usable_for(seconds(1000), 1.0), seconds(700), "300 s are kept");
        assert_eq!(refresh.usable_for(seconds(100), 0.0), seconds(80), "too short for what is to be kept");
    }

    #[tokio::test]
    async fn the_expiry_of_a_jwt_is_read_and_separators_are_refused() {
        let claims = serde_json::Map::from_iter([("sub".to_owned(), "alice".into())]);
        let unsecured = UnsecuredTokens { claims, lifetime: Duration::from_secs(60), extensions: BTreeMap::new() };
        let token = unsecured.token().await.unwrap();
        let left = token.expires.unwrap().duration_since(SystemTime::now()).unwrap();
        assert!(left > Duration::from_secs(30) && left <= Duration::from_secs(60), "{left:?}");
        assert!(token.check().is_ok());
        assert_eq!(OAuthToken::new("opaque").expires, None);
        for bad in ["", "a\u{1}b", "a b"] {
            assert!(OAuthToken::new(bad).check().is_err(), "{bad:?}");
        }
        assert!(OAuthToken::new("t").extension("auth", "x").check().is_err());
        assert!(OAuthToken::new("t").extension("a", "x\u{1}y").check().is_err());
    }
}
