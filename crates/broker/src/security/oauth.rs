//! SASL OAUTHBEARER (RFC 7628) as Kafka's server has it: a token, or an error as JSON that the client confirms.

use super::OAuthKey;
use super::sasl::Failure;

/// What the client is told of a token that is refused.
pub(super) const INVALID_TOKEN: &str = r#"{"status":"invalid_token"}"#;

/// What a client's first message comes to.
#[derive(Debug)]
pub(super) enum Verdict {
    /// Who the client is, and until when, in milliseconds of wall time.
    Known { name: String, until_ms: i64 },
    /// The token is not good; the client hears of it and has to confirm.
    Refused,
}

/// Reads and checks the client's first message.
pub(super) fn check(key: &OAuthKey, message: &[u8], now_ms: i64) -> Result<Verdict, Failure> {
    let (authorization, auth) = parse(message).ok_or(Failure::Credentials)?;
    let scheme_end = auth.find(' ').ok_or(Failure::Credentials)?;
    let (scheme, token) = (&auth[..scheme_end], auth[scheme_end..].trim_start_matches(' '));
    let word = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    let body = token.trim_end_matches('=');
    let in_token = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'~' | b'+' | b'/' | b'.');
    if !word(scheme) || body.is_empty() || !body.bytes().all(in_token) {
        return Err(Failure::Credentials);
    }
    if !scheme.eq_ignore_ascii_case("bearer") {
        // Kafka trips over it and says nothing.
        return Err(Failure::Silent("the scheme of the token is not Bearer"));
    }
    let Some((name, until_ms)) = key.check(token, now_ms) else { return Ok(Verdict::Refused) };
    match authorization.filter(|id| *id != name) {
        None => Ok(Verdict::Known { name, until_ms }),
        Some(other) => Err(Failure::Told(format!(
            "Authentication failed: Client requested an authorization id ({other}) that is different from the token's \
             principal name ({name})"
        ))),
    }
}

/// The authorisation id and the value of `auth`.
fn parse(message: &[u8]) -> Option<(Option<&str>, &str)> {
    let text = std::str::from_utf8(message).ok()?;
    let (header, pairs) = text.strip_prefix("n,")?.split_once(",\u{1}")?;
    let authorization = match header {
        "" => None,
        given => Some(given.strip_prefix("a=").filter(|id| !id.is_empty())?),
    };
    let mut auth = None;
    for pair in pairs.strip_suffix('\u{1}')?.split_terminator('\u{1}') {
        let (name, value) = pair.split_once('=')?;
        let in_value = |b: u8| matches!(b, b' '..=b'~' | b'\t' | b'\r' | b'\n');
        if name.is_empty() || !name.bytes().all(|b| b.is_ascii_alphabetic()) || !value.bytes().all(in_value) {
            return None;
        }
        if name == "auth" {
            auth = Some(value);
        }
    }
    Some((authorization, auth?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_messages() {
        let good = b"n,a=alice,\x01auth=Bearer abc.def\x01traceId=1\x01\x01";
        assert_eq!(parse(good), Some((Some("alice"), "Bearer abc.def")));
        assert_eq!(parse(b"n,,\x01auth=Bearer x\x01\x01"), Some((None, "Bearer x")));
        let bad: [&[u8]; 6] = [
            b"xyz",
            b"n,,\x01a=b\x01\x01",
            b"n,,\x01auth\x01\x01",
            b"n,a=,\x01auth=x\x01\x01",
            b"y,,\x01auth=x\x01\x01",
            b"n,,auth=x",
        ];
        for message in bad {
            assert_eq!(parse(message), None, "{message:?}");
        }
    }
}
