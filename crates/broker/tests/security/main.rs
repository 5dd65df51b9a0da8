//! Listeners with TLS and SASL, and access control: what goes over the wire, state by state and code by code.

mod raw;
mod rights;
mod sasl;
mod tls;
