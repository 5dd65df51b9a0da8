//! Properties of the ledger, the same for consumers and producers.

use crate::config::{boolean, check_millis, millis};
use crate::{Error, ErrorKind, Result};
use std::time::Duration;

/// `share.ack.ledger.topic` by default.
pub const DEFAULT_LEDGER_TOPIC: &str = "share-ack-ledger";

/// How acknowledgements get into a transaction (`share.ack.transaction.backend`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AckBackendChoice {
    /// Native where the cluster offers it, with the ledger beside it where there is one and the group has not left it; else by
    /// the ledger.
    #[default]
    Auto,
    /// TxnShareAcknowledge (KIP-1289), which no released broker has.
    Native,
    /// The ledger, on any broker.
    Ledger,
    /// Native, and the ledger beside it: for members of a group of which some use the ledger alone, or did so until now.
    Both,
    /// Not at all.
    None,
}

/// Settings of the ledger.
#[derive(Debug, Clone)]
pub(crate) struct LedgerSettings {
    /// `None` where nothing was said.
    pub(crate) backend: Option<AckBackendChoice>,
    pub(crate) topic: String,
    pub(crate) auto_create: bool,
    pub(crate) sweep_interval: Duration,
}

impl Default for LedgerSettings {
    fn default() -> Self {
        LedgerSettings {
            backend: None,
            topic: DEFAULT_LEDGER_TOPIC.into(),
            auto_create: false,
            sweep_interval: Duration::from_secs(60),
        }
    }
}

impl LedgerSettings {
    /// Takes a property; answers whether it is one of the ledger's.
    pub(crate) fn set(&mut self, name: &str, value: &str) -> Result<bool> {
        let fail = |what: &str| Err(Error::new(ErrorKind::Config, format!("{name}={value}: {what}")));
        match name {
            "share.ack.transaction.backend" => {
                self.backend = Some(match value.trim().to_ascii_lowercase().as_str() {
                    "auto" => AckBackendChoice::Auto,
                    "native" => AckBackendChoice::Native,
                    "ledger" => AckBackendChoice::Ledger,
                    "both" => AckBackendChoice::Both,
                    "none" => AckBackendChoice::None,
                    _ => return fail("auto, native, ledger, both or none is expected"),
                });
            }
            "share.ack.ledger.topic" if value.trim().is_empty() => return fail("the name of a topic is expected"),
            "share.ack.ledger.topic" => self.topic = value.trim().to_owned(),
            "ledger.auto.create" => self.auto_create = boolean(name, value)?,
            "share.ack.ledger.sweep.interval.ms" => self.sweep_interval = millis(name, value)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Whether a producer with these stages by the ledger alone where it stages by the ledger.
    pub(crate) fn is_ledger_only(&self) -> bool {
        self.backend == Some(AckBackendChoice::Ledger)
    }

    pub(crate) fn validate(&self) -> Result<()> {
        check_millis("share.ack.ledger.sweep.interval.ms", self.sweep_interval)?;
        if self.sweep_interval.is_zero() {
            return Err(Error::new(ErrorKind::Config, "share.ack.ledger.sweep.interval.ms must not be 0"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn properties_are_read_and_checked() {
        let mut settings = LedgerSettings::default();
        assert_eq!((settings.backend, settings.auto_create), (None, false));
        for (value, backend) in [
            ("auto", AckBackendChoice::Auto),
            ("Native", AckBackendChoice::Native),
            (" ledger ", AckBackendChoice::Ledger),
            ("both", AckBackendChoice::Both),
            ("NONE", AckBackendChoice::None),
        ] {
            assert!(settings.set("share.ack.transaction.backend", value).unwrap());
            assert_eq!(settings.backend, Some(backend));
        }
        assert!(settings.set("share.ack.ledger.topic", "my-ledger").unwrap());
        assert!(settings.set("ledger.auto.create", "true").unwrap());
        assert!(!settings.set("linger.ms", "5").unwrap(), "not one of the ledger's");
        assert_eq!((settings.topic.as_str(), settings.auto_create), ("my-ledger", true));
        for (name, value) in [
            ("share.ack.transaction.backend", "either"),
            ("share.ack.ledger.topic", " "),
            ("ledger.auto.create", "perhaps"),
            ("share.ack.ledger.sweep.interval.ms", "soon"),
        ] {
            let error = settings.set(name, value).unwrap_err();
            assert!(error.kind() == ErrorKind::Config && error.to_string().contains(name), "{error}");
        }
        settings.set("share.ack.ledger.sweep.interval.ms", "0").unwrap();
        assert!(settings.validate().unwrap_err().to_string().contains("must not be 0"));
    }
}
