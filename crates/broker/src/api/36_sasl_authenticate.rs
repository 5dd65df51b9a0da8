//! SaslAuthenticate (v0-2): one token of the exchange. From v1 on the answer tells how long the session lasts (KIP-368).
//!
//! A failure is answered with SASL_AUTHENTICATION_FAILED and a sentence, and then the connection is closed.

use super::{Outcome, RequestContext};
use crate::cluster::{CloseReason, Cluster};
use crate::security::Failure;
use bytes::Bytes;
use kafka_share_messages::{ErrorCode, SaslAuthenticateRequest, SaslAuthenticateResponse};
use kafka_share_wire::Str;

pub(crate) fn handle(
    cluster: &mut Cluster,
    ctx: &RequestContext,
    request: SaslAuthenticateRequest,
) -> Outcome<SaslAuthenticateResponse> {
    match cluster.authenticate(ctx.now, ctx.conn, &request.auth_bytes) {
        Some(Ok(progress)) => Outcome::Reply(SaslAuthenticateResponse {
            // Kafka says nothing in an empty string rather than by its absence.
            error_message: Some(Str::from_static("")),
            auth_bytes: Bytes::from(progress.token),
            session_lifetime_ms: progress.lifetime_ms,
            ..Default::default()
        }),
        Some(Err(Failure::Told(why))) => {
            tracing::debug!(conn = ctx.conn.0, why, "authentication failed");
            Outcome::Farewell(SaslAuthenticateResponse {
                error_code: ErrorCode::SASL_AUTHENTICATION_FAILED,
                error_message: Some(Str::from(why)),
                ..Default::default()
            })
        }
        Some(Err(Failure::Credentials | Failure::Silent(_))) => Outcome::Close(CloseReason::AuthenticationFailed),
        None => {
            let why = "SaslAuthenticate request received after successful authentication";
            Outcome::Reply(SaslAuthenticateResponse {
                error_code: ErrorCode::ILLEGAL_SASL_STATE,
                error_message: Some(Str::from_static(why)),
                ..Default::default()
            })
        }
    }
}
