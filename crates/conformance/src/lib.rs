//! Share-group conformance cases for any Kafka broker.
