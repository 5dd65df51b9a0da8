//! Sans-IO Kafka client machines: they decide, and never touch a socket, a clock or a runtime.
//!
//! Every machine has the same shape: `new(config, ..)`, `handle_<input>(&mut self, now, ..)` for what happened,
//! `poll_<output>(&mut self)` for what the caller must do now (call it until it answers `None`), and
//! `next_deadline(&self)` for the moment at which `handle_timeout` is due. Time and randomness are arguments.

pub mod backoff;
pub mod connection;
pub mod ledger;
pub mod metadata;
pub mod producer;
pub mod share_acks;
pub mod share_consumer;
pub mod share_fetch;
pub mod share_membership;
pub mod share_session;
pub mod transaction;
pub mod versions;

pub use backoff::Backoff;
pub use versions::ApiVersions;
