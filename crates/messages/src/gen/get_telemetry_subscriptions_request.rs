//! GetTelemetrySubscriptionsRequest (generated from protocol-specs; do not edit).

use crate::{Message, Request};
use kafka_share_wire::{Reader, Result, TaggedFields, Uuid, Writer};

/// Asks which client metrics the cluster wants, and how often.
///
/// Versions 0.
#[derive(Debug, Clone, PartialEq)]
pub struct GetTelemetrySubscriptionsRequest {
    /// `ClientInstanceId`
    pub client_instance_id: Uuid,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for GetTelemetrySubscriptionsRequest {
    fn default() -> Self {
        Self { client_instance_id: Uuid::ZERO, tagged: TaggedFields::new() }
    }
}

impl GetTelemetrySubscriptionsRequest {
    pub(crate) fn read(r: &mut Reader, _version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.client_instance_id = r.uuid()?;
        this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, _version: i16) -> Result<()> {
        w.uuid(self.client_instance_id);
        self.tagged.write(w, &[])?;
        Ok(())
    }
}

impl Message for GetTelemetrySubscriptionsRequest {
    const NAME: &'static str = "GetTelemetrySubscriptionsRequest";
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

impl Request for GetTelemetrySubscriptionsRequest {
    type Response = super::get_telemetry_subscriptions_response::GetTelemetrySubscriptionsResponse;
    const KEY: crate::ApiKey = crate::ApiKey(71);
}
