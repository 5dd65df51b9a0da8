//! What a listener knows of its users: passwords of PLAIN, derived keys of SCRAM, the key of tokens.

use super::scram::{Digest, ScramCredential};
use super::{Listener, Mechanism, OAuthKey, Secret, Secrets};
use std::collections::HashMap;
use std::time::Duration;

/// Ready to check clients against.
#[derive(Debug, Clone, Default)]
pub(crate) struct Credentials {
    pub(crate) mechanisms: Vec<Mechanism>,
    pub(crate) plain: Secret<HashMap<String, String>>,
    pub(crate) scram256: Secret<HashMap<String, ScramCredential>>,
    pub(crate) scram512: Secret<HashMap<String, ScramCredential>>,
    pub(crate) token_key: Option<OAuthKey>,
    pub(crate) max_reauth: Duration,
}

impl Credentials {
    /// Derives all keys, which takes some milliseconds for each user of SCRAM.
    pub(crate) fn new(listener: &Listener, secrets: &mut Secrets) -> Self {
        let mut made = Credentials {
            mechanisms: listener.mechanisms.clone(),
            token_key: listener.token_key.clone(),
            max_reauth: listener.max_reauth,
            ..Default::default()
        };
        for (only, name, password) in &listener.users.0 {
            let wanted = |mechanism| only.is_none_or(|only| only == mechanism) && made.mechanisms.contains(&mechanism);
            let [plain, sha256, sha512] =
                [Mechanism::Plain, Mechanism::ScramSha256, Mechanism::ScramSha512].map(wanted);
            let mut derive = |digest| {
                ScramCredential::derive(digest, password, listener.scram_iterations, &secrets.next().to_be_bytes())
            };
            if sha256 {
                made.scram256.0.insert(name.clone(), derive(Digest::Sha256));
            }
            if sha512 {
                made.scram512.0.insert(name.clone(), derive(Digest::Sha512));
            }
            if plain {
                made.plain.0.insert(name.clone(), password.clone());
            }
        }
        made
    }
}
