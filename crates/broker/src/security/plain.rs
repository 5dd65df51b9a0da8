//! SASL PLAIN (RFC 4616) as Kafka's server has it: authorisation id, name and password, between zero bytes.

use super::same_bytes;
use super::sasl::Failure;
use std::collections::HashMap;

/// The name of the user, if the password is right.
pub(super) fn check(users: &HashMap<String, String>, message: &[u8]) -> Result<String, Failure> {
    let text = String::from_utf8_lossy(message);
    let tokens: Vec<&str> = text.split('\0').collect();
    let refused = |why: &str| Err(Failure::Told(why.to_owned()));
    let [authorization, name, password] = tokens[..] else {
        return refused(&format!("Invalid SASL/PLAIN response: expected 3 tokens, got {}", tokens.len()));
    };
    if name.is_empty() {
        return refused("Authentication failed: username not specified");
    }
    if password.is_empty() {
        return refused("Authentication failed: password not specified");
    }
    // One that is not known is refused in the words of a wrong password. How long it takes may tell the password's length.
    let expected = users.get(name);
    let same = same_bytes(expected.map_or("", String::as_str).as_bytes(), password.as_bytes());
    if expected.is_none() || !same {
        return refused("Authentication failed: Invalid username or password");
    }
    if !authorization.is_empty() && authorization != name {
        return refused("Authentication failed: Client requested an authorization id that is different from username");
    }
    Ok(name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_passwords() {
        let users = HashMap::from([("alice".to_owned(), "pw".to_owned())]);
        let ask = |message: &[u8]| check(&users, message).map_err(|failure| format!("{failure:?}"));
        assert_eq!(ask(b"\0alice\0pw").unwrap(), "alice");
        assert_eq!(ask(b"alice\0alice\0pw").unwrap(), "alice");
        for (message, part) in [
            (&b"\0alice\0px"[..], "Invalid username or password"),
            (b"\0bob\0pw", "Invalid username or password"),
            (b"\0\xff\0pw", "Invalid username or password"),
            (b"bob\0alice\0pw", "different from username"),
            (b"\0\0pw", "username not specified"),
            (b"\0alice\0", "password not specified"),
            (b"", "got 1"),
            (b"\0a\0b\0c", "got 4"),
        ] {
            assert!(ask(message).unwrap_err().contains(part), "{message:?}");
        }
    }
}
