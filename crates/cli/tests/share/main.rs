//! `kshare produce`, `consume` and `groups` as a user runs them: on the embedded broker, and on real Kafka brokers.

mod bad_input;
mod consume;
mod forgetting;
mod groups;
mod ledger;
mod pipe;
mod produce;
mod real;
mod rig;
