//! End-to-end tests of the kafka-share workspace.
