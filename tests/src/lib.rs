//! Helpers of the end-to-end tests: Java programs, real Kafka brokers, raw connections, a proxy, byte vectors, rules.

pub mod java;
pub mod kafka;
pub mod proxy;
pub mod raw;
pub mod requirements;
pub mod specs;
pub mod tools;
pub mod vectors;
