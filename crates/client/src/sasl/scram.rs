//! SCRAM-SHA-256 and SCRAM-SHA-512 (RFC 5802, RFC 7677): the broker proves that it knows the password, too.

use crate::secret::Secret;
use kafka_share_core::connection::{SaslExchange, SaslStep};
use rsasl::callback::{Context, Request, SessionCallback, SessionData};
use rsasl::prelude::{Mechname, SASLClient, SASLConfig, Session, SessionError, State};
use rsasl::property::{AuthId, Password};
use std::fmt;

/// Rounds of hashing that a broker may ask for: fewer would give the password away, many more would keep the client busy.
const ITERATIONS: std::ops::RangeInclusive<u32> = 4096..=100_000;

struct Credentials {
    user: String,
    password: Secret,
}

impl SessionCallback for Credentials {
    fn callback(
        &self,
        _session: &SessionData,
        _context: &Context<'_>,
        request: &mut Request<'_>,
    ) -> Result<(), SessionError> {
        request.satisfy::<AuthId>(&self.user)?.satisfy::<Password>(self.password.bytes())?;
        Ok(())
    }
}

/// One run.
pub(super) struct Scram {
    session: Session,
    answers: u32,
}

impl fmt::Debug for Scram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scram").field("answers", &self.answers).finish_non_exhaustive()
    }
}

impl Scram {
    /// `mechanism` is `SCRAM-SHA-256` or `SCRAM-SHA-512`.
    pub(super) fn new(mechanism: &str, user: &str, password: &Secret) -> Result<Self, String> {
        let credentials = Credentials { user: user.to_owned(), password: password.clone() };
        let config = SASLConfig::builder().with_default_mechanisms().with_callback(credentials);
        let name = Mechname::parse(mechanism.as_bytes()).map_err(|e| e.to_string())?;
        let session = SASLClient::new(config.map_err(|e| e.to_string())?).start_suggested(&[name]);
        Ok(Scram { session: session.map_err(|e| e.to_string())?, answers: 0 })
    }
}

impl SaslExchange for Scram {
    fn step(&mut self, challenge: Option<&[u8]>) -> Result<SaslStep, String> {
        if let Some(challenge) = challenge {
            self.answers += 1;
            if self.answers == 1 {
                check_iterations(challenge)?;
            }
        }
        let mut message = Vec::new();
        match self.session.step(challenge, &mut message) {
            Ok(State::Running) => Ok(SaslStep::Send(message)),
            Ok(State::Finished(_)) => Ok(SaslStep::Done),
            Err(SessionError::MutualAuthenticationFailed) => {
                Err("the broker's signature is wrong: it does not know the password, and is not who it should be"
                    .into())
            }
            Err(error) => Err(error.to_string()),
        }
    }
}

fn check_iterations(server_first: &[u8]) -> Result<(), String> {
    let text = std::str::from_utf8(server_first).map_err(|_| "the broker's message is no text")?;
    let given = text.split(',').find_map(|part| part.strip_prefix("i="));
    let count: u32 = given.and_then(|n| n.parse().ok()).ok_or("the broker does not say how often to hash")?;
    if !ITERATIONS.contains(&count) {
        let (least, most) = (ITERATIONS.start(), ITERATIONS.end());
        return Err(format!("the broker asks for {count} rounds of hashing; {least} to {most} are acceptable"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of RFC 7677 has a nonce of its own, so that only the form of the first message can be compared.
    #[test]
    fn begins_as_kafka_takes_it_and_refuses_what_it_must() {
        for mechanism in ["SCRAM-SHA-256", "SCRAM-SHA-512"] {
            let start = || {
                let mut scram = Scram::new(mechanism, "us,er", &Secret::new("pencil")).unwrap();
                let SaslStep::Send(first) = scram.step(None).unwrap() else { panic!("no message") };
                let first = String::from_utf8(first).unwrap();
                let nonce = first.strip_prefix("n,,n=us=2Cer,r=").expect("no channel binding").to_owned();
                (scram, nonce)
            };
            for (reply, word) in [
                ("r={}x,s=c2FsdA==,i=1".to_owned(), "rounds"),
                ("r={}x,s=c2FsdA==,i=4000000000".to_owned(), "rounds"),
                ("r=other,s=c2FsdA==,i=4096".to_owned(), "nonce"),
                ("r={}x,s=c2FsdA==".to_owned(), "how often"),
                ("\u{1}".to_owned(), "how often"),
            ] {
                let (mut scram, nonce) = start();
                let error = scram.step(Some(reply.replace("{}", &nonce).as_bytes())).unwrap_err();
                assert!(error.contains(word), "{reply}: {error}");
            }
            let (mut scram, nonce) = start();
            let step = scram.step(Some(format!("r={nonce}x,s=c2FsdA==,i=4096").as_bytes())).unwrap();
            assert!(matches!(step, SaslStep::Send(_)));
            let error = scram.step(Some(b"v=c2lnbmF0dXJl")).unwrap_err();
            assert!(error.contains("signature is wrong"), "{error}");
            assert!(!format!("{scram:?}").contains("pencil"));
        }
    }
}
