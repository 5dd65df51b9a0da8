//! Embedded Kafka broker for tests and demos, with share groups and transactional acknowledgements.
