//! A byte stream in arbitrary pieces: frames, request headers, and a connection that correlates answers.
#![no_main]

use bytes::Bytes;
use kafka_share_core::connection::{Call, Connection, ConnectionConfig};
use kafka_share_messages::{ApiVersionsRequest, frame};
use kafka_share_wire::{FrameDecoder, Str};
use libfuzzer_sys::fuzz_target;
use std::time::{Duration, Instant};

const LIMIT: usize = 1 << 16;

fuzz_target!(|data: &[u8]| {
    let Some((&step, stream)) = data.split_first() else { return };
    let step = usize::from(step) + 1;
    let mut decoder = FrameDecoder::new(LIMIT);
    let (mut taken, mut frames) = (0, 0);
    'stream: for piece in stream.chunks(step) {
        decoder.buffer().extend_from_slice(piece);
        loop {
            match decoder.next_frame() {
                Ok(Some(frame)) => {
                    assert!(frame.len() <= LIMIT);
                    taken += frame.len() + 4;
                    frames += 1;
                    header(frame);
                }
                Ok(None) => break,
                Err(_) => break 'stream,
            }
        }
    }
    assert!(taken <= stream.len());
    // However the stream is cut, the same frames come out.
    let mut whole = FrameDecoder::new(LIMIT);
    whole.buffer().extend_from_slice(stream);
    let again = std::iter::from_fn(|| whole.next_frame().ok().flatten()).count();
    assert_eq!(frames, again);
    connection(stream, step);
});

fn header(frame: Bytes) {
    let _ = frame::correlation_id(&frame);
    let Ok((header, mut rest)) = frame::decode_request_header(frame.clone()) else { return };
    let body = rest.rest();
    assert!(body.len() <= frame.len());
    let _ = kafka_share_messages::dispatch::reencode_request(header.request_api_key, header.request_api_version, body);
}

/// Feeds the stream to a client's connection as if a broker had sent it, after its answer to ApiVersions.
fn connection(stream: &[u8], step: usize) {
    let now = Instant::now();
    let config = ConnectionConfig {
        client_id: Str::from_static("fuzz"),
        max_frame: LIMIT,
        max_in_flight: 4,
        max_queued: 4,
        handshake_timeout: Duration::from_secs(10),
        sasl: None,
        max_idle: Duration::from_secs(540),
    };
    let mut machine = Connection::new(config, now);
    for id in 1..=6 {
        let request = ApiVersionsRequest::default();
        let frame = frame::encode_request(&request, 0, id, &Str::from_static("fuzz")).expect("a valid request");
        machine.handle_call(
            now,
            Call { correlation_id: id, frame, deadline: now + Duration::from_secs(1), answered: id != 3 },
        );
    }
    for piece in stream.chunks(step) {
        machine.buffer().extend_from_slice(piece);
        machine.handle_received(now);
        while machine.poll_output().is_some() {}
        if machine.is_closed() {
            return;
        }
    }
    machine.handle_timeout(now + Duration::from_secs(2));
    machine.handle_closed("the end");
    while machine.poll_output().is_some() {}
    assert!(machine.is_closed());
}
