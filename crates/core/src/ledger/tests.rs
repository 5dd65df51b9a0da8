//! The reader against logs made by hand, and against a naive reading of the rules.
