//! `kafka`: copies records to a topic of the same cluster; exactly-once through the driver's transaction.

use crate::{ConnectError, ExactlyOnceSupport, Properties, SinkConnector, SinkRecord, SinkTask, SinkTaskContext};
use async_trait::async_trait;
use kafka_share::{Producer, ProducerRecord, TransactionalProducer};
use std::borrow::Cow;
use std::sync::Arc;

pub(super) struct KafkaConnector;

impl SinkConnector for KafkaConnector {
    fn start(&mut self, properties: &Properties) -> Result<(), ConnectError> {
        let target = target(properties)?;
        let routes = |(name, kind): (&String, &String)| {
            let class = kind.trim().rsplit('.').next();
            name.starts_with("transforms.") && name.ends_with(".type") && class == Some("TimestampRouter")
        };
        if !target.contains(TOPIC) && properties.iter().any(routes) {
            return Err(ConnectError::config(format!(
                "target.topic={target}: what TimestampRouter routes would all go to this one topic; {TOPIC} in target.topic \
                 stands for the topic of a record, or remove the transform"
            )));
        }
        Ok(())
    }

    fn new_task(&self) -> Box<dyn SinkTask> {
        Box::new(KafkaSink::default())
    }

    fn exactly_once_support(&self) -> ExactlyOnceSupport {
        ExactlyOnceSupport::KafkaTransaction
    }

    fn settings(&self) -> Option<&'static [&'static str]> {
        Some(&["target.topic"])
    }
}

/// In `target.topic`: the topic of a record, as transforms have left it.
const TOPIC: &str = "${topic}";

fn target(properties: &Properties) -> Result<String, ConnectError> {
    let name = properties.get("target.topic").filter(|t| !t.is_empty());
    name.cloned().ok_or_else(|| ConnectError::config("target.topic is missing: the topic to copy to"))
}

enum Output {
    Transaction(Arc<TransactionalProducer>),
    Plain(Producer),
}

/// Writes every record to `target.topic`, with its key, value, headers and timestamp. `${topic}` in it stands for the topic of
/// the record, as transforms have left it (`copy-of-${topic}`); without it all records go to one topic, and a
/// `TimestampRouter` is refused.
#[derive(Default)]
pub struct KafkaSink {
    output: Option<Output>,
    topic: String,
}

impl std::fmt::Debug for KafkaSink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KafkaSink").field("topic", &self.topic).finish_non_exhaustive()
    }
}

fn outgoing<'a>(topic: &'a str, record: &SinkRecord) -> ProducerRecord<'a> {
    let mut out = ProducerRecord::new(topic).timestamp(record.timestamp);
    if let Some(key) = record.key.to_bytes() {
        out = out.key(key);
    }
    if let Some(value) = record.value.to_bytes() {
        out = out.value(value);
    }
    for (key, value) in &record.headers {
        out = out.header_opt(key.clone(), value.to_bytes());
    }
    out
}

#[async_trait]
impl SinkTask for KafkaSink {
    fn version(&self) -> &str {
        env!("CARGO_PKG_VERSION")
    }

    async fn start(&mut self, context: SinkTaskContext, properties: &Properties) -> Result<(), ConnectError> {
        self.topic = target(properties)?;
        self.output = Some(match context.producer() {
            Some(producer) => Output::Transaction(Arc::clone(producer)),
            None => Output::Plain(Producer::from_properties(properties.iter().filter_map(producer_property))?),
        });
        Ok(())
    }

    async fn put(&mut self, records: &[SinkRecord]) -> Result<(), ConnectError> {
        let mut deliveries = Vec::with_capacity(records.len());
        for record in records {
            let topic = match self.topic.contains(TOPIC) {
                true => Cow::Owned(self.topic.replace(TOPIC, record.topic.as_str())),
                false => Cow::Borrowed(self.topic.as_str()),
            };
            let out = outgoing(&topic, record);
            deliveries.push(match &self.output {
                Some(Output::Transaction(producer)) => producer.send(out).await?,
                Some(Output::Plain(producer)) => producer.send(out).await?,
                None => return Err(ConnectError::fatal("the kafka sink was not started")),
            });
        }
        match &self.output {
            Some(Output::Transaction(producer)) => producer.flush().await?,
            Some(Output::Plain(producer)) => producer.flush().await?,
            None => {}
        }
        for delivery in deliveries {
            delivery.await?;
        }
        Ok(())
    }

    async fn stop(&mut self) {
        if let Some(Output::Plain(producer)) = self.output.take() {
            let _ = producer.close(std::time::Duration::from_secs(10)).await;
        }
    }
}

/// The driver hands producer settings to its tasks under `producer.`.
fn producer_property((name, value): (&String, &String)) -> Option<(String, String)> {
    Some((name.strip_prefix("producer.")?.to_owned(), value.clone()))
}
