//! SASL: who the client is, by name and password, by SCRAM, or by a token.

mod jaas;
mod properties;
mod scram;
mod simple;
mod token;

/// For implementations of [`TokenProvider`].
pub use async_trait::async_trait;
pub use token::{OAuthToken, TokenProvider};

pub(crate) use properties::SaslProperties;

use crate::secret::Secret;
use crate::{Error, ErrorKind, Result};
use kafka_share_core::connection::SaslExchange;
use std::sync::Arc;
use std::time::Duration;
use token::{Refresh, Tokens};

/// How a client says who it is.
///
/// ```
/// use kafka_share::{ClientConfig, Sasl, TlsConfig};
///
/// let config = ClientConfig::new("broker:9093").tls(TlsConfig::new()).sasl(Sasl::scram_sha_512("billing", "secret"));
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Sasl(Mechanism);

#[derive(Debug, Clone)]
enum Mechanism {
    Plain { user: String, password: Secret },
    Scram { name: &'static str, user: String, password: Secret },
    Bearer(Arc<Tokens>),
}

impl PartialEq for Mechanism {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Mechanism::Plain { user: a, password: b }, Mechanism::Plain { user: c, password: d }) => a == c && b == d,
            (
                Mechanism::Scram { name: a, user: b, password: c },
                Mechanism::Scram { name: d, user: e, password: f },
            ) => a == d && b == e && c == f,
            (Mechanism::Bearer(a), Mechanism::Bearer(b)) => Arc::ptr_eq(a, b),
            _ => false,
        }
    }
}

const SCRAM_256: &str = "SCRAM-SHA-256";
const SCRAM_512: &str = "SCRAM-SHA-512";

impl Sasl {
    /// PLAIN: the password goes to the broker as it is, so the connection should be one of TLS.
    #[must_use]
    pub fn plain(user: &str, password: &str) -> Self {
        Sasl(Mechanism::Plain { user: user.to_owned(), password: Secret::new(password) })
    }

    /// SCRAM-SHA-256: neither side tells the password, and both show that they know it.
    #[must_use]
    pub fn scram_sha_256(user: &str, password: &str) -> Self {
        Sasl(Mechanism::Scram { name: SCRAM_256, user: user.to_owned(), password: Secret::new(password) })
    }

    /// SCRAM-SHA-512, as [`Sasl::scram_sha_256`].
    #[must_use]
    pub fn scram_sha_512(user: &str, password: &str) -> Self {
        Sasl(Mechanism::Scram { name: SCRAM_512, user: user.to_owned(), password: Secret::new(password) })
    }

    /// OAUTHBEARER, with tokens that the application brings.
    #[must_use]
    pub fn oauth_bearer(provider: impl TokenProvider) -> Self {
        Sasl::bearer(Box::new(provider), Refresh::default())
    }

    fn bearer(provider: Box<dyn TokenProvider>, refresh: Refresh) -> Self {
        let seed = std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), 1);
        Sasl(Mechanism::Bearer(Arc::new(Tokens::new(provider, refresh, seed))))
    }

    /// Name of the mechanism, as brokers know it.
    #[must_use]
    pub fn mechanism(&self) -> &'static str {
        match &self.0 {
            Mechanism::Plain { .. } => "PLAIN",
            Mechanism::Scram { name, .. } => name,
            Mechanism::Bearer(_) => "OAUTHBEARER",
        }
    }

    /// Mechanism, and the user's name where there is one.
    pub(crate) fn principal(&self) -> String {
        match &self.0 {
            Mechanism::Plain { user, .. } | Mechanism::Scram { user, .. } => format!("{} {user}", self.mechanism()),
            Mechanism::Bearer(_) => self.mechanism().to_owned(),
        }
    }

    /// Whether the password goes over the wire as it is.
    pub(crate) fn tells_secrets(&self) -> bool {
        !matches!(self.0, Mechanism::Scram { .. })
    }

    /// Checks what the mechanism needs.
    pub(crate) fn validate(&self) -> Result<()> {
        let (Mechanism::Plain { user, password } | Mechanism::Scram { user, password, .. }) = &self.0 else {
            return Ok(());
        };
        let wrong = |text: &str| Err(Error::new(ErrorKind::Config, format!("SASL {}: {text}", self.mechanism())));
        if user.is_empty() || password.is_empty() {
            return wrong("the user name or the password is empty");
        }
        if user.contains('\0') || password.bytes().contains(&0) {
            return wrong("the user name and the password must not contain the character 0");
        }
        Ok(())
    }

    /// The broker has refused the client: what comes from elsewhere is brought anew the next time.
    pub(crate) fn forget(&self) {
        if let Mechanism::Bearer(tokens) = &self.0 {
            tokens.forget();
        }
    }

    /// A run of the mechanism, with fresh credentials, which must come within `limit`.
    pub(crate) async fn exchange(&self, limit: Duration) -> Result<Box<dyn SaslExchange>> {
        Ok(match &self.0 {
            Mechanism::Plain { user, password } => {
                Box::new(simple::Plain { user: user.clone(), password: password.clone() })
            }
            Mechanism::Scram { name, user, password } => {
                let made = scram::Scram::new(name, user, password);
                Box::new(made.map_err(|why| Error::new(ErrorKind::Authentication, format!("SASL {name}: {why}")))?)
            }
            Mechanism::Bearer(tokens) => Box::new(simple::Bearer::new(tokens.token(limit).await?)),
        })
    }
}
