//! The HTTP server of the REST interface: few connections, small requests, no patience.

use super::prometheus;
use super::rest::{Answer, Body, Question, answer};
use super::workers::Workers;
use crate::exit::Failure;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONTENT_TYPE, HOST, HeaderValue, ORIGIN};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use kafka_share_connect::Properties;
use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

/// Connections at a time; others wait to be accepted.
const CONNECTIONS: usize = 64;
/// How long the head of a request may take.
const HEAD: Duration = Duration::from_secs(10);
/// How long a connection may take, from its first byte to its last.
const ALL: Duration = Duration::from_secs(60);
/// Longest head, and body.
const HEAD_BYTES: usize = 16 * 1024;
/// Only settings to be validated come in a body.
const BODY_BYTES: usize = 64 * 1024;

/// Where `listeners` says that the worker listens; nowhere where it is not set.
pub(super) async fn bind(worker: &Properties) -> Result<Option<TcpListener>, Failure> {
    let Some(listeners) = worker.get("listeners").map(|l| l.trim()).filter(|l| !l.is_empty()) else { return Ok(None) };
    let wrong = |what: String| Failure::usage(format_args!("listeners={listeners}: {what}"));
    let Some(address) = listeners.to_ascii_lowercase().strip_prefix("http://").map(str::to_owned) else {
        return Err(wrong(
            "http://HOST:PORT is expected, and nothing else is served; put a proxy before it for https".into(),
        ));
    };
    let Some((host, port)) = address.trim_end_matches('/').rsplit_once(':') else {
        return Err(wrong("a port is expected, as in http://127.0.0.1:8083".into()));
    };
    let port: u16 = port.parse().map_err(|_| wrong(format!("{port:?} is no port")))?;
    // Without a host, nobody but this machine.
    let host = if host.is_empty() { "127.0.0.1" } else { host.trim_start_matches('[').trim_end_matches(']') };
    let listener = TcpListener::bind((host, port)).await.map_err(|e| wrong(e.to_string()))?;
    if let Ok(address) = listener.local_addr()
        && !address.ip().is_loopback()
    {
        tracing::warn!(%address, "the REST interface knows no users: whoever reaches it may stop connectors");
    }
    Ok(Some(listener))
}

/// Hosts that the worker is called by, beside addresses and `localhost`: those of `listeners` and of
/// `rest.advertised.host.name`, which may name several, with commas between them.
pub(super) fn hosts(worker: &Properties) -> Vec<String> {
    let listener = worker.get("listeners").map(|l| l.trim().to_ascii_lowercase());
    let listener =
        listener.as_deref().and_then(|l| l.strip_prefix("http://")).map(|l| host_of(l.trim_end_matches('/')));
    let advertised = worker.get("rest.advertised.host.name").map(String::as_str).unwrap_or_default();
    let all = listener.into_iter().chain(advertised.split(',')).chain(["localhost"]);
    all.map(|host| host.trim().to_ascii_lowercase()).filter(|host| !host.is_empty()).collect()
}

/// A Host header without its port.
fn host_of(header: &str) -> &str {
    let host = match header.rsplit_once(':') {
        // Colons of an address in brackets are its own.
        Some((host, port)) if !port.contains(']') => host,
        _ => header,
    };
    host.trim_start_matches('[').trim_end_matches(']')
}

fn is_own(hosts: &[String], header: &str) -> bool {
    let host = host_of(header);
    // Whoever rebinds a name needs one: an address leads to nobody else.
    host.parse::<IpAddr>().is_ok() || hosts.iter().any(|own| own.eq_ignore_ascii_case(host))
}

/// How the worker is called in answers.
pub(super) fn worker_id(worker: &Properties, address: Option<SocketAddr>) -> String {
    let told = |name: &str| worker.get(name).map(|v| v.trim().to_owned()).filter(|v| !v.is_empty());
    let host = told("rest.advertised.host.name")
        .and_then(|hosts| hosts.split(',').next().map(|host| host.trim().to_owned()))
        .unwrap_or_else(|| address.map_or_else(|| "127.0.0.1".into(), |a| a.ip().to_string()));
    let port = told("rest.advertised.port").unwrap_or_else(|| address.map_or(0, |a| a.port()).to_string());
    format!("{host}:{port}")
}

/// Serves until it is dropped.
pub(super) async fn serve(listener: TcpListener, workers: Arc<Workers>, worker: Arc<Properties>) {
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        match listener.accept().await {
            Ok((stream, _)) => {
                let (workers, worker) = (Arc::clone(&workers), Arc::clone(&worker));
                tokio::spawn(async move {
                    let _ = tokio::time::timeout(ALL, connection(stream, workers, worker)).await;
                    drop(place);
                });
            }
            // Out of file handles, say.
            Err(error) => {
                tracing::warn!(%error, "the REST interface cannot accept");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

async fn connection(stream: TcpStream, workers: Arc<Workers>, worker: Arc<Properties>) {
    let service = service_fn(move |request| {
        let (workers, worker) = (Arc::clone(&workers), Arc::clone(&worker));
        async move { Ok::<_, Infallible>(respond(&workers, &worker, request).await) }
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .max_buf_size(HEAD_BYTES)
        // A place is not kept by who says nothing.
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service)
        .await;
    if let Err(error) = served {
        tracing::debug!(%error, "a connection to the REST interface ended");
    }
}

async fn respond(workers: &Workers, worker: &Properties, request: Request<Incoming>) -> Response<Full<Bytes>> {
    // A page in somebody's browser must not restart or stop what runs on their machine.
    if request.headers().contains_key(ORIGIN) {
        return written(Answer::error(403, "requests from web pages are not answered"));
    }
    // Nor may one that has its own name lead here (DNS rebinding): then there is no Origin, but the name is in Host.
    let host = request.headers().get(HOST).map(|host| host.to_str().unwrap_or_default().to_owned());
    if let Some(host) = host.filter(|host| !is_own(&workers.hosts, host)) {
        return written(Answer::error(
            403,
            format!("{host:?} is no host of this worker: call it by its address, or set rest.advertised.host.name"),
        ));
    }
    let (head, body) = request.into_parts();
    let body = match Limited::new(body, BODY_BYTES).collect().await {
        Ok(body) => body.to_bytes(),
        Err(_) => {
            return written(Answer::error(413, format!("the body is longer than {BODY_BYTES} bytes, or broke off")));
        }
    };
    let question = Question {
        method: head.method.as_str(),
        path: head.uri.path(),
        query: head.uri.query().unwrap_or_default(),
        body: &body,
        worker,
    };
    written(answer(workers, &question).await)
}

fn written(answer: Answer) -> Response<Full<Bytes>> {
    let (body, kind) = match answer.body {
        Body::Nothing => (String::new(), None),
        Body::Json(value) => (value.to_string(), Some("application/json")),
        Body::Page(text) => (text, Some(prometheus::CONTENT_TYPE)),
    };
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    if let Some(kind) = kind {
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_is_called_by_its_own_names_only() {
        let named = |pairs: &[(&str, &str)]| {
            hosts(&pairs.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect::<Properties>())
        };
        let own = named(&[
            ("listeners", "http://connect.local:8083/"),
            ("rest.advertised.host.name", "a.example, b.example"),
        ]);
        for host in [
            "127.0.0.1:8083",
            "127.0.0.1",
            "[::1]:8083",
            "[::1]",
            "10.0.0.7:1",
            "localhost:8083",
            "LOCALHOST",
            "connect.local:8083",
            "a.example",
            "B.example:80",
        ] {
            assert!(is_own(&own, host), "{host}");
        }
        for host in
            ["", "evil.example:8083", "127.0.0.1.evil.example", "localhost.evil.example", "connect.local.", "a.exampl"]
        {
            assert!(!is_own(&own, host), "{host}");
        }
        assert_eq!(named(&[("listeners", "http://:8083")]), ["localhost"]);
    }
}
