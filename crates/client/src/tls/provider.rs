//! The crypto provider of TLS: one that is handed in, the process's, that of a cargo feature, or graviola.

use crate::{Error, ErrorKind, Result};
use rustls::crypto::CryptoProvider;
use std::sync::Arc;

/// The provider to use. One that is given comes first, then what the process has installed as rustls's default.
///
/// # Errors
/// Where there is none that this CPU can run.
pub(super) fn choose(given: Option<&Arc<CryptoProvider>>) -> Result<Arc<CryptoProvider>> {
    match given.cloned().or_else(|| CryptoProvider::get_default().cloned()) {
        Some(provider) => Ok(provider),
        None => built_in().map(Arc::new),
    }
}

/// A cargo feature is turned on by who wants it, so it comes before the default.
#[cfg(feature = "aws-lc-rs")]
#[expect(clippy::unnecessary_wraps, reason = "without the feature it may fail")]
fn built_in() -> Result<CryptoProvider> {
    Ok(rustls::crypto::aws_lc_rs::default_provider())
}

#[cfg(all(feature = "ring", not(feature = "aws-lc-rs")))]
#[expect(clippy::unnecessary_wraps, reason = "without the feature it may fail")]
fn built_in() -> Result<CryptoProvider> {
    Ok(rustls::crypto::ring::default_provider())
}

#[cfg(all(not(feature = "ring"), not(feature = "aws-lc-rs"), any(target_arch = "x86_64", target_arch = "aarch64")))]
fn built_in() -> Result<CryptoProvider> {
    let missing: Vec<&str> = cpu_features().into_iter().filter(|(_, there)| !there).map(|(name, _)| name).collect();
    // Asked now: graviola itself would panic in the first handshake.
    if missing.is_empty() { Ok(rustls_graviola::default_provider()) } else { Err(no_provider(&missing.join(", "))) }
}

#[cfg(all(
    not(feature = "ring"),
    not(feature = "aws-lc-rs"),
    not(any(target_arch = "x86_64", target_arch = "aarch64"))
))]
fn built_in() -> Result<CryptoProvider> {
    Err(no_provider("an x86-64 or 64-bit ARM CPU"))
}

/// What graviola needs on this kind of CPU.
#[cfg(target_arch = "x86_64")]
#[cfg_attr(any(feature = "ring", feature = "aws-lc-rs"), allow(dead_code))]
fn cpu_features() -> Vec<(&'static str, bool)> {
    use std::arch::is_x86_feature_detected as has;
    vec![
        ("AES", has!("aes")),
        ("PCLMULQDQ", has!("pclmulqdq")),
        ("BMI1", has!("bmi1")),
        ("BMI2", has!("bmi2")),
        ("ADX", has!("adx")),
        ("AVX", has!("avx")),
        ("AVX2", has!("avx2")),
    ]
}

#[cfg(target_arch = "aarch64")]
#[cfg_attr(any(feature = "ring", feature = "aws-lc-rs"), allow(dead_code))]
fn cpu_features() -> Vec<(&'static str, bool)> {
    use std::arch::is_aarch64_feature_detected as has;
    vec![("NEON", has!("neon")), ("AES", has!("aes")), ("PMULL", has!("pmull")), ("SHA2", has!("sha2"))]
}

#[cfg_attr(any(feature = "ring", feature = "aws-lc-rs"), allow(dead_code))]
fn no_provider(missing: &str) -> Error {
    let text = format!(
        "TLS needs a crypto provider: graviola, the default, cannot run here for lack of {missing}; build kafka-share with the cargo feature `ring` or `aws-lc-rs` (they compile C), or hand a provider to TlsConfig::crypto_provider"
    );
    Error::new(ErrorKind::Config, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_provider_the_features_are_named() {
        let text = no_provider("AVX2, ADX").to_string();
        assert!(text.contains("AVX2, ADX") && text.contains("`ring`") && text.contains("`aws-lc-rs`"), "{text}");
    }

    #[test]
    fn a_provider_that_is_handed_in_is_taken() {
        #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
        {
            let given = Arc::new(rustls_graviola::default_provider());
            assert!(Arc::ptr_eq(&choose(Some(&given)).unwrap(), &given));
            assert!(!cpu_features().is_empty());
        }
    }
}
