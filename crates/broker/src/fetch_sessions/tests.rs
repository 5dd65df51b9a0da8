//! Tests of fetch sessions.
