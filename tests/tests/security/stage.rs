//! A real broker with a listener of each kind, and the certificates that it and its clients have.

use kafka_share_tests::kafka::RealKafka;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
    date_time_ymd,
};
use std::path::Path;
use tempfile::TempDir;

/// Listeners by number, as in [`RealKafka::more`].
pub(crate) const SASL: usize = 0;
pub(crate) const MUTUAL: usize = 1;
pub(crate) const OTHER_NAME: usize = 2;
pub(crate) const EXPIRED: usize = 3;
pub(crate) const OPEN_SASL: usize = 4;
pub(crate) const RENEWED: usize = 5;

pub(crate) type Properties = Vec<(&'static str, String)>;

pub(crate) struct Stage {
    pub(crate) kafka: RealKafka,
    dir: TempDir,
}

/// A certificate authority.
struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

impl Authority {
    fn new(name: &str) -> Self {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        params.distinguished_name.push(DnType::CommonName, name);
        let pem = params.self_signed(&key).expect("a certificate").pem();
        Authority { issuer: Issuer::new(params, key), pem }
    }

    /// Key and certificate in one PEM file.
    fn store(&self, path: &Path, common_name: &str, names: &[&str], expired: bool) {
        let key = KeyPair::generate().expect("a key");
        let mut params =
            CertificateParams::new(names.iter().map(ToString::to_string).collect::<Vec<_>>()).expect("names");
        params.distinguished_name.push(DnType::CommonName, common_name);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        if expired {
            params.not_before = date_time_ymd(2019, 1, 1);
            params.not_after = date_time_ymd(2020, 1, 1);
        }
        let certificate = params.signed_by(&key, &self.issuer).expect("a certificate");
        std::fs::write(path, format!("{}{}", key.serialize_pem(), certificate.pem())).expect("a file");
    }
}

const USERS: [&str; 4] = [
    "--scram",
    "SCRAM-SHA-256=[name=alice,password=alice-secret]",
    "--scram",
    "SCRAM-SHA-512=[name=alice,password=alice-secret]",
];

const SECURITY: &str = "org.apache.kafka.common.security";

impl Stage {
    /// `None`: there is no Java, and the test is reported as skipped.
    pub(crate) fn start(test: &str) -> Option<Self> {
        let dir = tempfile::tempdir().expect("a folder");
        let path = |name: &str| dir.path().join(name);
        let ours = Authority::new("ours");
        let here: &[&str] = &["localhost", "127.0.0.1"];
        ours.store(&path("broker.pem"), "broker", here, false);
        ours.store(&path("other.pem"), "other", &["other.test"], false);
        ours.store(&path("expired.pem"), "broker", here, true);
        ours.store(&path("client.pem"), "client", &["client"], false);
        std::fs::write(path("ca.pem"), &ours.pem).expect("a file");
        let others = Authority::new("others");
        others.store(&path("stranger.pem"), "stranger", &["client"], false);
        std::fs::write(path("stranger-ca.pem"), &others.pem).expect("a file");
        let properties = server(dir.path());
        let properties: Vec<&str> = properties.iter().map(String::as_str).collect();
        let kafka = RealKafka::start_with_options(test, "4.4.0", &USERS, &properties)?;
        Some(Stage { kafka, dir })
    }

    /// Where a client finds a file.
    pub(crate) fn file(&self, name: &str) -> String {
        self.dir.path().join(name).display().to_string()
    }

    fn at(&self, listener: usize, protocol: &str) -> Properties {
        let server = format!("localhost:{}", self.kafka.more(listener));
        vec![("bootstrap.servers", server), ("security.protocol", protocol.to_owned())]
    }

    /// A client of TLS that trusts the authority.
    pub(crate) fn tls(&self, listener: usize) -> Properties {
        let mut all = self.at(listener, "SSL");
        all.push(("ssl.truststore.type", "PEM".to_owned()));
        all.push(("ssl.truststore.location", self.file("ca.pem")));
        all
    }

    /// One that authenticates itself by a mechanism.
    pub(crate) fn sasl(&self, listener: usize, mechanism: &str, options: &str) -> Properties {
        let module = match mechanism {
            "PLAIN" => "plain.PlainLoginModule",
            "OAUTHBEARER" => "oauthbearer.OAuthBearerLoginModule",
            _ => "scram.ScramLoginModule",
        };
        let mut all = self.tls(listener);
        all.retain(|(name, _)| *name != "security.protocol");
        let protocol = if listener == OPEN_SASL { "SASL_PLAINTEXT" } else { "SASL_SSL" };
        all.push(("security.protocol", protocol.to_owned()));
        all.push(("sasl.mechanism", mechanism.to_owned()));
        all.push(("sasl.jaas.config", format!("{SECURITY}.{module} required {options};")));
        all
    }
}

fn server(dir: &Path) -> Vec<String> {
    let listeners = ["SECURE", "MUTUAL", "OTHER", "EXPIRED", "OPEN", "RENEWED"]
        .iter()
        .enumerate()
        .fold(String::new(), |all, (n, name)| format!("{all},{name}://localhost:{{more{n}}}"));
    let file = |name: &str| dir.join(name).display().to_string();
    let mut all = vec![
        format!("listeners=PLAINTEXT://127.0.0.1:{{port}},CONTROLLER://127.0.0.1:{{controller}}{listeners}"),
        format!("advertised.listeners=PLAINTEXT://127.0.0.1:{{port}}{listeners}"),
        "inter.broker.listener.name=PLAINTEXT".into(),
        "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SECURE:SASL_SSL,MUTUAL:SSL,OTHER:SSL,EXPIRED:SSL,OPEN:SASL_PLAINTEXT,RENEWED:SASL_SSL".into(),
        "ssl.keystore.type=PEM".into(),
        format!("ssl.keystore.location={}", file("broker.pem")),
        "ssl.truststore.type=PEM".into(),
        format!("ssl.truststore.location={}", file("ca.pem")),
        "listener.name.mutual.ssl.client.auth=required".into(),
        "listener.name.other.ssl.keystore.type=PEM".into(),
        format!("listener.name.other.ssl.keystore.location={}", file("other.pem")),
        "listener.name.expired.ssl.keystore.type=PEM".into(),
        format!("listener.name.expired.ssl.keystore.location={}", file("expired.pem")),
    ];
    for listener in ["secure", "open", "renewed"] {
        let name = format!("listener.name.{listener}");
        all.extend([
            format!("{name}.sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER"),
            format!("{name}.plain.sasl.jaas.config={SECURITY}.plain.PlainLoginModule required user_alice=\"alice-secret\";"),
            format!("{name}.scram-sha-256.sasl.jaas.config={SECURITY}.scram.ScramLoginModule required;"),
            format!("{name}.scram-sha-512.sasl.jaas.config={SECURITY}.scram.ScramLoginModule required;"),
            format!("{name}.oauthbearer.sasl.jaas.config={SECURITY}.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub=\"broker\";"),
            format!("{name}.oauthbearer.sasl.server.callback.handler.class={SECURITY}.oauthbearer.internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler"),
        ]);
    }
    for mechanism in ["plain", "scram-sha-256", "scram-sha-512", "oauthbearer"] {
        all.push(format!("listener.name.renewed.{mechanism}.connections.max.reauth.ms=1000"));
    }
    all
}
