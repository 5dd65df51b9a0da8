//! Where a bench takes place: a cluster, its topics, and the clients as commands.

use super::CommonArgs;
use super::process::{self, Measured};
use super::report::Row;
use crate::cluster_args::ClusterArgs;
use crate::exit::{Failure, note};
use crate::progress;
use kafka_share::admin::NewTopic;
use kafka_share::ledger::NewLedger;
use kafka_share::{Admin, Producer, ProducerRecord};
use kafka_share_broker::{EmbeddedBroker, SelfSigned};
use std::time::Duration;

/// Name of the command that runs this project's client.
const PEER: &str = "bench-peer";

/// A cluster, which may be one of this process, and what is needed to measure clients on it.
pub(super) struct Place {
    pub(super) admin: Admin,
    pub(super) cluster: ClusterArgs,
    /// Start of the names of topics and groups.
    pub(super) name: String,
    servers: String,
    topics: Vec<String>,
    ledger: Option<String>,
    /// Options of this project's client that have it speak TLS.
    tls: Option<Vec<String>>,
    _broker: Option<EmbeddedBroker>,
}

/// A client: its name, and its command with first arguments.
pub(super) type Client = (String, Vec<String>);

impl Place {
    pub(super) async fn new(args: &CommonArgs) -> Result<Self, Failure> {
        let (broker, tls) = match args.cluster.is_given() {
            true => (None, cluster_tls(args)?),
            false => embedded(args.tls).await.map(|(broker, tls)| (Some(broker), tls))?,
        };
        let cluster = match &broker {
            Some(broker) => ClusterArgs { bootstrap_server: Some(broker.bootstrap_servers()), ..args.cluster.clone() },
            None => args.cluster.clone(),
        };
        let admin = Admin::new(cluster.client_config()?)?;
        let properties = cluster.properties()?;
        let servers = properties.into_iter().rev().find(|(name, _)| name == "bootstrap.servers");
        Ok(Place {
            admin,
            cluster,
            name: format!("kshare-bench-{}", std::process::id()),
            servers: servers.map(|(_, value)| value).unwrap_or_default(),
            topics: Vec::new(),
            ledger: None,
            tls,
            _broker: broker,
        })
    }

    /// This project's client with options of its own, reaching the cluster as this place does; the same by TLS after it,
    /// where that is asked for.
    pub(super) fn own(&self, name: &str, options: &[String]) -> Result<Vec<Client>, Failure> {
        let mut plain = options.to_vec();
        if let Some(path) = &self.cluster.config {
            plain.push(format!("--config={}", path.display()));
        }
        plain.extend(self.cluster.property.iter().map(|(name, value)| format!("--property={name}={value}")));
        let mut clients = vec![own(name, &plain)?];
        if let Some(tls) = &self.tls {
            clients.push(own(&format!("{name}-tls"), &[options, tls].concat())?);
        }
        Ok(clients)
    }

    /// Creates a topic that [`clean`](Self::clean) deletes.
    pub(super) async fn topic(&mut self, name: &str, partitions: i32) -> Result<(), Failure> {
        self.admin.create_topic(NewTopic::new(name, partitions)).await?;
        self.topics.push(name.to_owned());
        Ok(())
    }

    /// Writes records of a size, one partition after the other.
    pub(super) async fn fill(&self, topic: &str, records: u64, args: &CommonArgs) -> Result<(), Failure> {
        let work = async {
            let mut builder = Producer::builder("").linger(Duration::from_millis(5));
            for (name, value) in self.cluster.properties()? {
                builder.set(&name, &value)?;
            }
            let producer = builder.build()?;
            let value = vec![b'x'; args.size];
            for n in 0..records {
                let partition = (n % args.partitions as u64) as i32;
                // Whether all were written shows at the flush.
                drop(producer.send(ProducerRecord::new(topic).partition(partition).value(&value[..])).await?);
            }
            producer.flush().await?;
            producer.close(Duration::from_secs(30)).await?;
            Ok(())
        };
        progress::during("filling the topic", work).await
    }

    /// A group that starts at the first record.
    pub(super) async fn group(&self, name: &str) -> Result<(), Failure> {
        Ok(self.admin.alter_share_group_configs(name, &[("share.auto.offset.reset", "earliest")]).await?)
    }

    /// Runs a client with the arguments that all clients get: what to do, the servers, and more.
    pub(super) async fn measure(&self, client: &Client, what: &str, more: &[String]) -> Result<Row, Failure> {
        let (name, command) = client;
        let mut words = vec![what.to_owned(), self.servers.clone()];
        words.extend_from_slice(more);
        let measured = progress::during(&format!("{name}: {what}"), process::measure(command, &words)).await;
        let measured: Measured = measured.map_err(|error| error.context(name))?;
        Ok(Row { name: name.clone(), measured })
    }

    /// Creates a ledger that lasts as long as this.
    pub(super) async fn ledger(&mut self) -> Result<String, Failure> {
        let name = format!("{}-ledger", self.name);
        self.admin.create_ledger(&NewLedger::new().topic(&name)).await?;
        self.ledger = Some(name.clone());
        Ok(name)
    }

    /// Deletes the ledger.
    pub(super) async fn clean_ledger(&mut self) {
        self.topics.extend(self.ledger.take());
        self.clean().await;
    }

    /// Deletes the topics.
    pub(super) async fn clean(&mut self) {
        for topic in std::mem::take(&mut self.topics) {
            if let Err(error) = self.admin.delete_topics(&[&topic]).await {
                note(format_args!("topic {topic} is left behind: {error}"));
            }
        }
    }
}

const TLS: &str = "TLS";

/// A broker of this process, which speaks TLS beside, if asked, by a certificate made for it; and how clients reach that.
async fn embedded(tls: bool) -> Result<(EmbeddedBroker, Option<Vec<String>>), Failure> {
    if !tls {
        return Ok((EmbeddedBroker::builder().start().await.map_err(Failure::new)?, None));
    }
    let certificate = SelfSigned::new().map_err(Failure::new)?;
    let builder = EmbeddedBroker::builder().also_listen(certificate.listener(TLS));
    let broker = builder.start().await.map_err(Failure::new)?;
    let options = vec![
        format!("--property=bootstrap.servers={}", broker.bootstrap_servers_of(TLS).unwrap_or_default()),
        "--property=security.protocol=SSL".to_owned(),
        format!("--property=ssl.truststore.certificates={}", certificate.certificate_pem()),
    ];
    Ok((broker, Some(options)))
}

/// How clients reach a cluster that was named by TLS.
fn cluster_tls(args: &CommonArgs) -> Result<Option<Vec<String>>, Failure> {
    match (&args.tls_config, args.tls) {
        (Some(path), _) => Ok(Some(vec![format!("--config={}", path.display())])),
        (None, true) => {
            let text = "--tls has an embedded broker speak TLS too; with a cluster, --tls-config FILE says how to reach \
                        it by TLS (bootstrap.servers, security.protocol, ssl.truststore.location and so on)";
            Err(Failure::usage(text))
        }
        (None, false) => Ok(None),
    }
}

/// This project's client with options of its own.
fn own(name: &str, options: &[String]) -> Result<Client, Failure> {
    let own = std::env::current_exe().map_err(|error| Failure::new(format_args!("this program's path: {error}")))?;
    let mut command = vec![own.display().to_string(), PEER.to_owned()];
    command.extend_from_slice(options);
    Ok((name.to_owned(), command))
}

/// The peers that were given.
pub(super) fn peers(args: &CommonArgs) -> impl Iterator<Item = Client> + '_ {
    let words = |command: &str| command.split_whitespace().map(str::to_owned).collect();
    args.peer.iter().map(move |(name, command)| (name.clone(), words(command)))
}
