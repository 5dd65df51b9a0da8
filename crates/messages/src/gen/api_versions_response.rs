//! ApiVersionsResponse (generated from protocol-specs; do not edit).

use crate::{ErrorCode, Message};
use bytes::Bytes;
use kafka_share_wire::{Reader, Result, Str, TaggedFields, Writer};

/// Lists the version range of every RPC, and the features the cluster supports and has finalised.
///
/// Versions 0-5.
#[derive(Debug, Clone, PartialEq)]
pub struct ApiVersionsResponse {
    /// `ErrorCode`
    pub error_code: ErrorCode,
    /// `ApiKeys`
    pub api_keys: Vec<ApiVersion>,
    /// `ThrottleTimeMs` (versions 1-5)
    pub throttle_time_ms: i32,
    /// `SupportedFeatures` (versions 3-5, tag 0)
    pub supported_features: Vec<SupportedFeatureKey>,
    /// `FinalizedFeaturesEpoch` (versions 3-5, tag 1)
    pub finalized_features_epoch: i64,
    /// `FinalizedFeatures` (versions 3-5, tag 2)
    pub finalized_features: Vec<FinalizedFeatureKey>,
    /// `ZkMigrationReady` (versions 3-5, tag 3)
    pub zk_migration_ready: bool,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for ApiVersionsResponse {
    fn default() -> Self {
        Self {
            error_code: ErrorCode::NONE,
            api_keys: Vec::new(),
            throttle_time_ms: 0,
            supported_features: Vec::new(),
            finalized_features_epoch: -1,
            finalized_features: Vec::new(),
            zk_migration_ready: false,
            tagged: TaggedFields::new(),
        }
    }
}

impl ApiVersionsResponse {
    pub(crate) fn read(r: &mut Reader, version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.error_code = r.i16().map(ErrorCode)?;
        this.api_keys = r.array(version >= 3, 6, |r| ApiVersion::read(r, version))?;
        if version >= 1 {
            this.throttle_time_ms = r.i32()?;
        }
        if version >= 3 {
            let unknown = TaggedFields::read(r, |tag, field| {
                match tag {
                    0 => this.supported_features = field.array(true, 6, |r| SupportedFeatureKey::read(r, version))?,
                    1 => this.finalized_features_epoch = field.i64()?,
                    2 => this.finalized_features = field.array(true, 6, |r| FinalizedFeatureKey::read(r, version))?,
                    3 => this.zk_migration_ready = field.bool()?,
                    _ => return Ok(false),
                }
                Ok(true)
            })?;
            this.tagged = unknown;
        }
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, version: i16) -> Result<()> {
        w.i16(self.error_code.0);
        w.array_len(self.api_keys.len(), version >= 3)?;
        for item in &self.api_keys {
            item.write(w, version)?;
        }
        if version >= 1 {
            w.i32(self.throttle_time_ms);
        }
        if version >= 3 {
            let mut known: Vec<(u32, Bytes)> = Vec::new();
            if !self.supported_features.is_empty() {
                let mut field = Writer::new();
                let w = &mut field;
                w.array_len(self.supported_features.len(), true)?;
                for item in &self.supported_features {
                    item.write(w, version)?;
                }
                known.push((0, field.into_bytes()));
            }
            if self.finalized_features_epoch != -1 {
                let mut field = Writer::new();
                let w = &mut field;
                w.i64(self.finalized_features_epoch);
                known.push((1, field.into_bytes()));
            }
            if !self.finalized_features.is_empty() {
                let mut field = Writer::new();
                let w = &mut field;
                w.array_len(self.finalized_features.len(), true)?;
                for item in &self.finalized_features {
                    item.write(w, version)?;
                }
                known.push((2, field.into_bytes()));
            }
            if self.zk_migration_ready {
                let mut field = Writer::new();
                let w = &mut field;
                w.bool(self.zk_migration_ready);
                known.push((3, field.into_bytes()));
            }
            self.tagged.write(w, &known)?;
        }
        Ok(())
    }
}

/// Part of [`ApiVersionsResponse`].
///
/// Versions 0-5.
#[derive(Debug, Clone, PartialEq)]
pub struct ApiVersion {
    /// `ApiKey`
    pub api_key: i16,
    /// `MinVersion`
    pub min_version: i16,
    /// `MaxVersion`
    pub max_version: i16,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for ApiVersion {
    fn default() -> Self {
        Self { api_key: 0, min_version: 0, max_version: 0, tagged: TaggedFields::new() }
    }
}

impl ApiVersion {
    pub(crate) fn read(r: &mut Reader, version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.api_key = r.i16()?;
        this.min_version = r.i16()?;
        this.max_version = r.i16()?;
        if version >= 3 {
            this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        }
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, version: i16) -> Result<()> {
        w.i16(self.api_key);
        w.i16(self.min_version);
        w.i16(self.max_version);
        if version >= 3 {
            self.tagged.write(w, &[])?;
        }
        Ok(())
    }
}

/// Part of [`ApiVersionsResponse`].
///
/// Versions 3-5.
#[derive(Debug, Clone, PartialEq)]
pub struct SupportedFeatureKey {
    /// `Name` (versions 3-5)
    pub name: Str,
    /// `MinVersion` (versions 3-5)
    pub min_version: i16,
    /// `MaxVersion` (versions 3-5)
    pub max_version: i16,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for SupportedFeatureKey {
    fn default() -> Self {
        Self { name: Str::default(), min_version: 0, max_version: 0, tagged: TaggedFields::new() }
    }
}

impl SupportedFeatureKey {
    pub(crate) fn read(r: &mut Reader, _version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.name = r.string(true)?;
        this.min_version = r.i16()?;
        this.max_version = r.i16()?;
        this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, _version: i16) -> Result<()> {
        w.string(&self.name, true)?;
        w.i16(self.min_version);
        w.i16(self.max_version);
        self.tagged.write(w, &[])?;
        Ok(())
    }
}

/// Part of [`ApiVersionsResponse`].
///
/// Versions 3-5.
#[derive(Debug, Clone, PartialEq)]
pub struct FinalizedFeatureKey {
    /// `Name` (versions 3-5)
    pub name: Str,
    /// `MaxVersionLevel` (versions 3-5)
    pub max_version_level: i16,
    /// `MinVersionLevel` (versions 3-5)
    pub min_version_level: i16,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for FinalizedFeatureKey {
    fn default() -> Self {
        Self { name: Str::default(), max_version_level: 0, min_version_level: 0, tagged: TaggedFields::new() }
    }
}

impl FinalizedFeatureKey {
    pub(crate) fn read(r: &mut Reader, _version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.name = r.string(true)?;
        this.max_version_level = r.i16()?;
        this.min_version_level = r.i16()?;
        this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, _version: i16) -> Result<()> {
        w.string(&self.name, true)?;
        w.i16(self.max_version_level);
        w.i16(self.min_version_level);
        self.tagged.write(w, &[])?;
        Ok(())
    }
}

impl Message for ApiVersionsResponse {
    const NAME: &'static str = "ApiVersionsResponse";
    const MIN_VERSION: i16 = 0;
    const MAX_VERSION: i16 = 5;
    const FLEXIBLE_FROM: i16 = 3;

    fn decode(r: &mut Reader, version: i16) -> Result<Self> {
        Self::check_version(version)?;
        Self::read(r, version)
    }

    fn encode(&self, w: &mut Writer, version: i16) -> Result<()> {
        Self::check_version(version)?;
        self.write(w, version)
    }

    fn throttle_time_ms(&self) -> i32 {
        self.throttle_time_ms
    }
}
