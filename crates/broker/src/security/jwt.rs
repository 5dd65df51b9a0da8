//! Tokens of OAUTHBEARER: JSON web tokens (RFC 7519) in the compact form, checked with a key that does not change.

use super::{NO_CRYPTO, Secret, crypto, same_bytes, subject_public_key};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use rustls::SignatureScheme;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{SubjectPublicKeyInfoDer, pem};
use sha2::Sha256;

/// How tokens are checked. All must have a subject (`sub`, which becomes the principal) and an end (`exp`) that is not
/// over; a beginning (`nbf`) must not lie ahead. Nothing else is looked at: neither issuer nor audience.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OAuthKey(Key);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Key {
    Unsecured,
    Hs256(Secret<Vec<u8>>),
    /// As RFC 8017 writes an RSA key.
    Rs256(Vec<u8>),
}

impl OAuthKey {
    /// Unsigned tokens (`alg` is `none`), which anybody can write: what Kafka has for tests.
    #[must_use]
    pub fn unsecured() -> Self {
        OAuthKey(Key::Unsecured)
    }

    /// Tokens signed with HMAC-SHA-256 and this secret.
    #[must_use]
    pub fn hs256(secret: impl Into<Vec<u8>>) -> Self {
        OAuthKey(Key::Hs256(Secret(secret.into())))
    }

    /// Tokens signed with RSA and SHA-256 (PKCS #1 v1.5); this is the public key as PEM (`PUBLIC KEY`).
    ///
    /// # Errors
    /// What is wrong with the PEM.
    pub fn rs256(public_key_pem: &str) -> Result<Self, String> {
        let found = SubjectPublicKeyInfoDer::from_pem_slice(public_key_pem.as_bytes());
        let key = found.map_err(|error: pem::Error| format!("no public key in the PEM: {error:?}"))?;
        if crypto().is_none() {
            return Err(NO_CRYPTO.into());
        }
        let bits = subject_public_key(&key).ok_or("the public key is malformed")?;
        Ok(OAuthKey(Key::Rs256(bits.to_vec())))
    }

    fn algorithm(&self) -> &'static str {
        match self.0 {
            Key::Unsecured => "none",
            Key::Hs256(_) => "HS256",
            Key::Rs256(_) => "RS256",
        }
    }

    fn signed(&self, message: &[u8], signature: &[u8]) -> bool {
        match &self.0 {
            Key::Unsecured => signature.is_empty(),
            Key::Hs256(secret) => {
                let Ok(mut mac) = <Hmac<Sha256> as KeyInit>::new_from_slice(&secret.0) else { return false };
                mac.update(message);
                same_bytes(&mac.finalize().into_bytes(), signature)
            }
            Key::Rs256(key) => {
                let Some(provider) = crypto() else { return false };
                let known = provider.signature_verification_algorithms.mapping;
                let found = known.iter().find(|(scheme, _)| *scheme == SignatureScheme::RSA_PKCS1_SHA256);
                found
                    .is_some_and(|(_, all)| all.iter().any(|one| one.verify_signature(key, message, signature).is_ok()))
            }
        }
    }

    /// The subject and the end of a token, in milliseconds of wall time; `None` if it does not let anybody in.
    pub(super) fn check(&self, token: &str, now_ms: i64) -> Option<(String, i64)> {
        let (message, signature) = token.rsplit_once('.')?;
        let (header, claims) = message.split_once('.')?;
        let json = |part: &str| -> Option<serde_json::Value> {
            serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).ok()?).ok()
        };
        if json(header)?.get("alg")?.as_str()? != self.algorithm() {
            return None;
        }
        let claims = json(claims)?;
        if !self.signed(message.as_bytes(), &URL_SAFE_NO_PAD.decode(signature).ok()?) {
            return None;
        }
        let millis = |name: &str| claims.get(name).map(|value| value.as_f64().map(|s| (s * 1000.0) as i64));
        let ends = millis("exp")??;
        // One that is there and no number is wrong.
        let begins = millis("nbf").map_or(Some(i64::MIN), |value| value)?;
        let subject = claims.get("sub")?.as_str()?.trim();
        (ends > now_ms && begins <= now_ms && !subject.is_empty()).then(|| (subject.to_owned(), ends))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(json: &str) -> String {
        URL_SAFE_NO_PAD.encode(json)
    }

    fn unsecured(claims: &str) -> String {
        format!("{}.{}.", part(r#"{"alg":"none"}"#), part(claims))
    }

    #[test]
    fn claims() {
        let key = OAuthKey::unsecured();
        let ask = |claims: &str| key.check(&unsecured(claims), 5_000);
        assert_eq!(ask(r#"{"sub":"alice","exp":6.5}"#), Some(("alice".into(), 6_500)));
        assert_eq!(ask(r#"{"sub":"alice","exp":6,"nbf":5}"#), Some(("alice".into(), 6_000)));
        let bad = [
            r#"{"sub":"alice"}"#,
            r#"{"exp":6}"#,
            r#"{"sub":"","exp":6}"#,
            r#"{"sub":7,"exp":6}"#,
            r#"{"sub":"alice","exp":5}"#,
            r#"{"sub":"alice","exp":"6"}"#,
            r#"{"sub":"alice","exp":9,"nbf":6}"#,
            r#"{"sub":"alice","exp":9,"nbf":"1"}"#,
            "[]",
            "",
        ];
        for claims in bad {
            assert_eq!(ask(claims), None, "{claims}");
        }
        assert_eq!(key.check("abc", 0), None);
        assert_eq!(key.check("..", 0), None);
    }

    /// The token that RFC 7515 gives as its first example, which is over since 2011.
    #[test]
    fn signed_with_a_secret() {
        let secret = "AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow";
        let key = OAuthKey::hs256(URL_SAFE_NO_PAD.decode(secret).unwrap());
        let token = "eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9.\
            eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ.\
            dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
        let (message, signature) = token.rsplit_once('.').unwrap();
        let signature = URL_SAFE_NO_PAD.decode(signature).unwrap();
        assert!(key.signed(message.as_bytes(), &signature));
        assert!(!key.signed(b"other", &signature));
        // It has no subject.
        assert_eq!(key.check(token, 0), None);
        assert_eq!(key.check(&unsecured(r#"{"sub":"alice","exp":6}"#), 0), None);
        assert!(!format!("{key:?}").contains("35"), "the secret is not shown: {key:?}");
    }

    /// Made with OpenSSL; the private key is gone.
    #[test]
    fn signed_with_a_key_pair() {
        let pem = "-----BEGIN PUBLIC KEY-----
MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAq724yGkocWNUL9aaZ/MN
tSt93UMk9NXux6XC2VP3b4m8iYuZ4FLZ4v6kJk+jueCegpy5SfWTWX5DQA2IemrJ
o4mrQiH+L0fQjy1gNJdcGMZg94GzK6IUFYHRTYvBjmFkLJPHS5YCyer+6+cXsMk1
IV6na38QEgY+Kj3Q7cWgvd8GoYyJi8k0CVulRB+1EHUKgfvREQRR7UkkVe92gkoh
4xcGc1UG1NhHFHN6K4uwGyH3aqOt6g109qeqKT7Be7+8t+5dBE23mTHCIk1NX4oT
xpTDIZFlySqMKBnHMYT0XBpPAIWAOhkxaA4NzYYBpdd0WrGLLbGJFyRmu9wdTM9L
JwIDAQAB
-----END PUBLIC KEY-----\n";
        let claims = "eyJzdWIiOiJhbGljZSIsImV4cCI6NDEwMjQ0NDgwMH0";
        let signature = "XqFbp9sCG7LZUVvlEmWNyBwPNEHkiw8rcqBHrClewYT5KoGSnyaVUr4BUjbjAnwwDGgu_LAsLLTbHBNdfbhYERD33NGYAXPQmDyU\
            LmAc94wRxpcHb85vAJB5t1NSeZ92Vd9MVkQVMTIRXzpIL2erGH_oGI-rZPLTmQnl4yaDSkxXH8QMFyaMiItIyTWpEWuqrQsLAROL\
            L-S9_4365b4ssv3k5460JgwrrYFqTSn4w9zq__8UqX9nRRszpRzlTG8I2oVUkggdpIsooBFNKUkp_2o9HFgs4VoW7VUgqIJLzaav\
            1KJ0ak49ZRTJD8CxvWgnEH4zbylU2q0OH3yXSrXsNw";
        let key = OAuthKey::rs256(pem).unwrap();
        let token = |claims: &str, signature: &str| format!("eyJhbGciOiJSUzI1NiJ9.{claims}.{signature}");
        assert_eq!(key.check(&token(claims, signature), 0), Some(("alice".into(), 4_102_444_800_000)));
        assert_eq!(key.check(&token(claims, signature), 4_102_444_800_000), None, "it is over");
        let bob = part(r#"{"sub":"bob","exp":4102444800}"#);
        assert_eq!(key.check(&token(&bob, signature), 0), None);
        assert_eq!(key.check(&token(claims, &signature.replacen('X', "Y", 1)), 0), None);
        // Neither no signature nor the public key as a secret will do.
        assert_eq!(key.check(&unsecured(r#"{"sub":"alice","exp":4102444800}"#), 0), None);
        assert!(OAuthKey::rs256("garbage").unwrap_err().contains("no public key"));
    }
}
