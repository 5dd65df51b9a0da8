//! Helpers of the end-to-end tests: Java programs, real Kafka brokers, byte vectors.

pub mod java;
pub mod kafka;
pub mod specs;
pub mod vectors;
