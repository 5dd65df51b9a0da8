//! SASL SCRAM-SHA-256 and -512 (RFC 5802, RFC 7677) as Kafka's server has them: no channel binding, extensions ignored.

use super::sasl::Failure;
use super::{Secret, same_bytes};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest as _, Sha256, Sha512};

/// The hash of a mechanism.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Digest {
    Sha256,
    Sha512,
}

impl Digest {
    fn hash(self, data: &[u8]) -> Vec<u8> {
        match self {
            Digest::Sha256 => Sha256::digest(data).to_vec(),
            Digest::Sha512 => Sha512::digest(data).to_vec(),
        }
    }

    fn hmac(self, key: &[u8], data: &[&[u8]]) -> Vec<u8> {
        match self {
            Digest::Sha256 => mac::<Hmac<Sha256>>(key, data),
            Digest::Sha512 => mac::<Hmac<Sha512>>(key, data),
        }
    }

    /// `Hi` of RFC 5802: PBKDF2 with one block.
    fn salted(self, password: &[u8], salt: &[u8], iterations: u32) -> Vec<u8> {
        match self {
            Digest::Sha256 => derive::<Hmac<Sha256>>(password, salt, iterations),
            Digest::Sha512 => derive::<Hmac<Sha512>>(password, salt, iterations),
        }
    }
}

fn keyed<M: Mac + KeyInit>(key: &[u8]) -> Option<M> {
    // HMAC takes keys of any length.
    <M as KeyInit>::new_from_slice(key).ok()
}

fn mac<M: Mac + KeyInit>(key: &[u8], data: &[&[u8]]) -> Vec<u8> {
    let Some(mut mac) = keyed::<M>(key) else { return Vec::new() };
    data.iter().for_each(|part| mac.update(part));
    mac.finalize().into_bytes().to_vec()
}

fn derive<M: Mac + KeyInit + Clone>(password: &[u8], salt: &[u8], iterations: u32) -> Vec<u8> {
    let Some(keyed) = keyed::<M>(password) else { return Vec::new() };
    let step = |data: &[&[u8]]| {
        let mut mac = keyed.clone();
        data.iter().for_each(|part| mac.update(part));
        mac.finalize().into_bytes()
    };
    let mut last = step(&[salt, &1_u32.to_be_bytes()]);
    let mut sum = last.to_vec();
    for _ in 1..iterations {
        last = step(&[&last]);
        sum.iter_mut().zip(last.iter()).for_each(|(sum, byte)| *sum ^= byte);
    }
    sum
}

/// What a server keeps of a password.
#[derive(Debug, Clone)]
pub(crate) struct ScramCredential {
    digest: Digest,
    salt: Vec<u8>,
    iterations: u32,
    stored_key: Secret<Vec<u8>>,
    server_key: Secret<Vec<u8>>,
}

impl ScramCredential {
    pub(crate) fn derive(digest: Digest, password: &str, iterations: u32, salt: &[u8]) -> Self {
        let salted = digest.salted(password.as_bytes(), salt, iterations);
        let client_key = digest.hmac(&salted, &[b"Client Key"]);
        ScramCredential {
            digest,
            salt: salt.to_vec(),
            iterations,
            stored_key: Secret(digest.hash(&client_key)),
            server_key: Secret(digest.hmac(&salted, &[b"Server Key"])),
        }
    }
}

/// An exchange that has seen the client's first message.
#[derive(Debug)]
pub(crate) struct Challenged {
    user: String,
    credential: ScramCredential,
    nonce: String,
    client_first_bare: String,
    server_first: String,
}

/// A client's first message.
struct ClientFirst<'a> {
    authorization: Option<String>,
    user: String,
    nonce: &'a str,
    token_authenticated: bool,
    bare: &'a str,
}

/// A name as SCRAM writes it, with `,` and `=` escaped.
fn unescape(name: &str) -> Option<String> {
    let plain = name.replace("=2C", ",").replace("=3D", "=");
    let escapes = name.matches("=2C").count() + name.matches("=3D").count();
    (!name.is_empty() && name.matches('=').count() == escapes && !name.contains('\0')).then_some(plain)
}

impl<'a> ClientFirst<'a> {
    fn parse(message: &'a [u8]) -> Option<Self> {
        let text = std::str::from_utf8(message).ok()?;
        // No channel binding is offered: `n` is the only flag that Kafka takes.
        let (authorization, bare) = text.strip_prefix("n,")?.split_once(',')?;
        let authorization = match authorization {
            "" => None,
            given => Some(unescape(given.strip_prefix("a=")?)?),
        };
        let mut parts = bare.split(',');
        let mut first = parts.next()?;
        if first.starts_with("m=") {
            first = parts.next()?;
        }
        let user = unescape(first.strip_prefix("n=")?)?;
        let nonce = parts.next()?.strip_prefix("r=")?;
        let printable = |b: u8| matches!(b, 0x21..=0x2b | 0x2d..=0x7e);
        if nonce.is_empty() || !nonce.bytes().all(printable) {
            return None;
        }
        let mut token_authenticated = false;
        for extension in parts {
            let (name, value) = extension.split_once('=')?;
            if name.is_empty() || !name.bytes().all(|b| b.is_ascii_alphabetic()) || value.is_empty() {
                return None;
            }
            token_authenticated |= name == "tokenauth" && value.eq_ignore_ascii_case("true");
        }
        Some(ClientFirst { authorization, user, nonce, token_authenticated, bare })
    }
}

/// Answers the client's first message.
pub(super) fn challenge(
    find: impl FnOnce(&str) -> Option<ScramCredential>,
    message: &[u8],
    server_nonce: &str,
) -> Result<(Challenged, Vec<u8>), Failure> {
    let first = ClientFirst::parse(message).ok_or(Failure::Credentials)?;
    // Delegation tokens are not served here, so none is known.
    let known = if first.token_authenticated { None } else { find(&first.user) };
    let credential = known.ok_or(Failure::Credentials)?;
    if first.authorization.as_ref().is_some_and(|id| *id != first.user) {
        let why = "Authentication failed: Client requested an authorization id that is different from username";
        return Err(Failure::Told(why.to_owned()));
    }
    let nonce = format!("{}{server_nonce}", first.nonce);
    let server_first = format!("r={nonce},s={},i={}", STANDARD.encode(&credential.salt), credential.iterations);
    let answer = server_first.clone().into_bytes();
    let client_first_bare = first.bare.to_owned();
    Ok((Challenged { user: first.user, credential, nonce, client_first_bare, server_first }, answer))
}

impl Challenged {
    /// The user and the server's last message, if the client's proof is right.
    pub(super) fn verify(&self, message: &[u8]) -> Result<(String, Vec<u8>), Failure> {
        self.check(message).ok_or(Failure::Credentials)
    }

    fn check(&self, message: &[u8]) -> Option<(String, Vec<u8>)> {
        let text = std::str::from_utf8(message).ok()?;
        let (without_proof, proof) = text.rsplit_once(",p=")?;
        let mut parts = without_proof.split(',');
        let binding = parts.next()?.strip_prefix("c=")?;
        STANDARD.decode(binding).ok()?;
        if parts.next()?.strip_prefix("r=")? != self.nonce {
            return None;
        }
        let proof = STANDARD.decode(proof).ok()?;
        let ScramCredential { digest, stored_key, server_key, .. } = &self.credential;
        let signed: [&[u8]; 5] =
            [self.client_first_bare.as_bytes(), b",", self.server_first.as_bytes(), b",", without_proof.as_bytes()];
        let signature = digest.hmac(&stored_key.0, &signed);
        if proof.len() != signature.len() {
            return None;
        }
        let client_key: Vec<u8> = proof.iter().zip(&signature).map(|(proof, byte)| proof ^ byte).collect();
        if !same_bytes(&digest.hash(&client_key), &stored_key.0) {
            return None;
        }
        let verifier = STANDARD.encode(digest.hmac(&server_key.0, &signed));
        Some((self.user.clone(), format!("v={verifier}").into_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The exchange that RFC 7677 gives as its example.
    #[test]
    fn the_example_of_the_rfc() {
        let salt = STANDARD.decode("W22ZaJ0SNY7soEsUEjb6gQ==").unwrap();
        let credential = ScramCredential::derive(Digest::Sha256, "pencil", 4096, &salt);
        let first = b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO";
        let find = |name: &str| (name == "user").then(|| credential.clone());
        let (challenged, answer) = challenge(find, first, "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0").unwrap();
        let expected = "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096";
        assert_eq!(answer, expected.as_bytes());
        let last = "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,\
                    p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=";
        let (user, answer) = challenged.verify(last.as_bytes()).unwrap();
        assert_eq!(user, "user");
        assert_eq!(answer, b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=");
        let wrong = last.replace("p=dHzb", "p=dHzc");
        assert!(challenged.verify(wrong.as_bytes()).is_err());
    }

    #[test]
    fn what_is_no_first_message() {
        let good: [&[u8]; 4] = [b"n,,n=a,r=b", b"n,a=a,n=a,r=b", b"n,,n=a=2Cb,r=b,x=y", b"n,,m=z,n=a,r=b"];
        assert!(good.into_iter().all(|message| ClientFirst::parse(message).is_some()));
        let bad: [&[u8]; 9] = [
            b"",
            b"y,,n=a,r=b",
            b"p=tls-unique,,n=a,r=b",
            b"n,,n=,r=b",
            b"n,,n=a=2Zb,r=b",
            b"n,,n=a,r=",
            b"n,,n=a,r=b,x",
            b"n,b=a,n=a,r=b",
            b"n,,n=\xff,r=b",
        ];
        for message in bad {
            assert!(ClientFirst::parse(message).is_none(), "{message:?}");
        }
    }
}
