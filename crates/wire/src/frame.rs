//! Frames: a 32-bit size and that many bytes. Decoding is incremental and bounded; encoding keeps shared segments.

use bytes::{Bytes, BytesMut};
use std::fmt;

/// An encoded frame, size prefix included, as the segments to write in order.
#[derive(Clone, PartialEq, Eq)]
pub struct Frame {
    segments: Vec<Bytes>,
    len: usize,
}

impl fmt::Debug for Frame {
    /// Without the bytes, which may be a password's.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let segments: Vec<usize> = self.segments.iter().map(Bytes::len).collect();
        f.debug_struct("Frame").field("len", &self.len).field("segments", &segments).finish()
    }
}

impl Frame {
    /// From segments that already hold the size prefix.
    pub(crate) fn from_segments(segments: Vec<Bytes>) -> Self {
        let len = segments.iter().map(Bytes::len).sum();
        Frame { segments, len }
    }

    /// Bytes of the frame, its size prefix included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Never true: a frame has at least its size prefix.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The segments, to be written in order.
    #[must_use]
    pub fn segments(&self) -> &[Bytes] {
        &self.segments
    }

    /// The segments, to be written in order.
    #[must_use]
    pub fn into_segments(self) -> Vec<Bytes> {
        self.segments
    }

    /// The frame in one piece, size prefix included.
    #[must_use]
    pub fn to_vec(&self) -> Vec<u8> {
        self.segments.concat()
    }
}

/// A peer that does not speak Kafka, or that sends more than it may.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FrameError {
    /// The size prefix is negative.
    #[error("frame size {0} is negative: the peer does not speak the Kafka protocol on this port")]
    Negative(i32),
    /// The size prefix is beyond the limit.
    #[error("frame of {size} bytes is over the limit of {limit} bytes (a TLS or HTTP peer, or a limit set too low)")]
    TooLarge {
        /// Claimed size.
        size: usize,
        /// The configured limit.
        limit: usize,
    },
}

/// Turns a byte stream into frames.
///
/// Bytes go in through [`FrameDecoder::buffer`]; [`FrameDecoder::next_frame`] takes complete frames out. Memory is
/// reserved as bytes arrive, so a peer cannot make this allocate by sending a large size alone.
#[derive(Debug)]
pub struct FrameDecoder {
    buf: BytesMut,
    limit: usize,
    /// Room for the next frame: about the size of the last large ones, so that it comes with one read and is not moved.
    room: usize,
}

/// Least and most room that is kept for a frame that has not begun to arrive.
const LEAST_ROOM: usize = 16 << 10;
const MOST_ROOM: usize = 256 << 10;
/// Frames up to this size get their memory at once; larger ones as their bytes arrive.
const RESERVE_AT_ONCE: usize = 4 << 20;

impl FrameDecoder {
    /// A decoder that refuses frames of more than `limit` bytes.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        FrameDecoder { buf: BytesMut::new(), limit, room: LEAST_ROOM }
    }

    /// Refuses frames of more than `limit` bytes from the next one on.
    pub fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
    }

    /// Where to append received bytes.
    pub fn buffer(&mut self) -> &mut BytesMut {
        let free = self.buf.capacity() - self.buf.len();
        if free < 1024 || (self.buf.is_empty() && free < self.room / 2) {
            self.buf.reserve(self.room);
        }
        &mut self.buf
    }

    /// Follows a rising size at once and a falling one slowly.
    fn expect_like(&mut self, size: usize) {
        let falling = self.room - self.room / 16;
        self.room = (size + 512).max(falling).clamp(LEAST_ROOM, MOST_ROOM);
    }

    /// Whether the stream is between two frames, so that its end now is a clean end.
    #[must_use]
    pub fn at_boundary(&self) -> bool {
        self.buf.is_empty()
    }

    /// The next complete frame without its size prefix, or `None` until more bytes arrive.
    ///
    /// # Errors
    /// A negative or oversized size prefix; the stream is unusable afterwards.
    pub fn next_frame(&mut self) -> Result<Option<Bytes>, FrameError> {
        let Some(prefix) = self.buf.first_chunk::<4>() else { return Ok(None) };
        let size = i32::from_be_bytes(*prefix);
        let size = usize::try_from(size).map_err(|_| FrameError::Negative(size))?;
        if size > self.limit {
            return Err(FrameError::TooLarge { size, limit: self.limit });
        }
        let have = self.buf.len() - 4;
        if have < size {
            let missing = size - have;
            self.buf.reserve(missing.min(RESERVE_AT_ONCE.max(have)));
            return Ok(None);
        }
        self.expect_like(size);
        let mut frame = self.buf.split_to(4 + size);
        let _ = frame.split_to(4);
        Ok(Some(frame.freeze()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Writer;

    #[test]
    fn debug_shows_sizes_and_no_bytes() {
        let mut w = Writer::for_frame();
        w.shared(&Bytes::from_static(b"hunter2"));
        let text = format!("{:?}", w.into_frame().unwrap());
        assert!(text.contains("len: 11") && !text.contains("hunter"), "{text}");
    }

    #[test]
    fn frames_come_out_at_any_split() {
        let mut stream = Vec::new();
        for n in [0_usize, 1, 5, 5000] {
            let mut w = Writer::for_frame();
            w.shared(&Bytes::from(vec![7; n]));
            stream.extend(w.into_frame().unwrap().to_vec());
        }
        for step in [1, 3, 4, 1000, stream.len()] {
            let mut decoder = FrameDecoder::new(1 << 20);
            let mut sizes = Vec::new();
            for chunk in stream.chunks(step) {
                decoder.buffer().extend_from_slice(chunk);
                while let Some(frame) = decoder.next_frame().unwrap() {
                    sizes.push(frame.len());
                }
            }
            assert_eq!(sizes, [0, 1, 5, 5000]);
            assert!(decoder.at_boundary());
        }
    }

    #[test]
    fn hostile_sizes_are_refused_without_allocating() {
        let mut decoder = FrameDecoder::new(1 << 20);
        decoder.buffer().extend_from_slice(&i32::MAX.to_be_bytes());
        assert!(matches!(decoder.next_frame(), Err(FrameError::TooLarge { .. })));
        let mut decoder = FrameDecoder::new(1 << 30);
        decoder.buffer().extend_from_slice(&(1_i32 << 30).to_be_bytes());
        assert_eq!(decoder.next_frame(), Ok(None));
        assert!(decoder.buffer().capacity() <= 8 << 20);
        let mut decoder = FrameDecoder::new(1 << 20);
        decoder.buffer().extend_from_slice(&(-2_i32).to_be_bytes());
        assert_eq!(decoder.next_frame(), Err(FrameError::Negative(-2)));
    }

    #[test]
    fn room_follows_the_frames_and_stays_bounded() {
        let frame = |size: usize| [(size as i32).to_be_bytes().to_vec(), vec![7; size]].concat();
        let mut decoder = FrameDecoder::new(8 << 20);
        let room = |decoder: &mut FrameDecoder, size: usize| {
            for chunk in frame(size).chunks(10_000) {
                decoder.buffer().extend_from_slice(chunk);
                if let Some(frame) = decoder.next_frame().unwrap() {
                    assert_eq!(frame.len(), size);
                }
            }
            let buffer = decoder.buffer();
            buffer.capacity() - buffer.len()
        };
        assert!(room(&mut decoder, 100) >= LEAST_ROOM / 2);
        // The next frame of that size comes without being moved, mostly.
        assert!(room(&mut decoder, 60_000) >= 30_000);
        room(&mut decoder, 4 << 20);
        assert_eq!(decoder.room, MOST_ROOM, "whatever one frame was");
        for _ in 0..100 {
            room(&mut decoder, 100);
        }
        assert_eq!(decoder.room, LEAST_ROOM);
    }
}
