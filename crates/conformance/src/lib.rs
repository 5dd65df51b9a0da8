//! Share-group conformance cases for any Kafka broker.
//!
//! A [`Case`] speaks to a broker on the wire and checks one or a few rules of `protocol-specs/requirements`, by id. The
//! [`Runner`] runs cases side by side against any cluster, each with topics and groups of its own that it removes in
//! the end, so that a shared cluster can be judged too. A [`Report`] says for each case: passed, failed with what was
//! sent and what came back, or not supported with the reason. `MATRIX.md` has the results of released brokers and
//! `FINDINGS.md` what they do otherwise.
//!
//! ```no_run
//! # async fn run() -> Result<(), kafka_share::Error> {
//! use kafka_share_conformance::{Runner, cases};
//!
//! let config = kafka_share::ClientConfig::new("127.0.0.1:9092");
//! let report = Runner::new(config).run(&cases::all(), |_| {}).await?;
//! print!("{}", report.text());
//! # Ok(())
//! # }
//! ```

mod case;
pub mod cases;
mod expect;
mod lab;
mod report;
mod runner;

pub use case::{Case, Need};
pub use report::{CaseResult, Report, Verdict};
pub use runner::Runner;
