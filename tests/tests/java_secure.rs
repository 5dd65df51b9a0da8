//! Kafka's own tools on secured listeners of the embedded broker: TLS with SCRAM, and TLS with a client's certificate.

use std::path::{Path, PathBuf};

use kafka_share_broker::{Authorizer, ClientAuth, EmbeddedBroker, Listener, Mechanism, Operation, Resource};
use kafka_share_tests::java::available;
use kafka_share_tests::tools::Tools;
use rcgen::{BasicConstraints, CertificateParams, DistinguishedName, DnType, IsCa, Issuer, KeyPair};
use tempfile::TempDir;

const CONFIGS: &str = "org.apache.kafka.tools.ConfigCommand";
const PRODUCER: &str = "org.apache.kafka.tools.ProducerPerformance";
const CONSUMER: &str = "org.apache.kafka.tools.consumer.ConsoleShareConsumer";

/// An authority, and a folder for what Java reads.
struct Certificates {
    authority: String,
    issuer: Issuer<'static, KeyPair>,
    folder: TempDir,
}

impl Certificates {
    fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "tests");
        let key = KeyPair::generate().expect("a key");
        let authority = params.self_signed(&key).expect("a certificate").pem();
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("authority.pem"), &authority).expect("written");
        Certificates { authority, issuer: Issuer::new(params, key), folder }
    }

    /// A certificate and its key.
    fn sign(&self, name: &str) -> (String, String) {
        let mut params = CertificateParams::new(["127.0.0.1".to_owned()]).expect("a name");
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().expect("a key");
        (params.signed_by(&key, &self.issuer).expect("a certificate").pem(), key.serialize_pem())
    }

    /// A file of client properties.
    fn client(&self, name: &str, properties: &str) -> PathBuf {
        let path = self.folder.path().join(format!("{name}.properties"));
        let trusted = self.folder.path().join("authority.pem");
        let text = format!("ssl.truststore.type=PEM\nssl.truststore.location={}\n{properties}", trusted.display());
        std::fs::write(&path, text).expect("written");
        path
    }
}

fn scram(user: &str, password: &str) -> String {
    let module = "org.apache.kafka.common.security.scram.ScramLoginModule";
    format!(
        "security.protocol=SASL_SSL\nsasl.mechanism=SCRAM-SHA-512\n\
         sasl.jaas.config={module} required username=\"{user}\" password=\"{password}\";\n"
    )
}

/// What a pipeline needs: writing, reading in a group, and the group's settings.
fn rights(principal: &str) -> Authorizer {
    Authorizer::new()
        .allow(principal, Operation::Read, Resource::topic("jobs"))
        .allow(principal, Operation::Write, Resource::topic("jobs"))
        .allow(principal, Operation::Read, Resource::group("workers"))
        .allow(principal, Operation::AlterConfigs, Resource::group("workers"))
}

/// Administrates, produces and share-consumes with these properties.
fn pipeline(tools: &mut Tools, at: &str, config: &Path) {
    let config = config.to_str().expect("text");
    let mut run = |main: &str, args: &str, expected: &str| {
        let words: Vec<&str> = std::iter::once(main).chain(args.split(' ')).collect();
        let printed = tools.run(&words);
        assert!(printed.code == 0 && printed.text.contains(expected), "{main} {args}: {printed:?}");
        printed.text
    };
    let alter = "--alter --entity-type groups --entity-name workers --add-config share.auto.offset.reset=earliest";
    run(CONFIGS, &format!("--bootstrap-server {at} --command-config {config} {alter}"), "Completed updating config");
    let produce = "--topic jobs --num-records 50 --record-size 100 --throughput -1";
    run(PRODUCER, &format!("{produce} --bootstrap-server {at} --command-config {config}"), "50 records sent");
    let consume = "--topic jobs --group workers --max-messages 50 --timeout-ms 60000";
    let printed = run(CONSUMER, &format!("{consume} --bootstrap-server {at} --command-config {config}"), "50 messages");
    assert_eq!(printed.lines().filter(|line| line.len() == 100).count(), 50, "{printed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn java_tools_produce_and_share_consume_over_tls_and_scram() {
    if !available("java_tools_produce_and_share_consume_over_tls_and_scram") {
        return;
    }
    let certificates = Certificates::new();
    let (chain, key) = certificates.sign("broker");
    let listener = Listener::sasl_ssl("SASL_SSL", chain, key, [Mechanism::ScramSha512]).user("alice", "alice-secret");
    let builder = EmbeddedBroker::builder().transactional_acks(false).topic("jobs", 2);
    let broker = builder.listener(listener).authorizer(rights("User:alice")).start().await.expect("broker");
    let mut tools = Tools::start("4.4.0");
    let at = broker.bootstrap_servers();
    pipeline(&mut tools, &at, &certificates.client("alice", &scram("alice", "alice-secret")));
    let wrong = certificates.client("wrong", &scram("alice", "wrong"));
    let wrong = wrong.to_str().expect("text");
    let words = ["--topic", "jobs", "--num-records", "1", "--record-size", "1", "--throughput", "-1"];
    let words = [&[PRODUCER][..], &words, &["--bootstrap-server", &at, "--command-config", wrong]].concat();
    let refused = tools.run(&words);
    let why =
        "Authentication failed during authentication due to invalid credentials with SASL mechanism SCRAM-SHA-512";
    assert!(refused.text.contains(why), "{refused:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn java_tools_produce_and_share_consume_with_a_certificate() {
    if !available("java_tools_produce_and_share_consume_with_a_certificate") {
        return;
    }
    let certificates = Certificates::new();
    let (chain, key) = certificates.sign("broker");
    let listener = Listener::ssl("SSL", chain, key).client_auth(ClientAuth::Required, &certificates.authority[..]);
    let builder = EmbeddedBroker::builder().transactional_acks(false).topic("jobs", 2);
    let broker = builder.listener(listener).authorizer(rights("User:CN=alice")).start().await.expect("broker");
    let (chain, key) = certificates.sign("alice");
    let file = certificates.folder.path().join("alice.pem");
    std::fs::write(&file, chain + &key).expect("written");
    let keystore = format!("ssl.keystore.type=PEM\nssl.keystore.location={}\n", file.display());
    let config = certificates.client("alice", &format!("security.protocol=SSL\n{keystore}"));
    pipeline(&mut Tools::start("4.4.0"), &broker.bootstrap_servers(), &config);
}
