//! A certificate that signs itself, made at the start, for tests and measurements on one machine.

use super::{NO_CRYPTO, SecurityError};
use std::fmt;

/// A key made just now and a certificate for it that nobody else vouches for: `localhost`, 127.0.0.1 and ::1. Clients trust it
/// by its text (`ssl.truststore.certificates`).
///
/// ```
/// use kafka_share_broker::{EmbeddedBroker, Listener, SelfSigned};
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// let own = SelfSigned::new()?;
/// let broker = EmbeddedBroker::builder().also_listen(own.listener("TLS")).start().await?;
/// assert!(own.certificate_pem().starts_with("-----BEGIN CERTIFICATE-----"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct SelfSigned {
    certificate: String,
    key: String,
}

impl fmt::Debug for SelfSigned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SelfSigned").field("certificate", &self.certificate).finish_non_exhaustive()
    }
}

impl SelfSigned {
    /// Makes a key (ECDSA, P-256) and its certificate.
    ///
    /// # Errors
    /// A processor that lacks what the cryptography needs.
    pub fn new() -> Result<Self, SecurityError> {
        let broken =
            |why: &dyn fmt::Display| SecurityError::Tls { listener: "self-signed".into(), why: why.to_string() };
        if super::crypto().is_none() {
            return Err(broken(&NO_CRYPTO));
        }
        make().map_err(|why| broken(&why))
    }

    /// A listener that speaks TLS with it.
    pub fn listener(&self, name: impl Into<String>) -> super::Listener {
        super::Listener::ssl(name, &self.certificate, &self.key)
    }

    /// The certificate, as PEM: what clients are to trust.
    #[must_use]
    pub fn certificate_pem(&self) -> &str {
        &self.certificate
    }

    /// Its private key, as PEM.
    #[must_use]
    pub fn key_pem(&self) -> &str {
        &self.key
    }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn make() -> Result<SelfSigned, String> {
    Err(NO_CRYPTO.into())
}

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
use own_key::make;

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod own_key {
    use super::SelfSigned;
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use graviola::hashing::Sha256;
    use graviola::signing::ecdsa::{P256, SigningKey};
    use rcgen::{CertificateParams, DnType, SerialNumber, SignatureAlgorithm};

    /// Enough for a key or a signature of this curve.
    const ROOM: usize = 256;
    /// Bytes of a point of the curve, not compressed; they end the public key's structure.
    const POINT: usize = 65;

    struct Key {
        key: SigningKey<P256>,
        point: Vec<u8>,
    }

    impl rcgen::PublicKeyData for Key {
        fn der_bytes(&self) -> &[u8] {
            &self.point
        }

        fn algorithm(&self) -> &'static SignatureAlgorithm {
            &rcgen::PKCS_ECDSA_P256_SHA256
        }
    }

    impl rcgen::SigningKey for Key {
        fn sign(&self, message: &[u8]) -> Result<Vec<u8>, rcgen::Error> {
            let mut room = [0; ROOM];
            let signature = self.key.sign_asn1::<Sha256>(&[message], &mut room);
            signature.map(<[u8]>::to_vec).map_err(|_| rcgen::Error::RemoteKeyError)
        }
    }

    pub(super) fn make() -> Result<SelfSigned, String> {
        let text = |error: graviola::Error| format!("{error:?}");
        let key = SigningKey::<P256>::generate().map_err(text)?;
        let (mut public, mut private) = ([0; ROOM], [0; ROOM]);
        let public = key.to_spki_der(&mut public).map_err(text)?;
        let point = public[public.len().saturating_sub(POINT)..].to_vec();
        let private = pem("PRIVATE KEY", key.to_pkcs8_der(&mut private).map_err(text)?);
        let names = ["localhost", "127.0.0.1", "::1"].map(str::to_owned).to_vec();
        let mut params = CertificateParams::new(names).map_err(|error| error.to_string())?;
        params.distinguished_name.push(DnType::CommonName, "localhost");
        let mut serial = [0; 16];
        getrandom::fill(&mut serial).map_err(|error| error.to_string())?;
        serial[0] &= 0x7f;
        params.serial_number = Some(SerialNumber::from_slice(&serial));
        let certificate = params.self_signed(&Key { key, point }).map_err(|error| error.to_string())?;
        Ok(SelfSigned { certificate: pem("CERTIFICATE", certificate.der()), key: private })
    }

    fn pem(what: &str, der: &[u8]) -> String {
        let text = STANDARD.encode(der);
        let lines: Vec<&str> = text.as_bytes().chunks(64).filter_map(|line| std::str::from_utf8(line).ok()).collect();
        format!("-----BEGIN {what}-----\n{}\n-----END {what}-----\n", lines.join("\n"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_another_and_shows_no_key() {
        if crate::security::crypto().is_none() {
            return;
        }
        let (one, other) = (SelfSigned::new().unwrap(), SelfSigned::new().unwrap());
        assert_ne!(one.certificate_pem(), other.certificate_pem());
        assert!(!format!("{one:?}").contains("PRIVATE"));
        assert!(crate::net::acceptor(&one.listener("TLS")).unwrap().is_some());
    }
}
