//! The connection machine against scripted brokers.

use super::*;
use kafka_share_messages::{ApiKey, MetadataRequest, MetadataResponse, api_versions_response::ApiVersion};

pub(super) fn config() -> ConnectionConfig {
    ConnectionConfig {
        client_id: Str::from_static("test"),
        max_frame: 64 << 20,
        max_in_flight: 2,
        max_queued: 4,
        handshake_timeout: Duration::from_secs(5),
        max_idle: Duration::from_secs(60),
        sasl: None,
    }
}

pub(super) fn drain(connection: &mut Connection) -> Vec<Output> {
    std::iter::from_fn(|| connection.poll_output()).collect()
}

fn versions_frame(version: i16, error: ErrorCode, max: i16) -> Vec<u8> {
    let row = |key: ApiKey, min, max| ApiVersion {
        api_key: key.0,
        min_version: min,
        max_version: max,
        ..ApiVersion::default()
    };
    let response = ApiVersionsResponse {
        error_code: error,
        api_keys: vec![row(ApiKey::API_VERSIONS, 0, max), row(ApiKey::METADATA, 0, 13)],
        ..ApiVersionsResponse::default()
    };
    frame::encode_response(ApiKey::API_VERSIONS, &response, version, HANDSHAKE_ID).unwrap().to_vec()
}

pub(super) fn receive(connection: &mut Connection, now: Instant, bytes: &[u8]) {
    connection.buffer().extend_from_slice(bytes);
    connection.handle_received(now);
}

fn ready(now: Instant) -> Connection {
    let mut connection = Connection::new(config(), now);
    receive(&mut connection, now, &versions_frame(5, ErrorCode::NONE, 5));
    assert!(drain(&mut connection).iter().any(|o| matches!(o, Output::Ready(_))));
    connection
}

pub(super) fn call(id: i32, deadline: Instant) -> Call {
    let frame = frame::encode_request(&MetadataRequest::default(), 13, id, &Str::from_static("t")).unwrap();
    Call { correlation_id: id, frame, deadline, answered: true }
}

pub(super) fn answer(id: i32) -> Vec<u8> {
    frame::encode_response(ApiKey::METADATA, &MetadataResponse::default(), 13, id).unwrap().to_vec()
}

#[test]
fn falls_back_once_to_the_hinted_version() {
    let now = Instant::now();
    let mut connection = Connection::new(config(), now);
    drain(&mut connection);
    receive(&mut connection, now, &versions_frame(0, ErrorCode::UNSUPPORTED_VERSION, 3));
    assert!(matches!(drain(&mut connection)[..], [Output::Transmit(_)]));
    receive(&mut connection, now, &versions_frame(3, ErrorCode::NONE, 3));
    assert!(matches!(&drain(&mut connection)[..], [Output::Ready(v)] if v.range(ApiKey::METADATA) == Some((0, 13))));
}

#[test]
fn r098_negotiation_never_loops() {
    let now = Instant::now();
    let mut connection = Connection::new(config(), now);
    drain(&mut connection);
    receive(&mut connection, now, &versions_frame(0, ErrorCode::UNSUPPORTED_VERSION, 9));
    assert!(
        matches!(&drain(&mut connection)[..], [Output::Close(why)] if why.reason().contains("UNSUPPORTED_VERSION"))
    );
    let mut connection = Connection::new(config(), now);
    drain(&mut connection);
    receive(&mut connection, now, &versions_frame(5, ErrorCode::INVALID_REQUEST, 5));
    assert!(matches!(&drain(&mut connection)[..], [Output::Close(why)] if why.reason().contains("INVALID_REQUEST")));
}

#[test]
fn answers_find_their_calls_in_any_order_and_strangers_close() {
    let now = Instant::now();
    let mut connection = ready(now);
    let later = now + Duration::from_secs(1);
    for id in 1..=3 {
        connection.handle_call(now, call(id, later));
    }
    assert_eq!(drain(&mut connection).len(), 2, "in-flight limit");
    receive(&mut connection, now, &[answer(2), answer(1)].concat());
    let outputs = drain(&mut connection);
    assert!(matches!(outputs[..], [Output::Done(2, Ok(_)), Output::Transmit(_), Output::Done(1, Ok(_))]));
    receive(&mut connection, now, &answer(77));
    let outputs = drain(&mut connection);
    assert!(matches!(&outputs[..], [Output::Done(3, Err(CallError::Unanswered(_))), Output::Close(_)]));
}

#[test]
fn a_dropped_caller_does_not_shift_answers() {
    let now = Instant::now();
    let mut connection = ready(now);
    let later = now + Duration::from_secs(1);
    connection.handle_call(now, call(1, later));
    connection.handle_call(now, call(2, later));
    connection.handle_call(now, call(3, later));
    drain(&mut connection);
    connection.handle_abandon(1);
    connection.handle_abandon(3);
    receive(&mut connection, now, &[answer(1), answer(2)].concat());
    assert!(matches!(drain(&mut connection)[..], [Output::Done(2, Ok(_))]));
    assert!(!connection.is_closed());
}

#[test]
fn deadlines_say_whether_the_request_was_written() {
    let now = Instant::now();
    let mut connection = ready(now);
    let soon = now + Duration::from_millis(10);
    for id in 1..=3 {
        connection.handle_call(now, call(id, soon));
    }
    drain(&mut connection);
    assert_eq!(connection.next_deadline(), Some(soon));
    connection.handle_timeout(soon);
    let outputs = drain(&mut connection);
    let sent: Vec<(i32, bool)> = outputs
        .iter()
        .filter_map(|o| match o {
            Output::Done(id, Err(CallError::TimedOut { sent })) => Some((*id, *sent)),
            _ => None,
        })
        .collect();
    assert_eq!(sent, [(3, false), (1, true), (2, true)]);
    assert!(connection.is_closed());
}

#[test]
fn r110_throttle_holds_back_the_next_request() {
    let now = Instant::now();
    let mut connection = ready(now);
    connection.handle_throttle(now, Duration::from_millis(300));
    connection.handle_call(now, call(1, now + Duration::from_secs(5)));
    assert!(drain(&mut connection).is_empty());
    assert_eq!(connection.next_deadline(), Some(now + Duration::from_millis(300)));
    connection.handle_timeout(now + Duration::from_millis(299));
    assert!(drain(&mut connection).is_empty());
    connection.handle_timeout(now + Duration::from_millis(300));
    assert!(matches!(drain(&mut connection)[..], [Output::Transmit(_)]));
}

#[test]
fn r109_end_inside_a_frame_is_a_disconnect_like_any_other() {
    let now = Instant::now();
    let whole = answer(1);
    for cut in [0, 2, 4, whole.len() / 2] {
        let mut connection = ready(now);
        connection.handle_call(now, call(1, now + Duration::from_secs(1)));
        drain(&mut connection);
        receive(&mut connection, now, &whole[..cut]);
        connection.handle_closed("connection closed by the broker");
        let outputs = drain(&mut connection);
        assert!(matches!(&outputs[..], [Output::Done(1, Err(CallError::Unanswered(_))), Output::Close(_)]));
    }
}

#[test]
fn idle_connections_close_and_busy_ones_do_not() {
    let now = Instant::now();
    let mut connection = ready(now);
    let idle = now + Duration::from_secs(60);
    assert_eq!(connection.next_deadline(), Some(idle));
    connection.handle_call(now, call(1, now + Duration::from_secs(300)));
    drain(&mut connection);
    connection.handle_timeout(idle);
    assert!(!connection.is_closed());
    receive(&mut connection, idle, &answer(1));
    connection.handle_timeout(idle + Duration::from_secs(60));
    assert!(connection.is_closed());
}
