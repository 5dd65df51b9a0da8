//! TLS of a listener: certificates and keys from PEM, and who a client's certificate is of.

use crate::security::{ClientAuth, Listener, SecurityError, TlsFiles, subject_of};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem};
use rustls::server::{WebPkiClientVerifier, danger::ClientCertVerifier};
use rustls::{RootCertStore, ServerConfig};
use std::sync::Arc;
use tokio_rustls::TlsAcceptor;

/// How a listener's connections become encrypted; `None` where they do not.
pub(crate) fn acceptor(listener: &Listener) -> Result<Option<TlsAcceptor>, SecurityError> {
    if !listener.protocol.has_tls() {
        return Ok(None);
    }
    let TlsFiles { chain, key, .. } = &listener.tls;
    let broken =
        |why: &dyn std::fmt::Display| SecurityError::Tls { listener: listener.name.clone(), why: why.to_string() };
    let provider = Arc::new(crate::security::crypto().ok_or_else(|| broken(&crate::security::NO_CRYPTO))?);
    let in_pem = |what, why| SecurityError::Pem { listener: listener.name.clone(), what, why };
    let chain = certificates(chain).map_err(|why| in_pem("the certificate chain", why))?;
    let key = private_key(&key.0).map_err(|why| in_pem("the private key", why))?;
    let builder = ServerConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| broken(&error))?;
    let builder = match client_verifier(listener, provider)? {
        Some(verifier) => builder.with_client_cert_verifier(verifier),
        None => builder.with_no_client_auth(),
    };
    let config = builder.with_single_cert(chain, key).map_err(|error| broken(&error))?;
    Ok(Some(TlsAcceptor::from(Arc::new(config))))
}

fn client_verifier(
    listener: &Listener,
    provider: Arc<rustls::crypto::CryptoProvider>,
) -> Result<Option<Arc<dyn ClientCertVerifier>>, SecurityError> {
    let TlsFiles { client_auth, client_ca, .. } = &listener.tls;
    if *client_auth == ClientAuth::None {
        return Ok(None);
    }
    let what = "the authorities of client certificates";
    let in_pem = |why| SecurityError::Pem { listener: listener.name.clone(), what, why };
    let broken = |why: String| SecurityError::Tls { listener: listener.name.clone(), why };
    let mut roots = RootCertStore::empty();
    for certificate in certificates(client_ca).map_err(in_pem)? {
        roots.add(certificate).map_err(|error| broken(format!("{what}: {error}")))?;
    }
    let builder = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
    let builder = if *client_auth == ClientAuth::Requested { builder.allow_unauthenticated() } else { builder };
    builder.build().map(Some).map_err(|error| broken(format!("{what}: {error}")))
}

fn certificates(pem: &str) -> Result<Vec<CertificateDer<'static>>, String> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem.as_bytes()).collect();
    match found {
        Ok(list) if list.is_empty() => Err("there is no certificate in the PEM".into()),
        Ok(list) => Ok(list),
        Err(error) => Err(format!("the PEM is malformed: {error}")),
    }
}

fn private_key(pem: &str) -> Result<PrivateKeyDer<'static>, String> {
    match PrivateKeyDer::from_pem_slice(pem.as_bytes()) {
        Ok(key) => Ok(key),
        Err(_) if pem.contains("ENCRYPTED") => {
            Err("the key is encrypted, which is not read here; decrypt it with `openssl pkcs8 -in KEY -out PLAIN`"
                .into())
        }
        Err(pem::Error::NoItemsFound) => Err("there is no private key in the PEM".into()),
        // What is wrong may show a part of the key.
        Err(_) => Err("the PEM is malformed".into()),
    }
}

/// The principal of a client that has shown this certificate; who has shown none has none. One that cannot be read does not
/// make its client anonymous: what that may do is not meant for it.
pub(super) fn principal(certificates: Option<&[CertificateDer<'_>]>) -> Result<Option<String>, &'static str> {
    let Some(own) = certificates.and_then(<[_]>::first) else { return Ok(None) };
    let subject = subject_of(own).ok_or("the subject of the client's certificate cannot be read")?;
    Ok(Some(format!("User:{subject}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_that_cannot_be_read_makes_nobody() {
        assert_eq!(principal(None), Ok(None));
        assert_eq!(principal(Some(&[])), Ok(None));
        assert!(principal(Some(&[CertificateDer::from(vec![0x30, 1, 0])])).is_err());
    }
}
