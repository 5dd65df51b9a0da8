//! A loopback proxy between clients and a broker: counts requests by their API key, and cuts connections on request.
//!
//! The broker has to advertise the proxy's address, so it starts first and is told the broker's address later.

use kafka_share_messages::ApiKey;
use std::collections::{HashMap, HashSet};
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

/// Largest request that is passed on.
const MAX_REQUEST: usize = 64 << 20;

/// When a request cuts its connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// The broker never gets it.
    Before,
    /// The broker gets this many bytes of it, size prefix included.
    Within(usize),
    /// The broker acts on it; the client never gets the answer.
    After,
}

/// A running proxy. Dropping it closes all connections.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    broker: OnceLock<SocketAddr>,
    stopped: AtomicBool,
    /// One byte at a time.
    slow: AtomicBool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    requests: HashMap<i16, u32>,
    /// The longest request of each kind, size prefix included.
    longest: HashMap<i16, usize>,
    connections: Vec<Arc<Connection>>,
    /// The next request of this kind cuts its connection.
    due: Option<(ApiKey, Cut)>,
}

#[derive(Debug)]
struct Connection {
    client: TcpStream,
    broker: TcpStream,
    keys: Mutex<HashSet<i16>>,
    /// The next bytes of the broker are lost.
    mute: AtomicBool,
}

impl Connection {
    fn cut(&self) {
        self.client.shutdown(Shutdown::Both).ok();
        self.broker.shutdown(Shutdown::Both).ok();
    }
}

impl Proxy {
    /// Listens on a free loopback port.
    ///
    /// # Errors
    /// No port can be bound.
    pub fn start() -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared::default());
        thread::spawn({
            let shared = Arc::clone(&shared);
            move || accept(&listener, &shared)
        });
        Ok(Proxy { address, shared })
    }

    /// Where clients connect to.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The broker behind it; the first one told stays. Connections before that are refused.
    pub fn lead_to(&self, broker: SocketAddr) {
        self.shared.broker.get_or_init(|| broker);
    }

    /// Requests of a kind so far.
    #[must_use]
    pub fn requests(&self, key: ApiKey) -> u32 {
        self.shared.state().requests.get(&key.0).copied().unwrap_or(0)
    }

    /// Bytes of the longest request of a kind so far, with its size prefix.
    #[must_use]
    pub fn longest(&self, key: ApiKey) -> usize {
        self.shared.state().longest.get(&key.0).copied().unwrap_or(0)
    }

    /// Whether a cut that was asked for has not happened yet.
    #[must_use]
    pub fn is_due(&self) -> bool {
        self.shared.state().due.is_some()
    }

    /// Has all bytes passed on one at a time, in both directions.
    pub fn one_byte_at_a_time(&self) {
        self.shared.slow.store(true, Ordering::SeqCst);
    }

    /// Cuts all connections that have carried a request of a kind; answers how many.
    pub fn cut(&self, key: ApiKey) -> usize {
        let state = self.shared.state();
        let carried = state.connections.iter().filter(|c| lock(&c.keys).contains(&key.0));
        carried.map(|c| c.cut()).count()
    }

    /// Has the next request of a kind cut its connection.
    pub fn cut_at_next(&self, key: ApiKey, cut: Cut) {
        self.shared.state().due = Some((key, cut));
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.stopped.store(true, Ordering::SeqCst);
        // Wakes the thread that accepts.
        TcpStream::connect(self.address).ok();
        self.shared.state().connections.iter().for_each(|c| c.cut());
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    for client in listener.incoming() {
        if shared.stopped.load(Ordering::SeqCst) {
            return;
        }
        let Some((client, broker)) = client.ok().zip(shared.broker.get()) else { continue };
        let shared = Arc::clone(shared);
        let broker = *broker;
        thread::spawn(move || carry(client, broker, &shared));
    }
}

fn carry(client: TcpStream, broker: SocketAddr, shared: &Shared) -> Option<()> {
    let broker = TcpStream::connect_timeout(&broker, Duration::from_secs(10)).ok()?;
    client.set_nodelay(true).ok()?;
    broker.set_nodelay(true).ok()?;
    let connection = Connection { client, broker, keys: Mutex::default(), mute: AtomicBool::new(false) };
    let connection = Arc::new(connection);
    shared.state().connections.push(Arc::clone(&connection));
    thread::spawn({
        let connection = Arc::clone(&connection);
        let slow = shared.slow.load(Ordering::SeqCst);
        move || {
            carry_answers(&connection, slow).ok();
            connection.cut();
        }
    });
    carry_requests(&connection, shared).ok();
    connection.cut();
    shared.state().connections.retain(|c| !Arc::ptr_eq(c, &connection));
    Some(())
}

fn carry_requests(connection: &Connection, shared: &Shared) -> io::Result<()> {
    let (mut client, mut broker) = (&connection.client, &connection.broker);
    loop {
        let mut frame = vec![0; 4];
        client.read_exact(&mut frame)?;
        let size = u32::from_be_bytes([frame[0], frame[1], frame[2], frame[3]]) as usize;
        if !(2..=MAX_REQUEST).contains(&size) {
            return Err(io::Error::other(format!("a request of {size} bytes")));
        }
        frame.resize(4 + size, 0);
        client.read_exact(&mut frame[4..])?;
        let key = i16::from_be_bytes([frame[4], frame[5]]);
        lock(&connection.keys).insert(key);
        let cut = {
            let mut state = shared.state();
            *state.requests.entry(key).or_default() += 1;
            let longest = state.longest.entry(key).or_default();
            *longest = frame.len().max(*longest);
            state.due.take_if(|(due, _)| due.0 == key).map(|(_, cut)| cut)
        };
        match cut {
            Some(Cut::Before) => return Ok(()),
            Some(Cut::Within(bytes)) => return broker.write_all(&frame[..bytes.min(frame.len())]),
            Some(Cut::After) => connection.mute.store(true, Ordering::SeqCst),
            None => {}
        }
        write(broker, &frame, shared.slow.load(Ordering::SeqCst))?;
    }
}

fn write(mut to: &TcpStream, bytes: &[u8], slow: bool) -> io::Result<()> {
    // The sockets delay nothing, so that each write is a packet of its own.
    bytes.chunks(if slow { 1 } else { bytes.len().max(1) }).try_for_each(|piece| to.write_all(piece))
}

fn carry_answers(connection: &Connection, slow: bool) -> io::Result<()> {
    let (client, mut broker) = (&connection.client, &connection.broker);
    let mut buffer = vec![0; 64 << 10];
    loop {
        let read = broker.read(&mut buffer)?;
        if read == 0 || connection.mute.load(Ordering::SeqCst) {
            return Ok(());
        }
        write(client, &buffer[..read], slow)?;
    }
}
