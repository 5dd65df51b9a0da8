//! Connect-style sink task driver on Kafka share groups.
