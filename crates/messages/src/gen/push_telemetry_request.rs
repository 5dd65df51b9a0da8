//! PushTelemetryRequest (generated from protocol-specs; do not edit).

use crate::{Message, Request};
use bytes::Bytes;
use kafka_share_wire::{Reader, Result, TaggedFields, Uuid, Writer};

/// Delivers one batch of client metrics as OTLP bytes.
///
/// Versions 0.
#[derive(Debug, Clone, PartialEq)]
pub struct PushTelemetryRequest {
    /// `ClientInstanceId`
    pub client_instance_id: Uuid,
    /// `SubscriptionId`
    pub subscription_id: i32,
    /// `Terminating`
    pub terminating: bool,
    /// `CompressionType`
    pub compression_type: i8,
    /// `Metrics`
    pub metrics: Bytes,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for PushTelemetryRequest {
    fn default() -> Self {
        Self {
            client_instance_id: Uuid::ZERO,
            subscription_id: 0,
            terminating: false,
            compression_type: 0,
            metrics: Bytes::new(),
            tagged: TaggedFields::new(),
        }
    }
}

impl PushTelemetryRequest {
    pub(crate) fn read(r: &mut Reader, _version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.client_instance_id = r.uuid()?;
        this.subscription_id = r.i32()?;
        this.terminating = r.bool()?;
        this.compression_type = r.i8()?;
        this.metrics = r.bytes(true)?;
        this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, _version: i16) -> Result<()> {
        w.uuid(self.client_instance_id);
        w.i32(self.subscription_id);
        w.bool(self.terminating);
        w.i8(self.compression_type);
        w.bytes(&self.metrics, true)?;
        self.tagged.write(w, &[])?;
        Ok(())
    }
}

impl Message for PushTelemetryRequest {
    const NAME: &'static str = "PushTelemetryRequest";
    const MIN_VERSION: i16 = 0;
    const MAX_VERSION: i16 = 0;
    const FLEXIBLE_FROM: i16 = 0;

    fn decode(r: &mut Reader, version: i16) -> Result<Self> {
        Self::check_version(version)?;
        Self::read(r, version)
    }

    fn encode(&self, w: &mut Writer, version: i16) -> Result<()> {
        Self::check_version(version)?;
        self.write(w, version)
    }
}

impl Request for PushTelemetryRequest {
    type Response = super::push_telemetry_response::PushTelemetryResponse;
    const KEY: crate::ApiKey = crate::ApiKey(72);
}
