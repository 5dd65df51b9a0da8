//! Embedded Kafka broker for tests and demos, with share groups and transactional acknowledgements.
//!
//! One process, any number of nodes, everything in memory. It is for development and tests: production is Apache
//! Kafka. What a released Kafka 4.4 refuses, this broker refuses with the same error code; beyond it goes the draft of
//! KIP-1289 (transactional share acknowledgements), which a switch of the builder turns off.
//!
//! [`EmbeddedBroker`] listens on tcp and in memory. [`Cluster`] is the machine below it: no sockets, no clock, no
//! threads, so that a simulation can drive it under a seed.

mod api;
mod cluster;
mod config;
mod dump;
mod embedded;
mod faults;
mod fetch_sessions;
mod group_coordinator;
mod java;
mod log;
mod net;
mod persistence;
mod rng;
mod settings;
mod share;
mod share_coordinator;
mod share_partition;
mod time;
mod tracked;
mod txn_coordinator;

pub use cluster::{CloseReason, Cluster, ConnId, CoordinatorKind, Output};
pub use config::{BrokerFeatures, ClusterConfig, NodeConfig};
pub use dump::{ClusterDump, FetchSessionDump, GroupDump, MemberDump, PartitionDump, TransactionDump};
pub use embedded::{BrokerBuilder, EmbeddedBroker, StartError};
pub use faults::{Fault, FaultAction, FaultId};
pub use persistence::DataDirError;
pub use settings::{GroupBounds, GroupConfig, OffsetReset};
pub use share::{LockDump, ShareDump, SharePartitionDump, ShareSessionDump};
pub use time::Now;
