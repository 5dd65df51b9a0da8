//! Who may connect and what they may do: listeners with TLS and SASL, and access control lists.

mod acl;
mod credentials;
mod der;
mod jwt;
mod listener;
mod oauth;
mod plain;
mod sasl;
mod scram;
mod secrets;
mod self_signed;

pub(crate) use acl::CLUSTER;
pub(crate) use acl::ResourceKind;
pub use acl::{Authorizer, Operation, Resource};
pub(crate) use credentials::Credentials;
pub(crate) use der::{subject_of, subject_public_key};
pub use jwt::OAuthKey;
pub use listener::{ClientAuth, Listener, Mechanism, SecurityError, SecurityProtocol};
pub(crate) use listener::{Secret, TlsFiles};
pub(crate) use sasl::{Auth, Failure, Gate, Handshake, Progress};
pub(crate) use secrets::{KEY_BYTES, Secrets};
pub use self_signed::SelfSigned;

use kafka_share_wire::Str;
use rustls::crypto::CryptoProvider;

/// Who a connection is that has proved nothing.
pub(crate) const ANONYMOUS: Str = Str::from_static("User:ANONYMOUS");

/// Why TLS and signed tokens cannot be had on this machine.
pub(crate) const NO_CRYPTO: &str = "the processor lacks what the cryptography here needs (x86-64 with AES, AVX2, BMI and ADX, or ARM with AES and SHA-2)";

/// The cryptography of TLS and RSA, where the processor has what it needs; without that, it would panic.
pub(crate) fn crypto() -> Option<CryptoProvider> {
    #[cfg(target_arch = "x86_64")]
    let has = std::arch::is_x86_feature_detected!("aes")
        && std::arch::is_x86_feature_detected!("pclmulqdq")
        && std::arch::is_x86_feature_detected!("bmi1")
        && std::arch::is_x86_feature_detected!("bmi2")
        && std::arch::is_x86_feature_detected!("adx")
        && std::arch::is_x86_feature_detected!("avx2");
    #[cfg(target_arch = "aarch64")]
    let has = std::arch::is_aarch64_feature_detected!("neon")
        && std::arch::is_aarch64_feature_detected!("aes")
        && std::arch::is_aarch64_feature_detected!("pmull")
        && std::arch::is_aarch64_feature_detected!("sha2");
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    return has.then(rustls_graviola::default_provider);
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    None
}

/// Equal or not, in a time that tells nothing of where the difference is.
fn same_bytes(left: &[u8], right: &[u8]) -> bool {
    left.len() == right.len() && left.iter().zip(right).fold(0, |all, (l, r)| all | (l ^ r)) == 0
}
