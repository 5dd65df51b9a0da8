//! What went wrong in TLS, and what to do about it, in words.

use rustls::{AlertDescription, CertificateError, Error};
use std::io;

/// Why another connection would end in the same way; `None` where the error is not of that kind.
pub(crate) fn refusal(error: &io::Error, has_certificate: bool) -> Option<String> {
    let error = error.get_ref()?.downcast_ref::<Error>()?;
    Some(match error {
        Error::InvalidCertificate(why) => format!("the broker's certificate was refused: {}", certificate(why)),
        Error::AlertReceived(alert) => {
            format!("the broker refused the TLS handshake ({alert:?}){}", refused_by_broker(*alert, has_certificate))
        }
        Error::InvalidMessage(why) => format!(
            "the broker does not speak TLS ({why:?}): the listener is PLAINTEXT or SASL_PLAINTEXT; set security.protocol to that, or take a listener that is SSL or SASL_SSL"
        ),
        Error::PeerIncompatible(why) => format!(
            "no common ground with the broker in TLS ({why:?}): compare ssl.enabled.protocols and ssl.cipher.suites of both"
        ),
        other => format!("TLS has failed: {other}"),
    })
}

fn certificate(why: &CertificateError) -> String {
    match why {
        CertificateError::UnknownIssuer => {
            "nobody that is trusted here has signed it; put its CA's certificate where ssl.truststore.location (with ssl.truststore.type=PEM) is".into()
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            format!("it has expired; the broker needs a new one, unless the clock here is wrong ({why})")
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            format!("it is not valid yet; is the clock right, here and where it was made? ({why})")
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => format!(
            "host name mismatch: {why}; connect by a name that is in it, or have that name put in (an IP address needs an entry of its own)"
        ),
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
            format!("it was not made for servers ({why})")
        }
        other => other.to_string(),
    }
}

fn refused_by_broker(alert: AlertDescription, has_certificate: bool) -> &'static str {
    use AlertDescription as A;
    match alert {
        A::CertificateExpired => ": the client's certificate has expired; see ssl.keystore.location",
        A::CertificateRequired | A::BadCertificate | A::NoCertificate if !has_certificate => {
            ": it wants a certificate of the client; set ssl.keystore.location with ssl.keystore.type=PEM"
        }
        A::UnknownCA
        | A::CertificateUnknown
        | A::BadCertificate
        | A::UnsupportedCertificate
        | A::CertificateRevoked
            if has_certificate =>
        {
            ": it does not trust the client's certificate (ssl.keystore.location); is its CA in the broker's trust store?"
        }
        A::HandshakeFailure if !has_certificate => {
            ": it may want a certificate of the client (ssl.keystore.location), or other cipher suites"
        }
        A::ProtocolVersion => ": it takes none of the versions in ssl.enabled.protocols",
        A::UnrecognisedName => ": it knows no host of the name that the client asked for",
        _ => "",
    }
}
