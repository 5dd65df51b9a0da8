//! Helpers of the end-to-end tests: Java programs, real Kafka brokers and clusters, raw connections, a proxy, byte
//! vectors, rules.

pub mod acls;
pub mod cluster_run;
pub mod dice;
pub mod java;
pub mod kafka;
pub mod kafka_cluster;
mod kafka_process;
pub mod memory;
pub mod postgres;
pub mod proxy;
pub mod raw;
pub mod requirements;
pub mod resets;
pub mod share;
pub mod specs;
pub mod tools;
pub mod vectors;
