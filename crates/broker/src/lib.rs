//! Embedded Kafka broker for tests and demos, with share groups and transactional acknowledgements.
//!
//! One process, any number of nodes, everything in memory and, if asked for, in a directory that outlives it
//! ([`BrokerBuilder::data_dir`]). It is for development and tests: production is Apache
//! Kafka. What a released Kafka 4.4 refuses, this broker refuses with the same error code; beyond it goes the draft of
//! KIP-1289 (transactional share acknowledgements), which a switch of the builder turns off.
//!
//! [`EmbeddedBroker`] listens on tcp and in memory. [`Cluster`] is the machine below it: no sockets, no clock, no
//! threads, so that a simulation can drive it under a seed.
//!
//! # Security
//!
//! A [`Listener`] speaks TLS, asks for client certificates, and authenticates by SASL: PLAIN, SCRAM, OAUTHBEARER. An
//! [`Authorizer`] says who may do what, by Kafka's rules and with Kafka's codes; [`EmbeddedBroker::deny`] and its like change
//! that while clients run. Without either, all may do everything, as with Kafka.
//!
//! # In tests
//!
//! - **Faults**: [`EmbeddedBroker::fault`] lets the Nth request of an API go wrong ([`Fault`], [`FaultAction`]): an error, a
//!   delay, no answer, an answer that is lost after the request took effect, cut or under a wrong correlation id; a leader or
//!   coordinator that moves, a node that restarts, locks that expire, a clock that jumps. Most of it also happens at once, by
//!   a method of [`EmbeddedBroker`].
//! - **Time**: with [`BrokerBuilder::manual_clock`] it moves only by [`EmbeddedBroker::advance_clock`]; timeouts of hours run
//!   out in microseconds, and never on their own.
//! - **Dumps**: [`EmbeddedBroker::dump`] shows sessions, locks, transactions, groups and partitions as typed values,
//!   [`EmbeddedBroker::dump_json`] as JSON.
//!
//! ```
//! use kafka_share_broker::{EmbeddedBroker, Fault, FaultAction};
//! use kafka_share_messages::{ApiKey, ErrorCode};
//! use std::time::Duration;
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! let broker = EmbeddedBroker::builder().manual_clock().topic("orders", 1).start().await?;
//! // The second commit finds no coordinator.
//! let fault = Fault::new(FaultAction::Error(ErrorCode::NOT_COORDINATOR)).key(ApiKey::END_TXN).skip(1);
//! let fault = broker.fault(fault);
//! // .. the code under test runs against broker.bootstrap_servers() ..
//! broker.advance_clock(Duration::from_secs(3600));
//! assert_eq!(broker.fault_hits(fault), 0);
//! assert!(broker.dump().transactions.is_empty());
//! println!("{}", broker.dump_json());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

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
mod security;
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
pub use faults::{Fault, FaultAction, FaultId, Rewrite};
pub use persistence::DataDirError;
pub use security::{
    Authorizer, ClientAuth, Listener, Mechanism, OAuthKey, Operation, Resource, SecurityError, SecurityProtocol,
    SelfSigned,
};
pub use settings::{GroupBounds, GroupConfig, OffsetReset};
pub use share::{LockDump, ShareDump, SharePartitionDump, ShareSessionDump};
pub use time::Now;
