//! Kafka request and response types generated from protocol-specs, with API keys and error codes.
