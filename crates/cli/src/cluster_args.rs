//! Options that say which cluster to talk to.

use crate::exit::Failure;
use crate::progress;
pub(crate) use crate::properties::pair;
use crate::properties::read_properties;
use clap::Args;
use kafka_share::ClientConfig;
use kafka_share::net::Cluster;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a command waits for a cluster that does not answer, unless `default.api.timeout.ms` says otherwise.
const API_TIMEOUT: Duration = Duration::from_secs(30);

/// Which cluster.
#[derive(Debug, Clone, Args)]
pub(crate) struct ClusterArgs {
    /// Brokers to start from, as host:port[,host:port..]
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) bootstrap_server: Option<String>,
    /// File of properties under their Kafka names
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// A property under its Kafka name, before those of the file; can be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = pair)]
    pub(crate) property: Vec<(String, String)>,
}

impl ClusterArgs {
    /// Whether a cluster was named at all.
    pub(crate) fn is_given(&self) -> bool {
        self.bootstrap_server.is_some() || self.config.is_some()
    }

    /// All properties that were given, the strongest last.
    pub(crate) fn properties(&self) -> Result<Vec<(String, String)>, Failure> {
        let mut all = match &self.config {
            Some(path) => read_properties(path)?,
            None => Vec::new(),
        };
        all.extend(self.property.iter().cloned());
        all.extend(self.bootstrap_server.iter().map(|s| ("bootstrap.servers".to_owned(), s.clone())));
        if !all.iter().any(|(name, _)| name == "bootstrap.servers") {
            let text = "no cluster is named: give --bootstrap-server HOST:PORT, or bootstrap.servers in --config FILE";
            return Err(Failure::usage(text));
        }
        Ok(all)
    }

    /// The value of a property, if it was given.
    pub(crate) fn property_value(&self, name: &str) -> Result<Option<String>, Failure> {
        let properties = self.properties()?;
        Ok(properties.into_iter().rev().find(|(known, _)| known == name).map(|(_, value)| value.trim().to_owned()))
    }

    /// Client settings.
    pub(crate) fn client_config(&self) -> Result<ClientConfig, Failure> {
        let mut config = ClientConfig::new("").client_id("kshare").default_api_timeout(API_TIMEOUT);
        for (name, value) in self.properties()? {
            // Names of producers and consumers are none of the connection's business.
            config.set(&name, &value)?;
        }
        config.validate()?;
        Ok(config)
    }

    /// A cluster that answers.
    pub(crate) async fn connect(&self) -> Result<Arc<Cluster>, Failure> {
        let config = self.client_config()?;
        let cluster = Cluster::new(config)?;
        let limit = cluster.config().api_timeout();
        progress::during("connecting", cluster.features(Instant::now() + limit)).await?;
        Ok(cluster)
    }
}
