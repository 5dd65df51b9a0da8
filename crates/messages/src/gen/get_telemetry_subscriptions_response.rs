//! GetTelemetrySubscriptionsResponse (generated from protocol-specs; do not edit).

use crate::{ErrorCode, Message};
use kafka_share_wire::{Reader, Result, Str, TaggedFields, Uuid, Writer};

/// Names the metrics wanted, the interval and the accepted compressions.
///
/// Versions 0.
#[derive(Debug, Clone, PartialEq)]
pub struct GetTelemetrySubscriptionsResponse {
    /// `ThrottleTimeMs`
    pub throttle_time_ms: i32,
    /// `ErrorCode`
    pub error_code: ErrorCode,
    /// `ClientInstanceId`
    pub client_instance_id: Uuid,
    /// `SubscriptionId`
    pub subscription_id: i32,
    /// `AcceptedCompressionTypes`
    pub accepted_compression_types: Vec<i8>,
    /// `PushIntervalMs`
    pub push_interval_ms: i32,
    /// `TelemetryMaxBytes`
    pub telemetry_max_bytes: i32,
    /// `DeltaTemporality`
    pub delta_temporality: bool,
    /// `RequestedMetrics`
    pub requested_metrics: Vec<Str>,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for GetTelemetrySubscriptionsResponse {
    fn default() -> Self {
        Self {
            throttle_time_ms: 0,
            error_code: ErrorCode::NONE,
            client_instance_id: Uuid::ZERO,
            subscription_id: 0,
            accepted_compression_types: Vec::new(),
            push_interval_ms: 0,
            telemetry_max_bytes: 0,
            delta_temporality: false,
            requested_metrics: Vec::new(),
            tagged: TaggedFields::new(),
        }
    }
}

impl GetTelemetrySubscriptionsResponse {
    pub(crate) fn read(r: &mut Reader, _version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.throttle_time_ms = r.i32()?;
        this.error_code = r.i16().map(ErrorCode)?;
        this.client_instance_id = r.uuid()?;
        this.subscription_id = r.i32()?;
        this.accepted_compression_types = r.array(true, 1, |r| r.i8())?;
        this.push_interval_ms = r.i32()?;
        this.telemetry_max_bytes = r.i32()?;
        this.delta_temporality = r.bool()?;
        this.requested_metrics = r.array(true, 1, |r| r.string(true))?;
        this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, _version: i16) -> Result<()> {
        w.i32(self.throttle_time_ms);
        w.i16(self.error_code.0);
        w.uuid(self.client_instance_id);
        w.i32(self.subscription_id);
        w.array_len(self.accepted_compression_types.len(), true)?;
        for item in &self.accepted_compression_types {
            w.i8(*item);
        }
        w.i32(self.push_interval_ms);
        w.i32(self.telemetry_max_bytes);
        w.bool(self.delta_temporality);
        w.array_len(self.requested_metrics.len(), true)?;
        for item in &self.requested_metrics {
            w.string(item, true)?;
        }
        self.tagged.write(w, &[])?;
        Ok(())
    }
}

impl Message for GetTelemetrySubscriptionsResponse {
    const NAME: &'static str = "GetTelemetrySubscriptionsResponse";
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

    fn throttle_time_ms(&self) -> i32 {
        self.throttle_time_ms
    }
}
