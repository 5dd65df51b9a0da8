//! SaslHandshake (v0-1): the client chooses a mechanism. v0 is followed by tokens without headers.
//!
//! Where there is nothing to authenticate, or a session was begun anew less than a second ago: ILLEGAL_SASL_STATE.

use super::{Outcome, RequestContext};
use crate::cluster::{CloseReason, Cluster};
use crate::security::Handshake;
use kafka_share_messages::{ErrorCode, SaslHandshakeRequest, SaslHandshakeResponse};
use kafka_share_wire::Str;

pub(crate) fn handle(
    cluster: &mut Cluster,
    ctx: &RequestContext,
    request: SaslHandshakeRequest,
) -> Outcome<SaslHandshakeResponse> {
    let Some((auth, known)) = cluster.auth_of(ctx.conn) else { return Outcome::Close(CloseReason::Unknown) };
    let mechanisms = known.mechanisms.iter().map(|mechanism| Str::from_static(mechanism.name())).collect();
    match auth.handshake(known, ctx.now, &request.mechanism, ctx.version) {
        Handshake::Accepted => Outcome::Reply(SaslHandshakeResponse { error_code: ErrorCode::NONE, mechanisms }),
        Handshake::Illegal => {
            let error_code = ErrorCode::ILLEGAL_SASL_STATE;
            Outcome::Reply(SaslHandshakeResponse { error_code, mechanisms: Vec::new() })
        }
        Handshake::Unsupported => {
            let error_code = ErrorCode::UNSUPPORTED_SASL_MECHANISM;
            Outcome::Farewell(SaslHandshakeResponse { error_code, mechanisms })
        }
        Handshake::Silent => Outcome::Close(CloseReason::AuthenticationFailed),
    }
}
