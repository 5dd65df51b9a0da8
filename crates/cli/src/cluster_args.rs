//! Options that say which cluster to talk to.

use crate::exit::Failure;
use clap::Args;
use kafka_share::ClientConfig;
use std::path::{Path, PathBuf};

/// Which cluster.
#[derive(Debug, Clone, Args)]
pub(crate) struct ClusterArgs {
    /// Brokers to start from, as host:port[,host:port..]
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) bootstrap_server: Option<String>,
    /// File of properties under their Kafka names
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

impl ClusterArgs {
    /// Whether a cluster was named at all.
    pub(crate) fn is_given(&self) -> bool {
        self.bootstrap_server.is_some() || self.config.is_some()
    }

    /// Client settings.
    pub(crate) fn client_config(&self) -> Result<ClientConfig, Failure> {
        let mut config = ClientConfig::new(self.bootstrap_server.as_deref().unwrap_or_default()).client_id("kshare");
        if let Some(path) = &self.config {
            for (name, value) in read_properties(path)? {
                if name == "bootstrap.servers" && self.bootstrap_server.is_some() {
                    continue;
                }
                if !config.set(&name, &value)? {
                    tracing::warn!(name, "property has no effect here");
                }
            }
        }
        config.validate()?;
        Ok(config)
    }
}

/// Reads a properties file: `name=value` or `name: value` lines, `#` and `!` comments.
pub(crate) fn read_properties(path: &Path) -> Result<Vec<(String, String)>, Failure> {
    let text = std::fs::read_to_string(path).map_err(|e| Failure::usage(format_args!("{}: {e}", path.display())))?;
    let mut properties = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with(['#', '!']) {
            continue;
        }
        let Some((name, value)) = line.split_once(['=', ':']) else {
            return Err(Failure::usage(format_args!("{}:{}: name=value is expected", path.display(), number + 1)));
        };
        properties.push((name.trim().to_owned(), value.trim().to_owned()));
    }
    Ok(properties)
}
