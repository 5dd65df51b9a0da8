//! API keys and what is known of each.

use crate::r#gen::APIS;
use std::fmt;

/// The number of an API. Keys of proposals may change, so they are numbers and not variants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ApiKey(pub i16);

/// An API and its versions, as generated from the specs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ApiInfo {
    /// Its key.
    pub key: ApiKey,
    /// Its name, without `Request`.
    pub name: &'static str,
    /// Lowest version.
    pub min_version: i16,
    /// Highest version.
    pub max_version: i16,
    /// First flexible version; `i16::MAX` where there is none.
    pub flexible_from: i16,
    /// Whether Kafka marks the highest version as unstable.
    pub latest_unstable: bool,
}

impl ApiInfo {
    /// All known APIs in key order.
    #[must_use]
    pub fn all() -> &'static [ApiInfo] {
        APIS
    }

    /// Version of the request header that goes with `version` of the body.
    #[must_use]
    pub fn request_header_version(&self, version: i16) -> i16 {
        if version >= self.flexible_from { 2 } else { 1 }
    }

    /// Version of the response header that goes with `version` of the body.
    ///
    /// ApiVersions answers with header 0 always, so that a client that asked in a version unknown to the broker can
    /// read the refusal (KIP-511).
    #[must_use]
    pub fn response_header_version(&self, version: i16) -> i16 {
        i16::from(version >= self.flexible_from && self.key != ApiKey::API_VERSIONS)
    }
}

impl ApiKey {
    /// What is known of it; `None` for keys without a spec.
    #[must_use]
    pub fn info(self) -> Option<&'static ApiInfo> {
        APIS.binary_search_by_key(&self, |info| info.key).ok().map(|i| &APIS[i])
    }

    /// Its name, or `unknown`.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.info().map_or("unknown", |info| info.name)
    }
}

impl fmt::Display for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.info() {
            Some(info) => f.write_str(info.name),
            None => write!(f, "API key {}", self.0),
        }
    }
}
