//! kshare: command line for Kafka share groups.
