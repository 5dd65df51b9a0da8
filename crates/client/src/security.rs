//! Encrypted and authenticated connections.
#![doc = include_str!("security.md")]

use crate::sasl::{Sasl, SaslProperties};
use crate::tls::{Connector, TlsConfig};
use crate::{Error, ErrorKind, Result};
use std::sync::Arc;

/// `security.protocol`: whether connections are encrypted, and whether the client authenticates itself by SASL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SecurityProtocol {
    /// Neither.
    #[default]
    Plaintext,
    /// TLS; the client may show a certificate.
    Ssl,
    /// SASL on connections that anybody can read and change on their way.
    SaslPlaintext,
    /// SASL inside of TLS.
    SaslSsl,
}

impl SecurityProtocol {
    /// Kafka's name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            SecurityProtocol::Plaintext => "PLAINTEXT",
            SecurityProtocol::Ssl => "SSL",
            SecurityProtocol::SaslPlaintext => "SASL_PLAINTEXT",
            SecurityProtocol::SaslSsl => "SASL_SSL",
        }
    }

    fn parse(value: &str) -> Result<Self> {
        use SecurityProtocol as P;
        let all = [P::Plaintext, P::Ssl, P::SaslPlaintext, P::SaslSsl];
        all.into_iter().find(|p| p.name().eq_ignore_ascii_case(value)).ok_or_else(|| {
            let text = format!("security.protocol={value}: PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL is expected");
            Error::new(ErrorKind::Config, text)
        })
    }

    fn is_tls(self) -> bool {
        matches!(self, SecurityProtocol::Ssl | SecurityProtocol::SaslSsl)
    }

    fn is_sasl(self) -> bool {
        matches!(self, SecurityProtocol::SaslPlaintext | SecurityProtocol::SaslSsl)
    }

    /// The same with TLS.
    pub(crate) fn with_tls(self) -> Self {
        if self.is_sasl() { SecurityProtocol::SaslSsl } else { SecurityProtocol::Ssl }
    }

    /// The same with SASL.
    pub(crate) fn with_sasl(self) -> Self {
        if self.is_tls() { SecurityProtocol::SaslSsl } else { SecurityProtocol::SaslPlaintext }
    }
}

/// Settings of security, typed and by name.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Security {
    pub(crate) protocol: SecurityProtocol,
    pub(crate) tls: TlsConfig,
    /// Given in code; it comes before what properties describe.
    pub(crate) sasl: Option<Sasl>,
    properties: SaslProperties,
    /// Settings of TLS or SASL were given.
    any_given: bool,
}

impl Security {
    /// Sets one property by its Kafka name. Answers `false` for names that are not of this group.
    pub(crate) fn set(&mut self, name: &str, value: &str) -> Result<bool> {
        if name == "security.protocol" {
            self.protocol = SecurityProtocol::parse(value.trim())?;
            return Ok(true);
        }
        let taken = self.tls.set(name, value)? || self.properties.set(name, value)?;
        self.any_given |= taken;
        Ok(taken)
    }

    fn sasl(&self) -> Result<Option<Sasl>> {
        if !self.protocol.is_sasl() {
            return Ok(None);
        }
        let sasl = match &self.sasl {
            Some(sasl) => sasl.clone(),
            None => self
                .properties
                .resolve()
                .map_err(|e| e.context(format!("security.protocol={}", self.protocol.name())))?,
        };
        sasl.validate()?;
        Ok(Some(sasl))
    }

    /// Checks what can be checked without reading files.
    pub(crate) fn validate(&self) -> Result<()> {
        self.sasl().map(drop)
    }

    /// What connections are opened with. Reads certificates and keys.
    pub(crate) fn open(&self) -> Result<Secured> {
        let tls = match self.protocol.is_tls() {
            true => Some(Arc::new(Connector::new(self.tls.clone())?)),
            false => None,
        };
        let sasl = self.sasl()?;
        if self.protocol == SecurityProtocol::Plaintext && self.any_given {
            tracing::warn!("settings of ssl and sasl have no effect: security.protocol is PLAINTEXT");
        }
        if sasl.as_ref().is_some_and(Sasl::tells_secrets) && tls.is_none() {
            tracing::warn!("security.protocol is SASL_PLAINTEXT: passwords and tokens can be read on their way");
        }
        Ok(Secured { tls, sasl })
    }
}

/// What connections of a cluster are opened with.
#[derive(Debug, Clone, Default)]
pub(crate) struct Secured {
    pub(crate) tls: Option<Arc<Connector>>,
    pub(crate) sasl: Option<Sasl>,
}

impl Secured {
    /// Who the client says it is, as far as that is no secret.
    pub(crate) fn principal(&self) -> Option<String> {
        match &self.sasl {
            Some(sasl) => Some(sasl.principal()),
            None => self.tls.as_ref().filter(|tls| tls.has_certificate()).map(|_| "certificate".to_owned()),
        }
    }
}
