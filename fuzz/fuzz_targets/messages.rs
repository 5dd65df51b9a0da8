//! Every message in every version: what can be decoded can be encoded, and decodes to the same again.
#![no_main]

use bytes::Bytes;
use kafka_share_messages::dispatch::{reencode_request, reencode_response};
use kafka_share_messages::{ApiInfo, frame};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let [kind, api, version, body @ ..] = data else { return };
    let infos = ApiInfo::all();
    let info = &infos[usize::from(*api) % infos.len()];
    let versions = i32::from(info.max_version - info.min_version) + 1;
    // One version beyond each end too, which must be refused.
    let version = info.min_version - 1 + (i32::from(*version) % (versions + 2)) as i16;
    let body = Bytes::copy_from_slice(body);
    let reencode = |bytes: Bytes| match kind % 4 {
        0 => reencode_request(info.key.0, version, bytes),
        1 => reencode_response(info.key.0, version, bytes),
        2 => frame::reencode_header("request_header", version.rem_euclid(3), bytes),
        _ => frame::reencode_header("response_header", version.rem_euclid(2), bytes),
    };
    let Ok(once) = reencode(body) else { return };
    let once = Bytes::from(once);
    let twice = reencode(once.clone()).expect("what was encoded can be decoded");
    assert_eq!(once, twice, "{info:?} version {version}");
});
