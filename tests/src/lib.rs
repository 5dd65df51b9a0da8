//! Helpers of the end-to-end tests: Java programs, real Kafka brokers, raw connections, byte vectors, rules.

pub mod java;
pub mod kafka;
pub mod raw;
pub mod requirements;
pub mod specs;
pub mod tools;
pub mod vectors;
