//! Authentication of a connection: before calls, beside calls, and refused.

use super::*;
use kafka_share_messages::{ApiKey, SaslAuthenticateResponse, SaslHandshakeResponse};
use tests::{answer, call, config, drain, receive};

/// Sends `hello`, and is done when it hears `welcome`.
#[derive(Debug)]
struct Polite;

impl SaslExchange for Polite {
    fn step(&mut self, challenge: Option<&[u8]>) -> Result<SaslStep, String> {
        match challenge {
            None => Ok(SaslStep::Send(b"hello".to_vec())),
            Some(b"welcome") => Ok(SaslStep::Done),
            Some(b"again") => Ok(SaslStep::Send(b"hello".to_vec())),
            Some(_) => Err("that is not polite".into()),
        }
    }
}

fn versions(keys: &[(ApiKey, i16)]) -> Vec<u8> {
    let row = |(key, max): &(ApiKey, i16)| kafka_share_messages::api_versions_response::ApiVersion {
        api_key: key.0,
        max_version: *max,
        ..Default::default()
    };
    let response = ApiVersionsResponse { api_keys: keys.iter().map(row).collect(), ..ApiVersionsResponse::default() };
    frame::encode_response(ApiKey::API_VERSIONS, &response, ApiVersionsRequest::MAX_VERSION, 0).unwrap().to_vec()
}

const KEYS: [(ApiKey, i16); 3] = [(ApiKey::SASL_HANDSHAKE, 1), (ApiKey::SASL_AUTHENTICATE, 2), (ApiKey::METADATA, 13)];

fn handshake(error_code: ErrorCode, mechanisms: &[&str]) -> Vec<u8> {
    let mechanisms = mechanisms.iter().map(|m| Str::from(*m)).collect();
    let response = SaslHandshakeResponse { error_code, mechanisms };
    frame::encode_response(ApiKey::SASL_HANDSHAKE, &response, 1, 0).unwrap().to_vec()
}

fn authenticated(bytes: &'static [u8], lifetime: i64) -> Vec<u8> {
    let response = SaslAuthenticateResponse {
        auth_bytes: Bytes::from_static(bytes),
        session_lifetime_ms: lifetime,
        ..SaslAuthenticateResponse::default()
    };
    frame::encode_response(ApiKey::SASL_AUTHENTICATE, &response, 2, 0).unwrap().to_vec()
}

fn refused(message: &str) -> Vec<u8> {
    let response = SaslAuthenticateResponse {
        error_code: ErrorCode::SASL_AUTHENTICATION_FAILED,
        error_message: Some(Str::from(message)),
        ..SaslAuthenticateResponse::default()
    };
    frame::encode_response(ApiKey::SASL_AUTHENTICATE, &response, 2, 0).unwrap().to_vec()
}

fn start(now: Instant, mechanism: &'static str) -> Connection {
    let sasl = Some(SaslConfig { mechanism: Str::from_static(mechanism), seed: 7 });
    let mut connection = Connection::new(ConnectionConfig { sasl, ..config() }, now);
    drain(&mut connection);
    connection
}

/// API key of the frames that go out.
fn sent(outputs: &[Output]) -> Vec<ApiKey> {
    let frames = outputs.iter().filter_map(|o| match o {
        Output::Transmit(frame) => Some(frame.to_vec()),
        _ => None,
    });
    frames.map(|bytes| ApiKey(i16::from_be_bytes([bytes[4], bytes[5]]))).collect()
}

/// Authenticated, with so much time.
fn ready(now: Instant, lifetime: i64) -> Connection {
    let mut connection = start(now, "POLITE");
    receive(&mut connection, now, &versions(&KEYS));
    assert!(matches!(drain(&mut connection)[..], [Output::Authenticate]));
    connection.handle_credentials(now, Ok(Box::new(Polite)));
    assert_eq!(sent(&drain(&mut connection)), [ApiKey::SASL_HANDSHAKE]);
    receive(&mut connection, now, &handshake(ErrorCode::NONE, &["POLITE"]));
    assert_eq!(sent(&drain(&mut connection)), [ApiKey::SASL_AUTHENTICATE]);
    receive(&mut connection, now, &authenticated(b"welcome", lifetime));
    assert!(matches!(drain(&mut connection)[..], [Output::Ready(_)]));
    connection
}

fn ending(connection: &mut Connection) -> Ending {
    let last = drain(connection).into_iter().find_map(|o| match o {
        Output::Close(ending) => Some(ending),
        _ => None,
    });
    last.expect("the end")
}

#[test]
fn no_call_goes_out_before_authentication() {
    let now = Instant::now();
    let mut connection = start(now, "POLITE");
    connection.handle_call(now, call(1, now + Duration::from_secs(60)));
    receive(&mut connection, now, &versions(&KEYS));
    connection.handle_credentials(now, Ok(Box::new(Polite)));
    receive(&mut connection, now, &handshake(ErrorCode::NONE, &[]));
    receive(&mut connection, now, &authenticated(b"again", 0));
    let before = sent(&drain(&mut connection));
    assert_eq!(before, [ApiKey::SASL_HANDSHAKE, ApiKey::SASL_AUTHENTICATE, ApiKey::SASL_AUTHENTICATE]);
    receive(&mut connection, now, &authenticated(b"welcome", 0));
    let outputs = drain(&mut connection);
    assert!(matches!(outputs[0], Output::Ready(_)));
    assert_eq!(sent(&outputs), [ApiKey::METADATA]);
}

#[test]
fn refusals_say_what_to_do_and_that_no_retry_helps() {
    let now = Instant::now();
    type Step = fn(&mut Connection, Instant);
    let steps: [(&str, Step); 7] = [
        ("set security.protocol to PLAINTEXT or SSL", |c, now| receive(c, now, &versions(&KEYS[2..]))),
        ("SaslHandshake version 0 only", |c, now| {
            receive(c, now, &versions(&[(ApiKey::SASL_HANDSHAKE, 0), (ApiKey::SASL_AUTHENTICATE, 2)]));
        }),
        ("the broker offers PLAIN, OAUTHBEARER on this listener", |c, now| {
            receive(c, now, &versions(&KEYS));
            c.handle_credentials(now, Ok(Box::new(Polite)));
            receive(c, now, &handshake(ErrorCode::UNSUPPORTED_SASL_MECHANISM, &["PLAIN", "OAUTHBEARER"]));
        }),
        ("asks for no authentication", |c, now| {
            receive(c, now, &versions(&KEYS));
            c.handle_credentials(now, Ok(Box::new(Polite)));
            receive(c, now, &handshake(ErrorCode::ILLEGAL_SASL_STATE, &[]));
        }),
        ("Invalid username or password; check the user name and the password", |c, now| {
            receive(c, now, &versions(&KEYS));
            c.handle_credentials(now, Ok(Box::new(Polite)));
            receive(c, now, &handshake(ErrorCode::NONE, &[]));
            receive(c, now, &refused("Invalid username or password"));
        }),
        ("that is not polite", |c, now| {
            receive(c, now, &versions(&KEYS));
            c.handle_credentials(now, Ok(Box::new(Polite)));
            receive(c, now, &handshake(ErrorCode::NONE, &[]));
            receive(c, now, &authenticated(b"grr", 0));
        }),
        ("comes to no end", |c, now| {
            receive(c, now, &versions(&KEYS));
            c.handle_credentials(now, Ok(Box::new(Polite)));
            receive(c, now, &handshake(ErrorCode::NONE, &[]));
            for _ in 0..20 {
                receive(c, now, &authenticated(b"again", 0));
            }
        }),
    ];
    for (words, step) in steps {
        let mut connection = start(now, "POLITE");
        step(&mut connection, now);
        let Ending::Refused(why) = ending(&mut connection) else { panic!("{words}: lost") };
        assert!(why.contains(words) && why.contains("POLITE"), "{words}: {why}");
    }
    let mut connection = start(now, "POLITE");
    receive(&mut connection, now, &versions(&KEYS));
    connection.handle_credentials(now, Ok(Box::new(Polite)));
    connection.handle_timeout(now + Duration::from_secs(10));
    assert!(matches!(ending(&mut connection), Ending::Lost(why) if why.contains("POLITE did not end in time")));
}

#[test]
fn r090_renewal_comes_behind_calls_in_flight_and_holds_the_others_in_order() {
    let now = Instant::now();
    let mut connection = ready(now, 2000);
    let later = now + Duration::from_secs(30);
    connection.handle_call(now, call(1, later));
    connection.handle_call(now, call(2, later));
    drain(&mut connection);
    let due = now + Duration::from_millis(1900);
    for id in 3..=4 {
        connection.handle_call(due, call(id, later));
    }
    assert!(matches!(drain(&mut connection)[..], [Output::Authenticate]), "the broker answers none of them before");
    connection.handle_credentials(due, Ok(Box::new(Polite)));
    assert_eq!(sent(&drain(&mut connection)), [ApiKey::SASL_HANDSHAKE]);
    receive(&mut connection, due, &answer(1));
    assert!(matches!(drain(&mut connection)[..], [Output::Done(1, Ok(_))]), "no other may go out now");
    receive(&mut connection, due, &[answer(2), handshake(ErrorCode::NONE, &[])].concat());
    let outputs = drain(&mut connection);
    assert!(matches!(outputs[0], Output::Done(2, Ok(_))));
    assert_eq!(sent(&outputs), [ApiKey::SASL_AUTHENTICATE]);
    receive(&mut connection, due, &authenticated(b"welcome", 2000));
    assert_eq!(sent(&drain(&mut connection)), [ApiKey::METADATA, ApiKey::METADATA]);
    receive(&mut connection, due, &[answer(3), answer(4)].concat());
    let done: Vec<i32> = drain(&mut connection)
        .iter()
        .filter_map(|o| if let Output::Done(id, Ok(_)) = o { Some(*id) } else { None })
        .collect();
    assert_eq!(done, [3, 4]);
}

#[test]
fn r090_the_time_of_renewal_has_jitter() {
    let now = Instant::now();
    let mut times = std::collections::BTreeSet::new();
    for seed in 0..50 {
        let mut sasl = Sasl::new(SaslConfig { mechanism: Str::from_static("X"), seed }, Str::from_static("t"));
        sasl.remember(now, 100_000);
        let first = (0..100).find(|s| sasl.wants_renewal(now + Duration::from_secs(*s))).expect("a time");
        assert!((85..=96).contains(&first), "{first}");
        times.insert(first);
    }
    assert!(times.len() > 5, "{times:?}");
}

#[test]
fn r091_a_token_that_takes_its_time_stops_calls_only_at_the_end() {
    let now = Instant::now();
    let mut connection = ready(now, 3000);
    let session = connection.sasl.as_ref().unwrap().session.unwrap();
    let end = now + Duration::from_secs(3);
    assert!(now + Duration::from_millis(2550) <= session.due && session.due < session.hold && session.hold < end);
    let later = now + Duration::from_secs(60);
    connection.handle_call(session.due, call(1, later));
    let outputs = drain(&mut connection);
    assert!(matches!(outputs[0], Output::Authenticate), "{outputs:?}");
    assert_eq!(sent(&outputs), [ApiKey::METADATA], "what the broker has taken is still good");
    receive(&mut connection, session.due, &answer(1));
    connection.handle_call(session.hold, call(2, later));
    assert!(sent(&drain(&mut connection)).is_empty(), "the broker would read it too late");
    connection.handle_credentials(end, Ok(Box::new(Polite)));
    receive(&mut connection, end, &handshake(ErrorCode::NONE, &[]));
    assert_eq!(sent(&drain(&mut connection)), [ApiKey::SASL_HANDSHAKE, ApiKey::SASL_AUTHENTICATE]);
    receive(&mut connection, end, &authenticated(b"welcome", 3000));
    assert_eq!(sent(&drain(&mut connection)), [ApiKey::METADATA]);
}

#[test]
fn r091_a_token_that_cannot_be_had_is_asked_for_again_while_there_is_time() {
    let now = Instant::now();
    let mut connection = ready(now, 1_000_000);
    let session = connection.sasl.as_ref().unwrap().session.unwrap();
    let later = now + Duration::from_secs(2000);
    connection.handle_call(session.due, call(1, later));
    assert!(matches!(drain(&mut connection)[..], [Output::Authenticate, Output::Transmit(_)]));
    connection.handle_credentials(session.due, Err(Ending::Lost("no token".into())));
    receive(&mut connection, session.due, &answer(1));
    drain(&mut connection);
    connection.handle_call(session.due + Duration::from_secs(1), call(2, later));
    assert!(matches!(drain(&mut connection)[..], [Output::Authenticate, Output::Transmit(_)]));
    connection.handle_credentials(session.hold, Err(Ending::Lost("no token".into())));
    assert!(matches!(ending(&mut connection), Ending::Lost(why) if why == "no token"));
}

#[test]
fn r090_a_second_passes_between_two_authentications_however_short_the_session() {
    let now = Instant::now();
    let mut connection = ready(now, 1000);
    let session = connection.sasl.as_ref().unwrap().session.unwrap();
    assert!(session.hold < session.due && session.due > now + Duration::from_secs(1));
    connection.handle_call(session.hold, call(1, now + Duration::from_secs(60)));
    assert!(drain(&mut connection).is_empty(), "the broker would read it too late");
    assert_eq!(connection.next_deadline(), Some(session.due));
    connection.handle_timeout(session.due);
    assert!(matches!(drain(&mut connection)[..], [Output::Authenticate]));
    assert_ne!(connection.next_deadline(), Some(session.due));
    connection.handle_credentials(session.due, Ok(Box::new(Polite)));
    receive(&mut connection, session.due, &handshake(ErrorCode::ILLEGAL_SASL_STATE, &[]));
    assert!(
        matches!(ending(&mut connection), Ending::Lost(why) if why.contains("so soon")),
        "another connection will do"
    );
}

#[test]
fn r090_a_broker_that_comes_to_requests_late_has_them_held_earlier() {
    let now = Instant::now();
    let mut connection = ready(now, 1_000_000);
    let at = |s| now + Duration::from_secs(s);
    connection.handle_call(now, call(1, at(2000)));
    connection.handle_call(now, call(2, at(2000)));
    drain(&mut connection);
    // It read the second a hundred seconds after it was written.
    receive(&mut connection, at(100), &answer(1));
    receive(&mut connection, at(101), &answer(2));
    drain(&mut connection);
    connection.handle_call(at(790), call(3, at(2000)));
    assert_eq!(sent(&drain(&mut connection)), [ApiKey::METADATA]);
    receive(&mut connection, at(791), &answer(3));
    drain(&mut connection);
    connection.handle_call(at(801), call(4, at(2000)));
    assert!(matches!(drain(&mut connection)[..], [Output::Authenticate]), "before its usual time");
}

#[test]
fn r091_a_token_that_never_comes_ends_the_connection() {
    let now = Instant::now();
    let mut connection = ready(now, 3000);
    let session = connection.sasl.as_ref().unwrap().session.unwrap();
    let later = now + Duration::from_secs(3600);
    connection.handle_call(session.due, call(1, later));
    receive(&mut connection, session.due, &answer(1));
    connection.handle_call(session.hold, call(2, later));
    drain(&mut connection);
    let until = connection.next_deadline().unwrap();
    assert!(until > session.hold && until < now + Duration::from_secs(60), "{:?}", until - now);
    connection.handle_timeout(until);
    assert!(matches!(ending(&mut connection), Ending::Lost(why) if why.contains("did not end in time")));
}

#[test]
fn r091_a_pause_passes_before_credentials_are_asked_for_again_even_where_calls_are_held() {
    let now = Instant::now();
    let mut connection = ready(now, 1_000_000);
    let at = |s| now + Duration::from_secs(s);
    connection.handle_call(now, call(1, at(2000)));
    connection.handle_call(now, call(2, at(2000)));
    receive(&mut connection, at(100), &answer(1));
    receive(&mut connection, at(101), &answer(2));
    drain(&mut connection);
    connection.handle_call(at(801), call(3, at(2000)));
    assert!(matches!(drain(&mut connection)[..], [Output::Authenticate]));
    connection.handle_credentials(at(801), Err(Ending::Lost("no token".into())));
    assert!(drain(&mut connection).is_empty(), "not at once");
    assert_eq!(connection.next_deadline(), Some(at(802)));
    connection.handle_timeout(at(802));
    assert!(matches!(drain(&mut connection)[..], [Output::Authenticate]));
}

#[test]
fn r092_without_a_lifetime_there_is_no_renewal() {
    let now = Instant::now();
    let years = now + Duration::from_secs(10 * 365 * 86_400);
    for lifetime in [0, -1, i64::MIN, i64::MAX] {
        let mut connection = ready(now, lifetime);
        connection.handle_call(years, call(1, years + Duration::from_secs(1)));
        assert_eq!(sent(&drain(&mut connection)), [ApiKey::METADATA], "{lifetime}");
    }
    // A lifetime at first, and none later.
    let mut connection = ready(now, 1000);
    let due = now + Duration::from_secs(1);
    connection.handle_call(due, call(1, due + Duration::from_secs(60)));
    connection.handle_credentials(due, Ok(Box::new(Polite)));
    receive(&mut connection, due, &handshake(ErrorCode::NONE, &[]));
    receive(&mut connection, due, &authenticated(b"welcome", 0));
    drain(&mut connection);
    receive(&mut connection, due, &answer(1));
    connection.handle_call(years, call(2, years + Duration::from_secs(1)));
    assert_eq!(sent(&drain(&mut connection)), [ApiKey::METADATA]);
}

#[test]
fn r097_sizes_are_bounded_before_the_broker_is_known() {
    let now = Instant::now();
    for size in [i32::MAX, -1, (1 << 20) + 1] {
        let mut connection = start(now, "POLITE");
        receive(&mut connection, now, &versions(&KEYS));
        connection.handle_credentials(now, Ok(Box::new(Polite)));
        drain(&mut connection);
        receive(&mut connection, now, &size.to_be_bytes());
        assert!(connection.is_closed(), "{size}");
        assert!(connection.buffer().capacity() < 1 << 20, "{size}");
    }
    // Afterwards frames of the usual size are taken.
    let mut connection = ready(now, 0);
    receive(&mut connection, now, &(16_i32 << 20).to_be_bytes());
    assert!(!connection.is_closed());
}

#[test]
fn a_tls_alert_in_answer_to_plain_words_is_known() {
    let now = Instant::now();
    let mut connection = Connection::new(config(), now);
    drain(&mut connection);
    receive(&mut connection, now, &[0x15, 0x03, 0x03, 0x00, 0x02, 0x02, 0x50]);
    assert!(matches!(ending(&mut connection), Ending::Refused(why) if why.contains("SSL or SASL_SSL")));
}
