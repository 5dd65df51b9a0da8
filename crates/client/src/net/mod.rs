//! The connection manager: sockets, addresses, which broker to ask. Decisions are made in `kafka-share-core`.

mod cluster;
mod connection;
mod coordinator;
mod probe;
mod report;
mod slot;

pub use cluster::{Cluster, Purpose, SessionOwner};
pub use connection::{Connection, Submitted};
pub use coordinator::CoordinatorKind;
pub use report::{ConnectionInfo, ConnectionState};
