//! Benchmarks beside other Kafka codecs and clients.
