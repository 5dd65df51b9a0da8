//! Kafka share-group client: KafkaShareConsumer, TransactionalProducer and exactly-once acknowledgements.
