//! What one broker speaks: version ranges and features, as its ApiVersions answer says (KIP-511, KIP-584).

use kafka_share_messages::{ApiKey, ApiVersionsResponse, ErrorCode, Request};
use std::collections::BTreeMap;

/// A broker's answer to ApiVersions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ApiVersions {
    ranges: BTreeMap<i16, (i16, i16)>,
    finalized: BTreeMap<String, i16>,
    finalized_epoch: i64,
}

/// A request that broker and client have no version of in common.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the broker offers {name} {offered}, this client speaks versions {min} to {max}")]
pub struct NoCommonVersion {
    /// Name of the request.
    pub name: &'static str,
    /// What the broker said.
    pub offered: String,
    /// Lowest version spoken here.
    pub min: i16,
    /// Highest version spoken here.
    pub max: i16,
}

impl ApiVersions {
    /// From an answer without error.
    #[must_use]
    pub fn from_response(response: &ApiVersionsResponse) -> Self {
        let ranges = response.api_keys.iter().map(|k| (k.api_key, (k.min_version, k.max_version))).collect();
        let finalized = response.finalized_features.iter().map(|f| (f.name.to_string(), f.max_version_level)).collect();
        ApiVersions { ranges, finalized, finalized_epoch: response.finalized_features_epoch }
    }

    /// Highest version of `R` that both sides speak.
    ///
    /// A version that Kafka marks unstable is used where the broker advertises it: brokers do so only when told to.
    ///
    /// # Errors
    /// Where there is none.
    pub fn pick<R: Request>(&self) -> Result<i16, NoCommonVersion> {
        self.pick_as::<R>(R::KEY)
    }

    /// As [`ApiVersions::pick`], for a request whose key differs from its usual one.
    ///
    /// # Errors
    /// Where there is no common version.
    pub fn pick_as<R: Request>(&self, key: ApiKey) -> Result<i16, NoCommonVersion> {
        let offered = self.range(key);
        let top = offered.map(|(min, max)| (min, max.min(self.cap(key)))).and_then(|(min, max)| {
            let top = max.min(R::MAX_VERSION);
            (top >= min.max(R::MIN_VERSION)).then_some(top)
        });
        top.ok_or_else(|| NoCommonVersion {
            name: R::NAME,
            offered: offered.map_or("no version".into(), |(min, max)| format!("versions {min} to {max}")),
            min: R::MIN_VERSION,
            max: R::MAX_VERSION,
        })
    }

    /// Produce from v13 and Fetch from v13 name topics by id; a broker that does not tell ids in Metadata (v10)
    /// cannot be asked by id, whatever it advertises.
    fn cap(&self, key: ApiKey) -> i16 {
        let knows_ids = self.range(ApiKey::METADATA).is_none_or(|(_, max)| max >= 10);
        let by_id = key == ApiKey::PRODUCE || key == ApiKey::FETCH;
        if by_id && !knows_ids { 12 } else { i16::MAX }
    }

    /// Advertised range of a key.
    #[must_use]
    pub fn range(&self, key: ApiKey) -> Option<(i16, i16)> {
        self.ranges.get(&key.0).copied()
    }

    /// All advertised ranges: key, lowest and highest version.
    pub fn ranges(&self) -> impl Iterator<Item = (i16, i16, i16)> + '_ {
        self.ranges.iter().map(|(key, (min, max))| (*key, *min, *max))
    }

    /// Finalised level of a feature; 0 where the cluster has not finalised it.
    #[must_use]
    pub fn feature(&self, name: &str) -> i16 {
        self.finalized.get(name).copied().unwrap_or(0)
    }

    /// Epoch of the finalised features; -1 where unknown.
    #[must_use]
    pub fn features_epoch(&self) -> i64 {
        self.finalized_epoch
    }
}

/// What to do with an ApiVersions answer that carries UNSUPPORTED_VERSION: the version to try next, if any.
///
/// The broker's hint counts only if it is lower than what was tried, so that a broker that keeps hinting at the same
/// version cannot make the client loop.
#[must_use]
pub fn fallback_version(tried: i16, response: &ApiVersionsResponse) -> Option<i16> {
    if response.error_code != ErrorCode::UNSUPPORTED_VERSION || tried == 0 {
        return None;
    }
    let hint = response.api_keys.iter().find(|k| k.api_key == ApiKey::API_VERSIONS.0).map_or(0, |k| k.max_version);
    if hint < tried { Some(hint.max(0)) } else { None }
}
