//! Tests of a data directory.
