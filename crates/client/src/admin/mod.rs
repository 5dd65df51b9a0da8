//! Administration: topics, configs, offsets and share groups.

/// Runs an async block until its result is none that a retry could heal, or `deadline` is near. Not a method with an async
/// closure: the futures of its callers would not be `Send`.
macro_rules! retrying {
    ($admin:expr, $deadline:expr, $work:expr) => {{
        let mut attempt = 0;
        loop {
            let result = $work.await;
            attempt += 1;
            match result {
                Err(error)
                    if crate::Error::is_retriable(&error)
                        && $admin.cluster().pause_before_retry(attempt, $deadline).await => {}
                result => break result,
            }
        }
    }};
}

mod configs;
mod group_offsets;
mod group_settings;
mod groups;
mod offsets;
mod topics;
mod transactions;

pub use configs::{ConfigEntry, ConfigResource};
pub use group_offsets::{OffsetReset, PartitionOutcomes, SharePartitionOffset};
pub use group_settings::{AutoOffsetReset, GroupSetting, SettingKind, ShareGroupSettings};
pub use groups::{GroupFilter, GroupListing, ShareGroupDescription, ShareGroupMember};
pub use offsets::{Isolation, OffsetSpec};
pub use topics::{BrokerDescription, ClusterDescription, NewTopic, PartitionDescription, TopicDescription};
pub use transactions::{TransactionFilter, TransactionListing};

use crate::net::Cluster;
use crate::{ClientConfig, Error, Result};
use kafka_share_messages::ErrorCode;
use kafka_share_wire::Str;
use std::sync::Arc;
use std::time::Instant;

/// Outcome per name, in the order asked for.
pub type Outcomes<T> = Vec<(String, Result<T>)>;

/// An administrative client. Cloning shares its connections.
///
/// Every call ends within `default.api.timeout.ms`, and tries again what is safe to try again.
///
/// A call that is dropped takes back a request that was not written yet, and does not hear the answer to one that was: it may
/// or may not have taken effect. Each says what can be half done then. The client goes on as before.
#[derive(Debug, Clone)]
pub struct Admin {
    cluster: Arc<Cluster>,
}

impl Admin {
    /// Checks the settings. Connects to nothing yet.
    ///
    /// # Errors
    /// Settings that make no sense.
    pub fn new(config: ClientConfig) -> Result<Self> {
        Ok(Admin { cluster: Cluster::new(config)? })
    }

    /// On the connections of another client.
    #[must_use]
    pub fn on(cluster: Arc<Cluster>) -> Self {
        Admin { cluster }
    }

    /// The connections.
    #[must_use]
    pub fn cluster(&self) -> &Arc<Cluster> {
        &self.cluster
    }

    fn deadline(&self) -> Instant {
        Instant::now() + self.cluster.config().default_api_timeout
    }
}

fn check(code: ErrorCode, what: impl std::fmt::Display, detail: Option<&Str>) -> Result<()> {
    match code.ok() {
        Ok(()) => Ok(()),
        Err(code) => Err(Error::broker(code, what, detail.map(|d| d.as_str()))),
    }
}

/// Kafka carries times as signed 32-bit milliseconds.
fn millis_left(deadline: Instant) -> i32 {
    i32::try_from(deadline.saturating_duration_since(Instant::now()).as_millis()).unwrap_or(i32::MAX)
}
