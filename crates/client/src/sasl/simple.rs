//! Mechanisms of one message: PLAIN (RFC 4616) and OAUTHBEARER (RFC 7628).

use super::token::OAuthToken;
use crate::secret::Secret;
use kafka_share_core::connection::{SaslExchange, SaslStep};
use std::fmt;

/// Name and password, as they are.
#[derive(Debug)]
pub(super) struct Plain {
    pub(super) user: String,
    pub(super) password: Secret,
}

impl SaslExchange for Plain {
    fn step(&mut self, challenge: Option<&[u8]>) -> Result<SaslStep, String> {
        match challenge {
            None => Ok(SaslStep::Send([b"\0", self.user.as_bytes(), b"\0", self.password.bytes()].concat())),
            // An answer without an error code is a yes, whatever is in it.
            Some(_) => Ok(SaslStep::Done),
        }
    }
}

/// A token. A broker that refuses it says why, and wants an empty message before it says so in Kafka's way.
pub(super) struct Bearer {
    token: OAuthToken,
    refused: bool,
}

impl Bearer {
    pub(super) fn new(token: OAuthToken) -> Self {
        Bearer { token, refused: false }
    }
}

impl fmt::Debug for Bearer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Bearer([hidden])")
    }
}

impl SaslExchange for Bearer {
    fn step(&mut self, challenge: Option<&[u8]>) -> Result<SaslStep, String> {
        match challenge {
            None => {
                let mut message = b"n,,\x01auth=Bearer ".to_vec();
                message.extend_from_slice(self.token.value());
                for (name, value) in self.token.extensions() {
                    message.extend_from_slice(format!("\x01{name}={value}").as_bytes());
                }
                message.extend_from_slice(b"\x01\x01");
                Ok(SaslStep::Send(message))
            }
            Some([]) if !self.refused => Ok(SaslStep::Done),
            Some(_) if !self.refused => {
                self.refused = true;
                Ok(SaslStep::Send(b"\x01".to_vec()))
            }
            Some(_) => Err("the broker refused the token, and did not say so in its last answer".into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_those_of_the_standards() {
        let mut plain = Plain { user: "alice".into(), password: Secret::new("se cret") };
        assert_eq!(plain.step(None), Ok(SaslStep::Send(b"\0alice\0se cret".to_vec())));
        assert_eq!(plain.step(Some(b"")), Ok(SaslStep::Done));
        assert!(!format!("{plain:?}").contains("se cret"));
        let token = OAuthToken::new("a.b.c").extension("traceId", "7");
        let mut bearer = Bearer::new(token.clone());
        let sent = b"n,,\x01auth=Bearer a.b.c\x01traceId=7\x01\x01".to_vec();
        assert_eq!(bearer.step(None), Ok(SaslStep::Send(sent)));
        assert_eq!(bearer.step(Some(b"")), Ok(SaslStep::Done));
        let mut refused = Bearer::new(token);
        refused.step(None).unwrap();
        assert_eq!(refused.step(Some(b"{\"status\":\"invalid_token\"}")), Ok(SaslStep::Send(b"\x01".to_vec())));
        assert!(refused.step(Some(b"")).is_err());
    }
}
