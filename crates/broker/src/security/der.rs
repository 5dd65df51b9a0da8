//! Just enough of DER (X.690) to read a certificate's subject and a public key. The input is a peer's.

use std::fmt::Write;

const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const OID: u8 = 0x06;
const BIT_STRING: u8 = 0x03;
const INTEGER: u8 = 0x02;
const EXPLICIT_0: u8 = 0xa0;

/// The values of what was not read yet.
struct Der<'a>(&'a [u8]);

impl<'a> Der<'a> {
    /// The next value: its tag, its content, and all of its bytes.
    fn next(&mut self) -> Option<(u8, &'a [u8], &'a [u8])> {
        let (&tag, rest) = self.0.split_first()?;
        let (&short, rest) = rest.split_first()?;
        let (length, rest) = match short {
            0..=0x7f => (usize::from(short), rest),
            0x81..=0x84 => {
                let (bytes, rest) = rest.split_at_checked(usize::from(short & 0x7f))?;
                (bytes.iter().fold(0, |length, byte| (length << 8) | usize::from(*byte)), rest)
            }
            _ => return None,
        };
        let (content, after) = rest.split_at_checked(length)?;
        let all = &self.0[..self.0.len() - after.len()];
        self.0 = after;
        Some((tag, content, all))
    }

    fn expect(&mut self, wanted: u8) -> Option<&'a [u8]> {
        self.next().filter(|(tag, _, _)| *tag == wanted).map(|(_, content, _)| content)
    }
}

/// A certificate's subject in the form of RFC 2253, which is how Java names a principal.
pub(crate) fn subject_of(certificate: &[u8]) -> Option<String> {
    let mut to_be_signed = Der(Der(Der(certificate).expect(SEQUENCE)?).expect(SEQUENCE)?);
    let (mut tag, _, _) = to_be_signed.next()?;
    if tag == EXPLICIT_0 {
        // The version, which is left out for the first.
        (tag, _, _) = to_be_signed.next()?;
    }
    if tag != INTEGER {
        return None;
    }
    // Signature algorithm, issuer, validity.
    for _ in 0..3 {
        to_be_signed.expect(SEQUENCE)?;
    }
    let mut names = Der(to_be_signed.expect(SEQUENCE)?);
    let mut parts = Vec::new();
    while !names.0.is_empty() {
        let mut set = Der(names.expect(SET)?);
        let mut together = Vec::new();
        while !set.0.is_empty() {
            let mut attribute = Der(set.expect(SEQUENCE)?);
            let oid = attribute.expect(OID)?;
            let (tag, content, all) = attribute.next()?;
            together.push(attribute_text(oid, tag, content, all)?);
        }
        parts.push(together.join("+"));
    }
    parts.reverse();
    Some(parts.join(","))
}

/// Keywords of RFC 2253; other types are written as their numbers.
fn keyword(oid: &[u8]) -> Option<&'static str> {
    Some(match oid {
        [0x55, 4, 3] => "CN",
        [0x55, 4, 6] => "C",
        [0x55, 4, 7] => "L",
        [0x55, 4, 8] => "ST",
        [0x55, 4, 9] => "STREET",
        [0x55, 4, 10] => "O",
        [0x55, 4, 11] => "OU",
        [0x09, 0x92, 0x26, 0x89, 0x93, 0xf2, 0x2c, 0x64, 1, 25] => "DC",
        [0x09, 0x92, 0x26, 0x89, 0x93, 0xf2, 0x2c, 0x64, 1, 1] => "UID",
        _ => return None,
    })
}

fn attribute_text(oid: &[u8], tag: u8, content: &[u8], all: &[u8]) -> Option<String> {
    let text = match tag {
        // UTF8String, PrintableString, IA5String; T61String as most write it.
        0x0c | 0x13 | 0x16 | 0x14 => Some(String::from_utf8_lossy(content).into_owned()),
        // BMPString.
        0x1e => {
            let units = content.chunks_exact(2).map(|pair| u16::from_be_bytes([pair[0], pair[1]]));
            Some(char::decode_utf16(units).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)).collect())
        }
        _ => None,
    };
    Some(match (keyword(oid), text) {
        (Some(keyword), Some(text)) => format!("{keyword}={}", escape(&text)),
        (Some(keyword), None) => format!("{keyword}=#{}", hex(all)),
        (None, _) => format!("{}=#{}", numbers(oid)?, hex(all)),
    })
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn numbers(oid: &[u8]) -> Option<String> {
    let mut arcs: Vec<u64> = Vec::new();
    let mut arc = 0_u64;
    for byte in oid {
        arc = arc.checked_mul(128)? | u64::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            arcs.push(arc);
            arc = 0;
        }
    }
    let first = *arcs.first()?;
    let (top, second) = if first < 80 { (first / 40, first % 40) } else { (2, first - 80) };
    let all = [top, second].into_iter().chain(arcs.into_iter().skip(1));
    Some(all.map(|arc| arc.to_string()).collect::<Vec<_>>().join("."))
}

fn escape(value: &str) -> String {
    let mut text = String::with_capacity(value.len());
    let last = value.chars().count().saturating_sub(1);
    for (at, c) in value.chars().enumerate() {
        let edge_space = c == ' ' && (at == 0 || at == last);
        // Java escapes more than RFC 2253 asks for.
        if edge_space || matches!(c, ',' | '+' | '"' | '\\' | '<' | '>' | ';' | '#' | '=') {
            text.push('\\');
        }
        text.push(c);
    }
    text
}

/// The key itself of a SubjectPublicKeyInfo.
pub(crate) fn subject_public_key(info: &[u8]) -> Option<&[u8]> {
    let mut parts = Der(Der(info).expect(SEQUENCE)?);
    parts.expect(SEQUENCE)?;
    // The first byte says how many bits of the last one count: all.
    parts.expect(BIT_STRING)?.strip_prefix(&[0])
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertificateParams, DnType, KeyPair};

    fn certificate(names: &[(DnType, &str)]) -> Vec<u8> {
        let mut params = CertificateParams::default();
        params.distinguished_name = rcgen::DistinguishedName::new();
        for (kind, value) in names {
            params.distinguished_name.push(kind.clone(), *value);
        }
        params.self_signed(&KeyPair::generate().unwrap()).unwrap().der().to_vec()
    }

    #[test]
    fn subjects() {
        let der = certificate(&[
            (DnType::CountryName, "DE"),
            (DnType::OrganizationName, "Example, Inc."),
            (DnType::CommonName, "alice"),
        ]);
        assert_eq!(subject_of(&der).unwrap(), "CN=alice,O=Example\\, Inc.,C=DE");
        let other = certificate(&[(DnType::CustomDnType(vec![1, 2, 840, 113_549, 1, 9, 1]), "a@b")]);
        assert_eq!(subject_of(&other).unwrap(), "1.2.840.113549.1.9.1=#0c03614062");
        assert_eq!(subject_of(&certificate(&[])).unwrap(), "");
    }

    /// Made with OpenSSL; the name is what `X500Principal.getName` of Java 17 says.
    #[test]
    fn a_subject_is_named_as_java_names_it() {
        let der = "MIIC0TCCAnegAwIBAgIUaMiF6mh722GI+oUE4qH4K4yIAuwwCgYIKoZIzj0EAwIwgbwxEzARBgoJkiaJk/IsZAEZFgNvcmcxCzAJ\
            BgNVBAYTAkRFMQ8wDQYDVQQIDAZCYTtkZW4xEzARBgNVBAcMCiBGcmVpYnVyZyAxETAPBgNVBAkMCE1haW4gIjEiMREwDwYDVQQK\
            DAjDnG7Drzx4PjEeMAoGA1UECwwDYVxiMBAGCgmSJomT8ixkAQEMAnUxMRYwFAYDVQQDDA0jYSMsIGI9YytkICBlMRQwEgYJKoZI\
            hvcNAQkBFgVhQGIuYzAgFw0yNjExMzAyMjIxNTJaGA8yMTA5MDExOTIyMjE1MlowgbwxEzARBgoJkiaJk/IsZAEZFgNvcmcxCzAJ\
            BgNVBAYTAkRFMQ8wDQYDVQQIDAZCYTtkZW4xEzARBgNVBAcMCiBGcmVpYnVyZyAxETAPBgNVBAkMCE1haW4gIjEiMREwDwYDVQQK\
            DAjDnG7Drzx4PjEeMAoGA1UECwwDYVxiMBAGCgmSJomT8ixkAQEMAnUxMRYwFAYDVQQDDA0jYSMsIGI9YytkICBlMRQwEgYJKoZI\
            hvcNAQkBFgVhQGIuYzBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABF5BFk1tlUZ/GqO/2AxFcw7Nrnpoci9Fik2Y812Dh8II1Wd0\
            o1psxHJwFxNVmCVWTJcI0eS0dbM4aH6aWZO7jNujUzBRMB0GA1UdDgQWBBQHnyt98nIVUEFUKDWIn7+2/CnVQjAfBgNVHSMEGDAW\
            gBQHnyt98nIVUEFUKDWIn7+2/CnVQjAPBgNVHRMBAf8EBTADAQH/MAoGCCqGSM49BAMCA0gAMEUCIQDTYtmB/6IS4eqDO7xVlH5t\
            tel6/7QmHbD3/OIB+vkNsgIgURvloZbeYPpZKPYtv/LuWyg+ZGFTuBfvMh3IHfU66xA=";
        let der = base64::Engine::decode(&base64::engine::general_purpose::STANDARD, der).unwrap();
        let java = r#"1.2.840.113549.1.9.1=#16056140622e63,CN=\#a\#\, b\=c\+d  e,OU=a\\b+UID=u1,O=Ünï\<x\>,STREET=Main \"1\",L=\ Freiburg\ ,ST=Ba\;den,C=DE,DC=org"#;
        assert_eq!(subject_of(&der).unwrap(), java);
    }

    #[test]
    fn cut_and_changed_certificates_are_no_fault() {
        let der = certificate(&[(DnType::CommonName, "alice")]);
        for at in 0..der.len() {
            let _ = subject_of(&der[..at]);
            for change in [0, 0x7f, 0x80, 0x84, 0xff] {
                let mut changed = der.clone();
                changed[at] = change;
                let _ = subject_of(&changed);
                let _ = subject_public_key(&changed);
            }
        }
    }

    #[test]
    fn names_are_escaped() {
        assert_eq!(escape(" a,b#\\ "), "\\ a\\,b\\#\\\\\\ ");
        assert_eq!(escape("#x"), "\\#x");
    }
}
