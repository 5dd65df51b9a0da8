//! The acknowledgement ledger: exactly-once from a share group on released Kafka (4.1 to 4.4), which has no transactional
//! acknowledgements.
//!
//! One compacted topic per cluster, the ledger. Inside the transaction that writes the output the producer also writes which
//! records it acknowledges; of two transactions that claim the same record only the first in the ledger is committed. The
//! broker is told after the commit. See [`kafka_share_core::ledger`] for the protocol.
//!
//! ```no_run
//! # async fn example() -> kafka_share::Result<()> {
//! use kafka_share::ledger::NewLedger;
//! use kafka_share::{Admin, ClientConfig};
//!
//! // Once per cluster; or `ledger.auto.create=true`.
//! let admin = Admin::new(ClientConfig::new("127.0.0.1:9092"))?;
//! admin.create_ledger(&NewLedger::new()).await?;
//! # Ok(())
//! # }
//! ```
//!
//!
#![doc = include_str!("guide.md")]

mod carrier;
mod elsewhere;
mod gone;
mod inspect;
mod leave;
mod member;
mod settings;
mod tail;
mod topic;

pub use inspect::{LedgerDescription, LedgerIntent, LedgerPartition, LedgerSettlement};
pub use leave::LedgerRemainder;
pub(crate) use member::{LedgerMember, LedgerPart};
pub(crate) use settings::LedgerSettings;
pub use settings::{AckBackendChoice, DEFAULT_LEDGER_TOPIC};
pub(crate) use tail::Tail;
pub(crate) use topic::LedgerTopic;
pub use topic::NewLedger;

#[cfg(test)]
mod tests;
