//! Judges share consumers of any client library: a program that consumes is run on an embedded broker, through a proxy that
//! reads along and knows the rules of `protocol-specs/requirements` that bind clients. In each [`Scenario`] something else
//! goes wrong, or nothing. `FINDINGS.md` of the conformance suite has what released clients do otherwise.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> kafka_share::Result<()> {
//! use kafka_share_judge::{Place, judge, scenarios};
//! use std::time::Duration;
//!
//! // A client that never consumes; yours does, at `place.bootstrap`.
//! let client = async |_place: Place, stop: tokio::sync::oneshot::Receiver<()>| {
//!     let _ = stop.await;
//!     Ok(())
//! };
//! let result = judge(&scenarios()[0], Duration::from_millis(100), client).await?;
//! assert!(!result.passed() && result.left > 0);
//! # Ok(())
//! # }
//! ```

mod member;
mod proxy;
mod scenarios;
mod watch;

pub use scenarios::{Place, Scenario, ScenarioResult, judge, scenarios};
