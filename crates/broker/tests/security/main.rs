//! Listeners with TLS and SASL, and access control: what goes over the wire, state by state and code by code.

mod raw;
mod rights;
mod sasl;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod tls;
