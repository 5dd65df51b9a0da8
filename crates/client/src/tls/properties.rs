//! The `ssl.` properties of Kafka's clients.

use super::TlsConfig;
use super::pem::{ADVICE, Source, with_lines};
use crate::secret::Secret;
use crate::{Error, ErrorKind, Result};
use std::path::PathBuf;

/// Trusting all that the system trusts must not come of a variable that was left empty.
const EMPTY: &str = "it is empty; name the certificates to trust, or leave it out for the system's roots";

impl TlsConfig {
    /// Sets one property by its Kafka name. Answers `false` for names that are not of this group. What is known and of no
    /// use here is refused once connections are to be encrypted.
    pub(crate) fn set(&mut self, name: &str, value: &str) -> Result<bool> {
        let value = value.trim();
        let text = (!value.is_empty()).then_some(value);
        let file = || text.map(PathBuf::from);
        let memory = || text.map(|value| Secret::new(with_lines(value)));
        self.refused.remove(name);
        match name {
            "ssl.truststore.location" | "ssl.truststore.certificates" if text.is_none() => self.refuse(name, EMPTY),
            "ssl.truststore.location" => self.roots_file = file(),
            "ssl.truststore.certificates" => self.roots = memory(),
            "ssl.keystore.location" => self.keystore_file = file(),
            "ssl.keystore.certificate.chain" => self.chain = memory().map(Source::Memory),
            "ssl.keystore.key" => self.key = memory().map(Source::Memory),
            "ssl.key.password" => self.key_password = text.map(Secret::new),
            "ssl.truststore.type" | "ssl.keystore.type" if value.eq_ignore_ascii_case("PEM") => {}
            "ssl.truststore.type" | "ssl.keystore.type" => {
                self.refused.insert(name.to_owned(), format!("{name}={value}: {ADVICE}"));
            }
            "ssl.truststore.password" | "ssl.keystore.password" if text.is_some() => {
                self.refuse(name, "PEM stores have no password; that of an encrypted key is ssl.key.password");
            }
            "ssl.truststore.password" | "ssl.keystore.password" => {}
            "ssl.endpoint.identification.algorithm" => {
                self.checks_host = match value.to_ascii_lowercase().as_str() {
                    "https" => true,
                    "" => false,
                    _ => return Err(shown(name, value, "https is expected, or nothing to take any host name")),
                }
            }
            "ssl.protocol" => self.cap_version(name, value)?,
            "ssl.enabled.protocols" => self.enable_versions(name, value)?,
            "ssl.cipher.suites" => {
                self.cipher_suites =
                    value.split(',').map(str::trim).filter(|s| !s.is_empty()).map(str::to_owned).collect();
            }
            "ssl.engine.factory.class" if text.is_some() => {
                self.refuse(name, "Java classes cannot be loaded; see TlsConfig::rustls_config");
            }
            "ssl.engine.factory.class" => {}
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn refuse(&mut self, name: &str, advice: &str) {
        self.refused.insert(name.to_owned(), format!("{name}: {advice}"));
    }

    /// What was given by name and cannot be followed.
    pub(super) fn check_refused(&self) -> Result<()> {
        match self.refused.values().next() {
            Some(text) => Err(Error::new(ErrorKind::Config, text.clone())),
            None => Ok(()),
        }
    }

    /// Java's `SSLContext`: one of a version speaks that, and older ones.
    fn cap_version(&mut self, name: &str, value: &str) -> Result<()> {
        match value {
            "TLS" | "TLSv1.3" => {}
            "TLSv1.2" => self.tls13 = false,
            _ => {
                return Err(shown(
                    name,
                    value,
                    "TLSv1.3, TLSv1.2 or TLS is expected; older versions are not supported",
                ));
            }
        }
        Ok(())
    }

    fn enable_versions(&mut self, name: &str, value: &str) -> Result<()> {
        let all: Vec<&str> = value.split(',').map(str::trim).filter(|v| !v.is_empty()).collect();
        let known = |v: &&str| matches!(*v, "TLSv1.3" | "TLSv1.2" | "TLSv1.1" | "TLSv1" | "SSLv3" | "SSLv2Hello");
        if let Some(unknown) = all.iter().find(|v| !known(v)) {
            return Err(shown(name, unknown, "TLSv1.3 and TLSv1.2 are supported"));
        }
        let tls13 = all.contains(&"TLSv1.3");
        let tls12 = all.contains(&"TLSv1.2");
        if !tls13 && !tls12 {
            return Err(shown(name, value, "TLSv1.3 or TLSv1.2 is expected; older versions are not supported"));
        }
        (self.tls13, self.tls12) = (tls13, tls12);
        Ok(())
    }
}

fn shown(name: &str, value: &str, advice: &str) -> Error {
    Error::new(ErrorKind::Config, format!("{name}={value}: {advice}"))
}
