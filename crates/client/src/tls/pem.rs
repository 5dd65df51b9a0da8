//! Certificates and keys out of PEM, the one store format that needs no Java.

use crate::secret::Secret;
use crate::{Error, ErrorKind, Result};
use pkcs8::EncryptedPrivateKeyInfo;
use rustls::pki_types::pem::{PemObject, SectionKind};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Where PEM comes from.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Source {
    File(PathBuf),
    /// Keys among it, so it is not shown.
    Memory(Secret),
}

/// By what a changed file is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp(Option<(SystemTime, u64)>);

impl Stamp {
    pub(super) fn of(path: &Path) -> Self {
        let data = std::fs::metadata(path).ok();
        Stamp(data.and_then(|d| Some((d.modified().ok()?, d.len()))))
    }
}

impl Source {
    pub(super) fn path(&self) -> Option<&PathBuf> {
        match self {
            Source::File(path) => Some(path),
            Source::Memory(_) => None,
        }
    }

    fn name(&self, setting: &str) -> String {
        match self {
            Source::File(path) => format!("{setting}={}", path.display()),
            Source::Memory(_) => setting.to_owned(),
        }
    }

    fn read(&self, setting: &str) -> Result<Vec<u8>> {
        let bytes = match self {
            Source::File(path) => std::fs::read(path).map_err(|e| fail(format!("{}: {e}", self.name(setting))))?,
            Source::Memory(bytes) => bytes.bytes().to_vec(),
        };
        if let Some(kind) = store_kind(&bytes) {
            return Err(fail(format!("{}: this is a {kind} store; {}", self.name(setting), ADVICE)));
        }
        Ok(bytes)
    }

    /// The certificates, at least one.
    pub(super) fn certificates(&self, setting: &str) -> Result<Vec<CertificateDer<'static>>> {
        let bytes = self.read(setting)?;
        let certificates: std::result::Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
        let certificates = certificates.map_err(|e| fail(format!("{}: no valid PEM: {e}", self.name(setting))))?;
        if certificates.is_empty() {
            let text = format!("{}: there is no certificate in it (-----BEGIN CERTIFICATE-----)", self.name(setting));
            return Err(fail(text));
        }
        Ok(certificates)
    }

    /// The private key, decrypted if need be.
    pub(super) fn key(&self, setting: &str, password: Option<&Secret>) -> Result<PrivateKeyDer<'static>> {
        let bytes = self.read(setting)?;
        let place = self.name(setting);
        if old_encryption(&bytes) {
            return Err(fail(format!("{place}: the key is encrypted in the old way of OpenSSL; {REWRITE}")));
        }
        if let Ok(key) = PrivateKeyDer::from_pem_slice(&bytes) {
            return Ok(key);
        }
        let Some(encrypted) = encrypted_section(&bytes) else {
            let text = format!("{place}: there is no private key in it (-----BEGIN PRIVATE KEY-----)");
            return Err(fail(text));
        };
        let Some(password) = password else {
            return Err(fail(format!("{place}: the key is encrypted; give its password as ssl.key.password")));
        };
        decrypt(&encrypted, password).map_err(|why| fail(format!("{place}: {why}")))
    }
}

/// What to do with a store that is not PEM.
pub(super) const ADVICE: &str = "only PEM is read: turn a JKS store into PKCS12 by `keytool -importkeystore -srckeystore STORE.jks -destkeystore STORE.p12 -deststoretype PKCS12`, PKCS12 into PEM by `openssl pkcs12 -in STORE.p12 -out STORE.pem -nodes`, and set the store's type to PEM";

const REWRITE: &str =
    "write it anew by `openssl pkcs8 -topk8 -v2 aes-256-cbc -in KEY.pem -out NEW.pem`, which asks for the password";

fn fail(text: String) -> Error {
    Error::new(ErrorKind::Config, text)
}

/// The kind of a store by its first bytes.
fn store_kind(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0xFE, 0xED, 0xFE, 0xED, ..] => Some("JKS"),
        [0xCE, 0xCE, 0xCE, 0xCE, ..] => Some("JCEKS"),
        [0x30, 0x80..=0x84, ..] => Some("PKCS12 (or other binary)"),
        _ => None,
    }
}

/// A key whose PEM headers say how its bytes are encrypted, which no standard but OpenSSL's own describes.
fn old_encryption(bytes: &[u8]) -> bool {
    let needle = b"Proc-Type: 4,ENCRYPTED";
    bytes.windows(needle.len()).any(|w| w == needle)
}

fn encrypted_section(bytes: &[u8]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(bytes).ok()?;
    let (begin, end) = ("-----BEGIN ENCRYPTED PRIVATE KEY-----", "-----END ENCRYPTED PRIVATE KEY-----");
    let start = text.find(begin)?;
    let stop = start + text[start..].find(end)? + end.len();
    // Relabelled, as the parser knows only keys that are not encrypted; the content is opaque to it.
    let body = text[start..stop].replace("ENCRYPTED PRIVATE KEY", "PRIVATE KEY");
    let (kind, der) = rustls::pki_types::pem::from_buf(&mut body.as_bytes()).ok()??;
    (kind == SectionKind::PrivateKey).then_some(der)
}

/// PEM that was put on one line, as in properties; parsers want lines.
pub(super) fn with_lines(text: &str) -> String {
    let text = text.trim();
    if text.contains('\n') {
        return text.to_owned();
    }
    // BEGIN and END lines are the odd parts between the dashes, contents the even ones.
    let parts = text.split("-----").map(str::trim).filter(|part| !part.is_empty());
    let line = |part: &str| match part.starts_with("BEGIN ") || part.starts_with("END ") {
        true => format!("-----{part}-----\n"),
        false => part.split_whitespace().map(|word| format!("{word}\n")).collect(),
    };
    parts.map(line).collect()
}

fn decrypt(der: &[u8], password: &Secret) -> std::result::Result<PrivateKeyDer<'static>, String> {
    let info = EncryptedPrivateKeyInfo::try_from(der).map_err(|_| {
        format!(
            "the key is encrypted in a way that is not supported (PBES2 with PBKDF2 or scrypt, and AES, is); {REWRITE}"
        )
    })?;
    let key = info
        .decrypt(password.bytes())
        .map_err(|_| "the key cannot be decrypted: is ssl.key.password right?".to_owned())?;
    Ok(PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.as_bytes().to_vec())))
}
