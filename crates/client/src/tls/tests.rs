//! Settings of TLS: what is taken, what is refused and with which advice, and certificates that change.

use super::*;
use rcgen::{CertifiedKey, generate_simple_self_signed};

fn pair() -> (String, String) {
    let CertifiedKey { cert, signing_key } = generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    (cert.pem(), signing_key.serialize_pem())
}

fn by_name(pairs: &[(&str, &str)]) -> Result<TlsConfig> {
    let mut config = TlsConfig::new();
    for (name, value) in pairs {
        assert!(config.set(name, value)?, "{name}");
    }
    Ok(config)
}

fn refused(pairs: &[(&str, &str)]) -> String {
    let error = by_name(pairs).and_then(|config| Connector::new(config).map(drop)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
    error.to_string()
}

#[test]
fn stores_come_from_files_and_from_values() {
    let (certificate, key) = pair();
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str, text: &str| {
        let path = dir.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let store = path("store.pem", &format!("{key}{certificate}"));
    let roots = path("ca.pem", &certificate);
    let config = by_name(&[
        ("ssl.truststore.type", "PEM"),
        ("ssl.truststore.location", &roots),
        ("ssl.keystore.type", "pem"),
        ("ssl.keystore.location", &store),
        ("ssl.enabled.protocols", "TLSv1.2,TLSv1.3"),
        ("ssl.protocol", "TLSv1.3"),
        ("ssl.endpoint.identification.algorithm", ""),
        ("ssl.cipher.suites", "TLS_AES_256_GCM_SHA384"),
    ]);
    let connector = Connector::new(config.unwrap()).unwrap();
    assert!(connector.has_certificate());
    let loaded = connector.current();
    assert!(loaded.alpn_protocols.is_empty() && loaded.enable_sni);
    assert_eq!(loaded.crypto_provider().cipher_suites.len(), 1);
    // On one line, as a properties file has it.
    let line = |pem: &str| pem.trim().replace('\n', " ");
    let config = by_name(&[
        ("ssl.truststore.certificates", &line(&certificate)),
        ("ssl.keystore.certificate.chain", &line(&certificate)),
        ("ssl.keystore.key", &line(&key)),
    ]);
    let config = config.unwrap();
    assert!(!format!("{config:?}").contains("PRIVATE"), "{config:?}");
    Connector::new(config).unwrap();
    Connector::new(TlsConfig::new().root_certificates(&certificate).client_certificate(&certificate, &key)).unwrap();
}

#[test]
fn what_is_of_no_use_is_refused_with_advice() {
    let (certificate, key) = pair();
    let dir = tempfile::tempdir().unwrap();
    let jks = dir.path().join("s.jks");
    std::fs::write(&jks, [0xFE, 0xED, 0xFE, 0xED, 0, 0, 0, 2]).unwrap();
    let empty = dir.path().join("empty.pem");
    std::fs::write(&empty, "nothing").unwrap();
    let (jks, empty) = (jks.display().to_string(), empty.display().to_string());
    let roots = ("ssl.truststore.certificates", certificate.as_str());
    type Case<'a> = (&'a [(&'a str, &'a str)], &'a [&'a str]);
    let cases: &[Case<'_>] = &[
        (&[("ssl.truststore.type", "JKS")], &["ssl.truststore.type=JKS", "keytool", "openssl pkcs12", "PEM"]),
        (&[("ssl.keystore.type", "PKCS12")], &["ssl.keystore.type=PKCS12", "openssl pkcs12"]),
        (&[("ssl.truststore.location", &jks)], &["this is a JKS store", "keytool"]),
        (&[("ssl.truststore.location", "/not/there.pem")], &["ssl.truststore=/not/there.pem", "No such file"]),
        (&[("ssl.truststore.location", &empty)], &["no certificate in it"]),
        (&[("ssl.truststore.location", &empty), roots], &["both given"]),
        (&[("ssl.truststore.location", "")], &["ssl.truststore.location: it is empty"]),
        (&[("ssl.truststore.certificates", " ")], &["ssl.truststore.certificates: it is empty"]),
        (&[("ssl.truststore.password", "hunter2")], &["PEM stores have no password"]),
        (&[roots, ("ssl.keystore.key", &key)], &["without ssl.keystore.certificate.chain"]),
        (&[roots, ("ssl.keystore.location", &empty), ("ssl.keystore.key", &key)], &["leave out ssl.keystore.key"]),
        (&[("ssl.endpoint.identification.algorithm", "ldaps")], &["ssl.endpoint.identification.algorithm=ldaps"]),
        (&[("ssl.enabled.protocols", "TLSv1.1")], &["older versions are not supported"]),
        (&[("ssl.enabled.protocols", "TLSv1.4")], &["ssl.enabled.protocols=TLSv1.4"]),
        (&[("ssl.protocol", "SSLv3")], &["ssl.protocol=SSLv3"]),
        (&[roots, ("ssl.cipher.suites", "TLS_RSA_WITH_RC4_128_MD5")], &["names none", "TLS_AES_128_GCM_SHA256"]),
        (&[("ssl.engine.factory.class", "a.B")], &["TlsConfig::rustls_config"]),
    ];
    for (pairs, words) in cases {
        let text = refused(pairs);
        assert!(words.iter().all(|w| text.contains(w)) && !text.contains("hunter2"), "{pairs:?}: {text}");
    }
}

/// Made by `openssl pkcs8 -topk8 -v2 aes-256-cbc -passout pass:secret` from a new P-256 key.
const ENCRYPTED: &str = include_str!("encrypted_key.pem");

#[test]
fn encrypted_keys_are_opened_with_their_password() {
    let source = Source::Memory(Secret::new(ENCRYPTED));
    let key = |password: Option<&str>| source.key("ssl.keystore", password.map(Secret::new).as_ref());
    assert!(matches!(key(Some("secret")), Ok(rustls::pki_types::PrivateKeyDer::Pkcs8(_))));
    assert!(key(None).unwrap_err().to_string().contains("ssl.key.password"));
    let wrong = key(Some("hunter2")).unwrap_err().to_string();
    assert!(wrong.contains("is ssl.key.password right?") && !wrong.contains("hunter2"), "{wrong}");
    let old = "-----BEGIN EC PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00\n\nAAAA\n-----END EC PRIVATE KEY-----\n";
    let text = Source::Memory(Secret::new(old)).key("ssl.keystore", None).unwrap_err().to_string();
    assert!(text.contains("openssl pkcs8 -topk8"), "{text}");
}

#[test]
fn certificates_that_change_are_read_again_and_bad_ones_are_not_taken() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("ca.pem");
    std::fs::write(&path, pair().0).unwrap();
    let connector = Connector::new(TlsConfig::new().root_certificates_file(&path)).unwrap();
    let first = connector.current();
    assert!(Arc::ptr_eq(&first, &connector.current()));
    // Half of it, as while it is being written.
    std::fs::write(&path, "-----BEGIN CERT").unwrap();
    assert!(Arc::ptr_eq(&first, &connector.current()));
    std::fs::write(&path, format!("{}{}", pair().0, pair().0)).unwrap();
    let second = connector.current();
    assert!(!Arc::ptr_eq(&first, &second) && Arc::ptr_eq(&second, &connector.current()));
}
