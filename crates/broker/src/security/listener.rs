//! How a listener is secured, as its owner says it.

use super::OAuthKey;
use std::net::SocketAddr;
use std::time::Duration;

/// What a listener speaks below the Kafka protocol (`security.protocol` of its clients).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SecurityProtocol {
    /// Neither encrypted nor authenticated.
    #[default]
    Plaintext,
    /// TLS; clients may have to show a certificate ([`Listener::client_auth`]).
    Ssl,
    /// SASL without encryption.
    SaslPlaintext,
    /// SASL inside TLS.
    SaslSsl,
}

impl SecurityProtocol {
    /// As Kafka writes it, whatever its case.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name.to_ascii_uppercase().as_str() {
            "PLAINTEXT" => SecurityProtocol::Plaintext,
            "SSL" => SecurityProtocol::Ssl,
            "SASL_PLAINTEXT" => SecurityProtocol::SaslPlaintext,
            "SASL_SSL" => SecurityProtocol::SaslSsl,
            _ => return None,
        })
    }

    /// As Kafka writes it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            SecurityProtocol::Plaintext => "PLAINTEXT",
            SecurityProtocol::Ssl => "SSL",
            SecurityProtocol::SaslPlaintext => "SASL_PLAINTEXT",
            SecurityProtocol::SaslSsl => "SASL_SSL",
        }
    }

    /// Whether it encrypts.
    #[must_use]
    pub fn has_tls(self) -> bool {
        matches!(self, SecurityProtocol::Ssl | SecurityProtocol::SaslSsl)
    }

    /// Whether clients authenticate by SASL.
    #[must_use]
    pub fn has_sasl(self) -> bool {
        matches!(self, SecurityProtocol::SaslPlaintext | SecurityProtocol::SaslSsl)
    }
}

/// A SASL mechanism.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mechanism {
    /// Name and password as they are (RFC 4616).
    Plain,
    /// Salted challenge and response (RFC 5802, RFC 7677).
    ScramSha256,
    /// The same with SHA-512.
    ScramSha512,
    /// A token of somebody else (RFC 7628).
    OAuthBearer,
}

impl Mechanism {
    /// As it is called on the wire.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Mechanism::Plain => "PLAIN",
            Mechanism::ScramSha256 => "SCRAM-SHA-256",
            Mechanism::ScramSha512 => "SCRAM-SHA-512",
            Mechanism::OAuthBearer => "OAUTHBEARER",
        }
    }

    /// By its name on the wire, which is in capitals.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Mechanism::Plain, Mechanism::ScramSha256, Mechanism::ScramSha512, Mechanism::OAuthBearer]
            .into_iter()
            .find(|mechanism| mechanism.name() == name)
    }
}

/// Whether clients show a certificate (`ssl.client.auth`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ClientAuth {
    /// They are not asked for one.
    #[default]
    None,
    /// They are asked; who has none is `User:ANONYMOUS`.
    Requested,
    /// Who has none is not let in.
    Required,
}

/// Text that no log and no `Debug` shows.
#[derive(Clone, PartialEq, Eq, Default)]
pub(crate) struct Secret<T>(pub(crate) T);

impl<T> std::fmt::Debug for Secret<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("[hidden]")
    }
}

/// Certificates and keys, as PEM.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct TlsFiles {
    pub(crate) chain: String,
    pub(crate) key: Secret<String>,
    pub(crate) client_auth: ClientAuth,
    pub(crate) client_ca: String,
}

/// What makes no sense about a listener.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SecurityError {
    /// TLS needs a certificate and its key.
    #[error("listener {listener} speaks TLS and has no certificate; give it a certificate chain and its key")]
    NoCertificate {
        /// Its name.
        listener: String,
    },
    /// A PEM text does not hold what it should.
    #[error("listener {listener}: {what}: {why}")]
    Pem {
        /// Its name.
        listener: String,
        /// Which text.
        what: &'static str,
        /// What is wrong.
        why: String,
    },
    /// Certificate, key and certificate authorities do not go together.
    #[error("listener {listener}: {why}")]
    Tls {
        /// Its name.
        listener: String,
        /// What is wrong.
        why: String,
    },
    /// SASL needs a mechanism.
    #[error("listener {listener} speaks SASL and has no mechanism; enable one")]
    NoMechanism {
        /// Its name.
        listener: String,
    },
    /// OAUTHBEARER needs to know how tokens are checked.
    #[error("listener {listener} has OAUTHBEARER and no key that tokens are checked with; give it one")]
    NoTokenKey {
        /// Its name.
        listener: String,
    },
    /// Kafka's SCRAM has at least 4,096 iterations.
    #[error("listener {listener}: {iterations} SCRAM iterations; there must be 4096 to 1000000")]
    Iterations {
        /// Its name.
        listener: String,
        /// How many.
        iterations: u32,
    },
    /// Names of listeners tell them apart.
    #[error("two listeners are called {0}")]
    SameName(String),
    /// A listener needs an address for each node, or none to take free ports.
    #[error("listener {listener} has {addresses} addresses for {nodes} nodes; give one for each, or none")]
    Addresses {
        /// Its name.
        listener: String,
        /// How many it has.
        addresses: usize,
        /// How many nodes there are.
        nodes: usize,
    },
}

/// A listener of all nodes: its name, where it listens, and how it is secured.
///
/// Users are the listener's own: Kafka has those of SCRAM for the whole cluster. Everything here is fixed once the broker
/// runs.
///
/// ```
/// use kafka_share_broker::{EmbeddedBroker, Listener, Mechanism};
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// let secure = Listener::sasl_plaintext("SASL", [Mechanism::ScramSha512]).user("alice", "a secret");
/// let broker = EmbeddedBroker::builder().also_listen(secure).start().await?;
/// assert_ne!(broker.bootstrap_servers_of("SASL").as_deref(), Some(broker.bootstrap_servers().as_str()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub struct Listener {
    pub(crate) name: String,
    pub(crate) protocol: SecurityProtocol,
    pub(crate) addresses: Vec<SocketAddr>,
    pub(crate) advertised: Option<(String, Option<u16>)>,
    pub(crate) tls: TlsFiles,
    pub(crate) mechanisms: Vec<Mechanism>,
    pub(crate) users: Secret<Vec<(Option<Mechanism>, String, String)>>,
    pub(crate) scram_iterations: u32,
    pub(crate) token_key: Option<OAuthKey>,
    pub(crate) max_reauth: Duration,
}

impl Listener {
    fn new(name: impl Into<String>, protocol: SecurityProtocol) -> Self {
        Listener {
            name: name.into(),
            protocol,
            addresses: Vec::new(),
            advertised: None,
            tls: TlsFiles::default(),
            mechanisms: Vec::new(),
            users: Secret(Vec::new()),
            scram_iterations: 4096,
            token_key: None,
            max_reauth: Duration::ZERO,
        }
    }

    /// Neither encrypted nor authenticated.
    pub fn plaintext(name: impl Into<String>) -> Self {
        Self::new(name, SecurityProtocol::Plaintext)
    }

    /// TLS with this certificate chain (the server's own first) and its private key, both as PEM. Keys are PKCS#8, PKCS#1
    /// or SEC1; encrypted ones are refused.
    pub fn ssl(name: impl Into<String>, chain_pem: impl Into<String>, key_pem: impl Into<String>) -> Self {
        Self::new(name, SecurityProtocol::Ssl).certificate(chain_pem, key_pem)
    }

    /// SASL without encryption.
    pub fn sasl_plaintext(name: impl Into<String>, mechanisms: impl IntoIterator<Item = Mechanism>) -> Self {
        Self::new(name, SecurityProtocol::SaslPlaintext).mechanisms(mechanisms)
    }

    /// SASL inside TLS; see [`Listener::ssl`] for the certificate.
    pub fn sasl_ssl(
        name: impl Into<String>,
        chain_pem: impl Into<String>,
        key_pem: impl Into<String>,
        mechanisms: impl IntoIterator<Item = Mechanism>,
    ) -> Self {
        Self::new(name, SecurityProtocol::SaslSsl).certificate(chain_pem, key_pem).mechanisms(mechanisms)
    }

    /// A listener of this protocol, whose certificate or mechanisms are still to be given.
    pub fn with_protocol(name: impl Into<String>, protocol: SecurityProtocol) -> Self {
        Self::new(name, protocol)
    }

    /// The certificate chain and its private key, as PEM.
    pub fn certificate(mut self, chain_pem: impl Into<String>, key_pem: impl Into<String>) -> Self {
        (self.tls.chain, self.tls.key) = (chain_pem.into(), Secret(key_pem.into()));
        self
    }

    /// Whether clients show a certificate, and which authorities (as PEM) may have signed it. Default: they do not.
    ///
    /// Without SASL the principal is then the certificate's subject, as `User:CN=alice,O=..` in the form of RFC 2253.
    pub fn client_auth(mut self, client_auth: ClientAuth, ca_pem: impl Into<String>) -> Self {
        (self.tls.client_auth, self.tls.client_ca) = (client_auth, ca_pem.into());
        self
    }

    /// The SASL mechanisms that clients may choose from (`sasl.enabled.mechanisms`).
    pub fn mechanisms(mut self, mechanisms: impl IntoIterator<Item = Mechanism>) -> Self {
        self.mechanisms = mechanisms.into_iter().collect();
        self
    }

    /// A user of PLAIN and SCRAM. The principal is `User:name`.
    pub fn user(mut self, name: impl Into<String>, password: impl Into<String>) -> Self {
        self.users.0.push((None, name.into(), password.into()));
        self
    }

    /// A user of one mechanism only.
    pub fn user_of(mut self, mechanism: Mechanism, name: impl Into<String>, password: impl Into<String>) -> Self {
        self.users.0.push((Some(mechanism), name.into(), password.into()));
        self
    }

    /// Iterations of SCRAM's key derivation, 4,096 (the default, and Kafka's least) to a million.
    pub fn scram_iterations(mut self, iterations: u32) -> Self {
        self.scram_iterations = iterations;
        self
    }

    /// How tokens of OAUTHBEARER are checked.
    pub fn token_key(mut self, key: OAuthKey) -> Self {
        self.token_key = Some(key);
        self
    }

    /// How long a SASL session lasts until the client must authenticate again (`connections.max.reauth.ms`, KIP-368).
    /// Default zero: for ever. A token's own end is the session's end in any case.
    pub fn max_reauth(mut self, time: Duration) -> Self {
        self.max_reauth = time;
        self
    }

    /// Where each node listens; port 0 takes a free one. Default: free ports of the loopback.
    pub fn addresses(mut self, addresses: impl IntoIterator<Item = SocketAddr>) -> Self {
        self.addresses = addresses.into_iter().collect();
        self
    }

    /// The host that clients of this listener are told to connect to, and the first node's port if it is not the one that
    /// is listened on.
    pub fn advertise(mut self, host: impl Into<String>, first_port: Option<u16>) -> Self {
        self.advertised = Some((host.into(), first_port));
        self
    }

    /// Checks what can be checked without opening anything.
    pub(crate) fn check(&self) -> Result<(), SecurityError> {
        let listener = || self.name.clone();
        if self.protocol.has_tls() && (self.tls.chain.is_empty() || self.tls.key.0.is_empty()) {
            return Err(SecurityError::NoCertificate { listener: listener() });
        }
        if self.protocol.has_sasl() {
            if self.mechanisms.is_empty() {
                return Err(SecurityError::NoMechanism { listener: listener() });
            }
            if self.mechanisms.contains(&Mechanism::OAuthBearer) && self.token_key.is_none() {
                return Err(SecurityError::NoTokenKey { listener: listener() });
            }
            if !(4096..=1_000_000).contains(&self.scram_iterations) {
                return Err(SecurityError::Iterations { listener: listener(), iterations: self.scram_iterations });
            }
        }
        Ok(())
    }
}
