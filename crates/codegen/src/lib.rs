//! Generator that turns protocol-specs into the messages crate.
