//! The reader against logs made by hand, and against a naive reading of the rules.

mod directed;
mod forgetting;
mod log;
mod oracle;
mod own;
mod survey;
