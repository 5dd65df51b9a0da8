//! Whole frames: header, body and size prefix, for both directions.

use crate::{ApiInfo, ApiKey, Message, Request, RequestHeader, ResponseHeader};
use bytes::Bytes;
use kafka_share_wire::{ErrorKind, Frame, Reader, Result, Str, Writer};

/// Encodes a request with its header.
///
/// # Errors
/// As [`Message::encode`].
pub fn encode_request<R: Request>(request: &R, version: i16, correlation_id: i32, client_id: &Str) -> Result<Frame> {
    encode_request_as(R::KEY, request, version, correlation_id, client_id)
}

/// Encodes a request under another key than its usual one, for proposals whose key is not settled.
///
/// # Errors
/// As [`Message::encode`].
pub fn encode_request_as<R: Request>(
    key: ApiKey,
    request: &R,
    version: i16,
    correlation_id: i32,
    client_id: &Str,
) -> Result<Frame> {
    let header_version = if version >= R::FLEXIBLE_FROM { 2 } else { 1 };
    let header = RequestHeader {
        request_api_key: key.0,
        request_api_version: version,
        correlation_id,
        client_id: Some(client_id.clone()),
        ..RequestHeader::default()
    };
    let mut w = Writer::for_frame();
    header.encode(&mut w, header_version)?;
    request.encode(&mut w, version)?;
    w.into_frame()
}

/// Encodes a response with its header. `version` is that of the request it answers.
///
/// # Errors
/// As [`Message::encode`].
pub fn encode_response<M: Message>(key: ApiKey, response: &M, version: i16, correlation_id: i32) -> Result<Frame> {
    let header_version = i16::from(version >= M::FLEXIBLE_FROM && key != ApiKey::API_VERSIONS);
    let header = ResponseHeader { correlation_id, ..ResponseHeader::default() };
    let mut w = Writer::for_frame();
    header.encode(&mut w, header_version)?;
    response.encode(&mut w, version)?;
    w.into_frame()
}

/// Decodes a response frame (without its size prefix) that answers a request of type `R`.
///
/// Returns the correlation id and the body.
///
/// # Errors
/// As [`Message::decode`], and bytes that are left over.
pub fn decode_response<R: Request>(frame: Bytes, version: i16) -> Result<(i32, R::Response)> {
    let header_version = i16::from(version >= R::FLEXIBLE_FROM && R::KEY != ApiKey::API_VERSIONS);
    let mut r = Reader::new(frame);
    let header = ResponseHeader::decode(&mut r, header_version)?;
    let body = R::Response::decode(&mut r, version)?;
    r.finish()?;
    Ok((header.correlation_id, body))
}

/// The header of a request frame, and a reader at its body.
///
/// The key and version are read before the header's own version is chosen from them; a key that is not known here is
/// read with the oldest header that has a client id, so that the caller can still answer by correlation id.
///
/// # Errors
/// A frame that ends inside the header or breaks its format.
pub fn decode_request_header(frame: Bytes) -> Result<(RequestHeader, Reader)> {
    let mut peek = Reader::new(frame.clone());
    let key = ApiKey(peek.i16()?);
    let version = peek.i16()?;
    let header_version = match key.info() {
        Some(info) => info.request_header_version(version),
        None => 1,
    };
    let mut r = Reader::new(frame);
    let header = RequestHeader::decode(&mut r, header_version)?;
    Ok((header, r))
}

/// Decodes a header of `kind` (`request_header` or `response_header`) and encodes it again.
///
/// # Errors
/// Another kind, unknown versions, and bytes that are not valid.
pub fn reencode_header(kind: &str, version: i16, bytes: Bytes) -> Result<Vec<u8>> {
    match kind {
        "request_header" => crate::reencode::<RequestHeader>(version, bytes),
        "response_header" => crate::reencode::<ResponseHeader>(version, bytes),
        _ => Err(ErrorKind::UnknownApiKey(-1).at(0)),
    }
}

/// Reads the correlation id of a response frame.
///
/// # Errors
/// A frame of less than four bytes.
pub fn correlation_id(frame: &Bytes) -> Result<i32> {
    Reader::new(frame.clone()).i32()
}

/// Version range of `key` that both sides speak, given what a broker advertises.
#[must_use]
pub fn common_version(info: &ApiInfo, min: i16, max: i16) -> Option<i16> {
    let top = info.max_version.min(max);
    (top >= info.min_version.max(min)).then_some(top)
}
