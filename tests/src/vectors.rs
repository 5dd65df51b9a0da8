//! Golden byte vectors: lines of `kind key version hex`, from Java's generated classes or worked out by hand.

use std::fmt;
use std::fs;
use std::str::FromStr;

use bytes::Bytes;

use crate::java::{JavaProject, crate_dir};
use crate::specs;

/// Environment variable with the seed of Java's values; 1 if unset.
pub const SEED: &str = "KAFKA_SHARE_ORACLE_SEED";
/// Environment variable with the number of vectors of each message and version; 24 if unset.
pub const COUNT: &str = "KAFKA_SHARE_ORACLE_COUNT";

/// What a vector holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)]
pub enum Kind {
    Request,
    Response,
    RequestHeader,
    ResponseHeader,
}

impl FromStr for Kind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "request" => Ok(Self::Request),
            "response" => Ok(Self::Response),
            "request_header" => Ok(Self::RequestHeader),
            "response_header" => Ok(Self::ResponseHeader),
            other => Err(format!("{other:?} is no kind of message")),
        }
    }
}

/// The bytes of one message or header, without length and, for messages, without header.
#[derive(Clone)]
pub struct Vector {
    /// What it is.
    pub kind: Kind,
    /// API key; -1 for headers.
    pub key: i16,
    /// API version, or header version for headers.
    pub version: i16,
    /// The encoded form.
    pub bytes: Bytes,
    /// Line in its file, from 1.
    pub line: usize,
}

/// Names the vector and shows its first bytes: some are long.
impl fmt::Debug for Vector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let start = &self.bytes[..self.bytes.len().min(200)];
        write!(
            f,
            "line {}: {:?} key {} version {}, {} bytes",
            self.line,
            self.kind,
            self.key,
            self.version,
            self.bytes.len()
        )?;
        start.iter().try_for_each(|b| write!(f, " {b:02x}"))
    }
}

/// Vectors of every message and version of the specs, made by kafka-clients, and the seed they were made from.
#[derive(Debug)]
pub struct JavaVectors {
    /// The vectors.
    pub vectors: Vec<Vector>,
    /// Seed, to be named when a test fails.
    pub seed: u64,
}

/// Lets Java encode its values; [`crate::java::available`] says beforehand whether that is possible.
///
/// # Panics
/// If the Java program cannot be built or fails, or [`SEED`] or [`COUNT`] is not a number.
#[must_use]
pub fn from_java() -> JavaVectors {
    let project = JavaProject::build("oracle");
    let seed: u64 = setting(SEED, 1);
    let count: u32 = setting(COUNT, 24);
    let dir = tempfile::tempdir().expect("a temporary folder");
    let out = dir.path().join("vectors.txt");
    let specs = specs::messages_dir();
    project.run(
        "oracle.Main",
        [out.as_os_str(), seed.to_string().as_ref(), count.to_string().as_ref(), specs.as_os_str()],
    );
    let text = fs::read_to_string(&out).expect("the vectors can be read");
    JavaVectors { vectors: parse(&text), seed }
}

/// The vectors of the drafts, which no released client can encode.
///
/// # Panics
/// If the file cannot be read or parsed.
#[must_use]
pub fn drafts() -> Vec<Vector> {
    let path = crate_dir().join("vectors/drafts.txt");
    parse(&fs::read_to_string(path).expect("vectors/drafts.txt can be read"))
}

fn setting<T: FromStr>(name: &str, default: T) -> T {
    match std::env::var(name) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{name}={text} is no valid number")),
        Err(_) => default,
    }
}

fn parse(text: &str) -> Vec<Vector> {
    let lines = text.lines().enumerate();
    let wanted = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    wanted
        .map(|(index, line)| parse_line(index + 1, line).unwrap_or_else(|e| panic!("line {}: {e}", index + 1)))
        .collect()
}

fn parse_line(line: usize, text: &str) -> Result<Vector, String> {
    let words: Vec<&str> = text.split(' ').collect();
    let [kind, key, version, hex] = words[..] else {
        return Err(format!("{} words instead of 4", words.len()));
    };
    Ok(Vector {
        kind: kind.parse()?,
        key: key.parse().map_err(|e| format!("key {key}: {e}"))?,
        version: version.parse().map_err(|e| format!("version {version}: {e}"))?,
        bytes: if hex == "-" { Bytes::new() } else { unhex(hex)?.into() },
        line,
    })
}

fn unhex(hex: &str) -> Result<Vec<u8>, String> {
    let digit =
        |c: u8| (c as char).to_digit(16).map(|d| d as u8).ok_or_else(|| format!("{:?} is no hex digit", c as char));
    let (pairs, rest) = hex.as_bytes().as_chunks::<2>();
    if !rest.is_empty() {
        return Err("an odd number of hex digits".to_owned());
    }
    pairs.iter().map(|[high, low]| Ok(digit(*high)? << 4 | digit(*low)?)).collect()
}
