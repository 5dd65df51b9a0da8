//! Exactly-once: the way that acknowledgements take into transactions, and whether the cluster has it.

use crate::{ConnectError, DeliverySemantics, Properties};
use kafka_share::ledger::{DEFAULT_LEDGER_TOPIC, NewLedger};
use kafka_share::{Admin, ErrorCode, ErrorKind};
use std::time::{Duration, Instant};

pub(crate) const BACKEND: &str = "share.ack.transaction.backend";
const TOPIC: &str = "share.ack.ledger.topic";
const AUTO_CREATE: &str = "ledger.auto.create";
const SETTINGS: [&str; 4] = [BACKEND, TOPIC, AUTO_CREATE, "share.ack.ledger.sweep.interval.ms"];
/// How long the cluster may take to say what it offers.
const FEATURES: Duration = Duration::from_secs(30);

/// What one of a task's two clients is told of the ledger, both are: they must look at the same one. Answers whether nobody
/// has said by which way.
pub(crate) fn agree<'a>(
    own: impl Fn(&str) -> Option<&'a str>,
    semantics: DeliverySemantics,
    consumer: &mut Properties,
    producer: &mut Properties,
) -> Result<bool, ConnectError> {
    let exactly_once = semantics == DeliverySemantics::ExactlyOnce;
    let mut by_default = false;
    for name in SETTINGS {
        let of = |props: &Properties| props.get(name).map(|v| v.trim().to_owned());
        let mut told = vec![("the connector", own(name).map(str::to_owned)), ("its consumer", of(consumer))];
        if exactly_once {
            told.push(("its producer", of(producer)));
        }
        let told: Vec<(&str, String)> = told.into_iter().filter_map(|(who, v)| Some((who, v?))).collect();
        if let Some((who, other)) = told.iter().find(|(_, v)| *v != told[0].1) {
            let (first, value) = &told[0];
            return Err(ConnectError::config(format!(
                "{name} is {value} for {first} and {other} for {who}: both clients of a task must use the same; set it once, \
                 on the connector or the worker"
            )));
        }
        let value = match told.into_iter().next() {
            Some((_, value)) => value,
            None if name == BACKEND && exactly_once => {
                by_default = true;
                "auto".to_owned()
            }
            None => continue,
        };
        if exactly_once {
            producer.insert(name.into(), value.clone());
        }
        consumer.insert(name.into(), value);
    }
    match consumer.get(BACKEND).map(|b| b.to_ascii_lowercase()).as_deref() {
        Some("none") if exactly_once => Err(ConnectError::config(format!(
            "{BACKEND}=none forbids what share.delivery.semantics=exactly-once needs: set it to auto, native, ledger or both"
        ))),
        Some("auto" | "native" | "ledger" | "both" | "none") | None => Ok(by_default),
        Some(other) => {
            Err(ConnectError::config(format!("{BACKEND}={other}: auto, native, ledger, both or none is expected")))
        }
    }
}

/// Refuses where acknowledgements can go into transactions neither natively nor by the ledger, with what to do about it.
pub(crate) async fn check(admin: &Admin, consumer: &Properties) -> Result<(), ConnectError> {
    let value = |name: &str, default: &str| consumer.get(name).map_or_else(|| default.to_owned(), Clone::clone);
    let backend = value(BACKEND, "auto").to_ascii_lowercase();
    if backend != "ledger" {
        let features = admin.cluster().features(Instant::now() + FEATURES).await?;
        let native = kafka_share::transactional_acknowledgements_offered(&features);
        if !native && backend != "auto" {
            return Err(ConnectError::config(format!(
                "share.delivery.semantics=exactly-once: this cluster has no native transactional acknowledgements (KIP-1289, \
                 in no released Kafka), which {BACKEND}={backend} needs; set it to auto or ledger"
            )));
        }
        // With both, there must be a ledger too.
        if native && backend != "both" {
            return Ok(());
        }
    }
    let topic = value(TOPIC, DEFAULT_LEDGER_TOPIC);
    let create = value(AUTO_CREATE, "false").eq_ignore_ascii_case("true");
    let found = match admin.check_ledger(&topic).await {
        Err(error) if create && error.code() == Some(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION) => {
            admin.create_ledger(&NewLedger::new().topic(&topic)).await.map(drop)
        }
        result => result,
    };
    found.map_err(|error| {
        let missing = match backend.as_str() {
            "ledger" | "both" => "",
            _ => "this cluster has no native transactional acknowledgements (KIP-1289), so that it takes a ledger: ",
        };
        let what = format!("share.delivery.semantics=exactly-once: {missing}");
        match error.kind() {
            ErrorKind::Config => ConnectError::config(format!("{what}{error}")),
            _ => ConnectError::Kafka(error.context(what.trim_end_matches([':', ' ']))),
        }
    })
}
