//! TLS: settings, the rustls configuration made of them, and connections opened with it.
//!
//! Certificates and keys come as PEM, from files or from memory; files are read again once they have changed, for the next
//! connection. See [`security`](crate::security) for the properties and for examples.

mod explain;
mod pem;
mod properties;
mod provider;
mod verifier;

pub(crate) use explain::refusal;

use crate::secret::Secret;
use crate::{Error, ErrorKind, Result};
use pem::{Source, Stamp};
use rustls::client::WebPkiServerVerifier;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::ServerName;
use rustls::{RootCertStore, SupportedProtocolVersion};
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::io::BufReader;
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

/// Bytes read from a socket at once: rustls by itself asks for 4 KiB, which makes four calls of the system for each record.
const READ_AHEAD: usize = 64 * 1024;

/// A connection by TLS.
pub(crate) type Encrypted = TlsStream<BufReader<TcpStream>>;

/// The TLS library, for a provider or a configuration of one's own.
pub use rustls;

/// How to speak TLS, and whom to trust.
///
/// By default the system's root certificates are trusted, the broker's name is checked, TLS 1.3 and 1.2 are spoken, and the
/// client shows no certificate.
///
/// ```
/// use kafka_share::{ClientConfig, TlsConfig};
///
/// let tls = TlsConfig::new().root_certificates_file("/etc/kafka/ca.pem");
/// let config = ClientConfig::new("broker:9093").tls(tls);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct TlsConfig {
    roots_file: Option<PathBuf>,
    roots: Option<Secret>,
    keystore_file: Option<PathBuf>,
    chain: Option<Source>,
    key: Option<Source>,
    key_password: Option<Secret>,
    checks_host: bool,
    tls12: bool,
    tls13: bool,
    cipher_suites: Vec<String>,
    /// Properties that cannot be followed, and why.
    refused: BTreeMap<String, String>,
    provider: Option<Shared<CryptoProvider>>,
    ready_made: Option<Shared<rustls::ClientConfig>>,
}

/// What is compared by identity, and not shown.
#[derive(Clone)]
struct Shared<T>(Arc<T>);

impl<T> PartialEq for Shared<T> {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl<T> fmt::Debug for Shared<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("..")
    }
}

impl Default for TlsConfig {
    fn default() -> Self {
        TlsConfig {
            roots_file: None,
            roots: None,
            keystore_file: None,
            chain: None,
            key: None,
            key_password: None,
            checks_host: true,
            tls12: true,
            tls13: true,
            cipher_suites: Vec::new(),
            refused: BTreeMap::new(),
            provider: None,
            ready_made: None,
        }
    }
}

impl TlsConfig {
    /// The defaults.
    #[must_use]
    pub fn new() -> Self {
        TlsConfig::default()
    }

    /// `ssl.truststore.location`: trusts the certificates of a PEM file, and no others.
    #[must_use]
    pub fn root_certificates_file(mut self, path: impl AsRef<Path>) -> Self {
        self.roots_file = Some(path.as_ref().to_owned());
        self
    }

    /// `ssl.truststore.certificates`: trusts these certificates, in PEM, and no others.
    #[must_use]
    pub fn root_certificates(mut self, pem: impl AsRef<[u8]>) -> Self {
        self.roots = Some(Secret::new(pem));
        self
    }

    /// `ssl.keystore.certificate.chain` and `ssl.keystore.key`: the client's certificate, with those between it and its CA,
    /// and its private key, in PEM.
    #[must_use]
    pub fn client_certificate(mut self, chain: impl AsRef<[u8]>, key: impl AsRef<[u8]>) -> Self {
        self.chain = Some(Source::Memory(Secret::new(chain)));
        self.key = Some(Source::Memory(Secret::new(key)));
        self
    }

    /// As [`TlsConfig::client_certificate`], from PEM files. They may be one and the same (`ssl.keystore.location`).
    #[must_use]
    pub fn client_certificate_files(mut self, chain: impl AsRef<Path>, key: impl AsRef<Path>) -> Self {
        self.chain = Some(Source::File(chain.as_ref().to_owned()));
        self.key = Some(Source::File(key.as_ref().to_owned()));
        self
    }

    /// `ssl.key.password`: the password of an encrypted private key (PKCS#8, `-----BEGIN ENCRYPTED PRIVATE KEY-----`).
    #[must_use]
    pub fn key_password(mut self, password: &str) -> Self {
        self.key_password = Some(Secret::new(password));
        self
    }

    /// `ssl.endpoint.identification.algorithm=`: takes certificates that were made for other hosts. Whoever has a certificate
    /// that the roots vouch for can then pass for the broker. The name that the client wants is told to the broker as before.
    #[must_use]
    pub fn dangerously_accept_any_host_name(mut self) -> Self {
        self.checks_host = false;
        self
    }

    /// A crypto provider other than the default (see [`security`](crate::security)).
    #[must_use]
    pub fn crypto_provider(mut self, provider: Arc<CryptoProvider>) -> Self {
        self.provider = Some(Shared(provider));
        self
    }

    /// A rustls configuration of one's own, in the place of all other settings here.
    #[must_use]
    pub fn rustls_config(mut self, config: Arc<rustls::ClientConfig>) -> Self {
        self.ready_made = Some(Shared(config));
        self
    }

    fn identity(&self) -> Result<Option<(Source, Source)>> {
        let file = self.keystore_file.clone().map(Source::File);
        let wrong = |text: &str| Err(Error::new(ErrorKind::Config, text));
        match (file, self.chain.clone(), self.key.clone()) {
            (None, None, None) => Ok(None),
            (Some(file), None, None) => Ok(Some((file.clone(), file))),
            (None, Some(chain), Some(key)) => Ok(Some((chain, key))),
            (Some(_), ..) => wrong(
                "ssl.keystore.location has the key and its certificates; leave out ssl.keystore.key and ssl.keystore.certificate.chain, or the location",
            ),
            (_, None, _) => wrong("ssl.keystore.key is given without ssl.keystore.certificate.chain"),
            (_, _, None) => wrong("ssl.keystore.certificate.chain is given without ssl.keystore.key"),
        }
    }

    fn trusted(&self) -> Result<Option<Source>> {
        match (&self.roots_file, &self.roots) {
            (Some(_), Some(_)) => {
                let text = "ssl.truststore.location and ssl.truststore.certificates are both given; leave one out";
                Err(Error::new(ErrorKind::Config, text))
            }
            (Some(file), None) => Ok(Some(Source::File(file.clone()))),
            (None, roots) => Ok(roots.clone().map(Source::Memory)),
        }
    }

    fn files(&self) -> Result<Vec<PathBuf>> {
        let sources = self.trusted()?.into_iter().chain(self.identity()?.into_iter().flat_map(|(a, b)| [a, b]));
        Ok(sources.filter_map(|source| source.path().cloned()).collect())
    }

    fn roots(&self) -> Result<RootCertStore> {
        let mut store = RootCertStore::empty();
        if let Some(source) = self.trusted()? {
            for certificate in source.certificates("ssl.truststore")? {
                let wrong =
                    |e| Error::new(ErrorKind::Config, format!("ssl.truststore: a certificate is not valid: {e}"));
                store.add(certificate).map_err(wrong)?;
            }
            return Ok(store);
        }
        let found = rustls_native_certs::load_native_certs();
        store.add_parsable_certificates(found.certs);
        if store.is_empty() {
            let why: Vec<String> = found.errors.iter().map(ToString::to_string).collect();
            let text = format!(
                "the system has no root certificates ({}); install its CA package, or name a PEM file in ssl.truststore.location",
                if why.is_empty() { "none were found".to_owned() } else { why.join("; ") }
            );
            return Err(Error::new(ErrorKind::Config, text));
        }
        Ok(store)
    }

    fn crypto(&self) -> Result<Arc<CryptoProvider>> {
        let mut provider = provider::choose(self.provider.as_ref().map(|p| &p.0))?;
        if !self.cipher_suites.is_empty() {
            // rustls writes TLS13_.. where Java has TLS_..
            let name = |suite: &rustls::SupportedCipherSuite| format!("{:?}", suite.suite()).replace("TLS13_", "TLS_");
            let all: Vec<String> = provider.cipher_suites.iter().map(name).collect();
            let own = Arc::make_mut(&mut provider);
            own.cipher_suites.retain(|suite| self.cipher_suites.contains(&name(suite)));
            if own.cipher_suites.is_empty() {
                let text = format!("ssl.cipher.suites names none that is supported: {}", all.join(", "));
                return Err(Error::new(ErrorKind::Config, text));
            }
        }
        Ok(provider)
    }

    /// Makes the configuration, reading what files it needs.
    fn load(&self, provider: &Arc<CryptoProvider>) -> Result<Arc<rustls::ClientConfig>> {
        let wrong = |text: String| Error::new(ErrorKind::Config, text);
        let versions: Vec<&'static SupportedProtocolVersion> =
            [self.tls13.then_some(&rustls::version::TLS13), self.tls12.then_some(&rustls::version::TLS12)]
                .into_iter()
                .flatten()
                .collect();
        let roots = Arc::new(self.roots()?);
        let builder = rustls::ClientConfig::builder_with_provider(Arc::clone(provider))
            .with_protocol_versions(&versions)
            .map_err(|e| wrong(format!("ssl.enabled.protocols: {e}")))?;
        let verifier = WebPkiServerVerifier::builder_with_provider(roots, Arc::clone(provider)).build();
        let verifier = verifier.map_err(|e| wrong(format!("ssl.truststore: {e}")))?;
        let builder = match self.checks_host {
            true => builder.with_webpki_verifier(verifier),
            false => builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier::AnyName(verifier))),
        };
        let config = match self.identity()? {
            None => builder.with_no_client_auth(),
            Some((chain, key)) => {
                let chain = chain.certificates("ssl.keystore")?;
                let key = key.key("ssl.keystore", self.key_password.as_ref())?;
                builder
                    .with_client_auth_cert(chain, key)
                    .map_err(|e| wrong(format!("ssl.keystore: certificate and key are of no use: {e}")))?
            }
        };
        Ok(Arc::new(config))
    }
}

/// Opens TLS connections, with certificates as new as their files.
#[derive(Debug)]
pub(crate) struct Connector {
    settings: TlsConfig,
    provider: Option<Arc<CryptoProvider>>,
    loaded: Mutex<Loaded>,
}

struct Loaded {
    config: Arc<rustls::ClientConfig>,
    stamps: Vec<(PathBuf, Stamp)>,
}

impl fmt::Debug for Loaded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Loaded").field("files", &self.stamps).finish_non_exhaustive()
    }
}

impl Connector {
    /// Reads the files that the settings name.
    ///
    /// # Errors
    /// Names the setting, and what is wrong with it.
    pub(crate) fn new(settings: TlsConfig) -> Result<Self> {
        if let Some(Shared(config)) = &settings.ready_made {
            let loaded = Loaded { config: Arc::clone(config), stamps: Vec::new() };
            return Ok(Connector { settings, provider: None, loaded: Mutex::new(loaded) });
        }
        settings.check_refused()?;
        // Before they are read: what is written meanwhile is read again.
        let stamps = settings.files()?.into_iter().map(|path| (path.clone(), Stamp::of(&path))).collect();
        let provider = settings.crypto()?;
        let loaded = Loaded { config: settings.load(&provider)?, stamps };
        Ok(Connector { settings, provider: Some(provider), loaded: Mutex::new(loaded) })
    }

    /// Whether the client has a certificate to show.
    pub(crate) fn has_certificate(&self) -> bool {
        self.settings.ready_made.is_none() && self.settings.identity().is_ok_and(|identity| identity.is_some())
    }

    /// The configuration; made anew where a file has changed. A file that is of no use, perhaps as it is just being written,
    /// leaves what was read before.
    fn current(&self) -> Arc<rustls::ClientConfig> {
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        let stamps: Vec<_> = loaded.stamps.iter().map(|(path, _)| (path.clone(), Stamp::of(path))).collect();
        if stamps != loaded.stamps
            && let Some(provider) = &self.provider
        {
            match self.settings.load(provider) {
                Ok(config) => {
                    tracing::info!("certificates have changed and were read again");
                    *loaded = Loaded { config, stamps };
                }
                Err(error) => tracing::warn!(%error, "changed certificates are of no use; those from before are kept"),
            }
        }
        Arc::clone(&loaded.config)
    }

    /// Does the handshake on a socket.
    pub(crate) async fn connect(&self, host: &str, socket: TcpStream) -> std::io::Result<Encrypted> {
        // A name may end with a dot, which certificates do not have.
        let name = host.strip_suffix('.').unwrap_or(host).to_owned();
        let name = ServerName::try_from(name).map_err(std::io::Error::other)?;
        tokio_rustls::TlsConnector::from(self.current())
            .connect(name, BufReader::with_capacity(READ_AHEAD, socket))
            .await
    }
}

#[cfg(test)]
mod tests;
