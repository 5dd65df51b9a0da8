//! Sans-IO client machines for Kafka share groups and transactions.
