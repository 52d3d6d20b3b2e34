//! Where the server listens and what it allows.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use jiff::tz::TimeZone;
use quipu_store::stats::Budgets;

/// The port that is tried first.
pub const PORT: u16 = 7847;

/// Where the server listens.
#[derive(Debug, Clone)]
pub enum Listen {
    /// On a port of TCP. With `or_next`, one of the next ports is taken when this one is in use.
    Tcp {
        /// The address.
        address: SocketAddr,
        /// Whether another port will do.
        or_next: bool,
    },
    /// On a Unix socket, which only its owner can open.
    Unix(PathBuf),
}

impl Default for Listen {
    fn default() -> Self {
        Self::Tcp {
            address: SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), PORT),
            or_next: true,
        }
    }
}

/// A certificate and its key, in PEM.
#[derive(Debug, Clone)]
pub struct Tls {
    /// The chain of certificates, the server's first.
    pub certificates: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

/// What a server does and allows.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where it listens; at least one.
    pub listen: Vec<Listen>,
    /// TLS on what is TCP.
    pub tls: Option<Tls>,
    /// Names that the server goes by beside those of loopback and the addresses it listens on, such as behind a proxy.
    pub host_names: Vec<String>,
    /// Whether a key is needed on loopback, too.
    pub require_keys: bool,
    /// Whether other users of this machine may use the port.
    pub any_local_user: bool,
    /// Directories of runs of other programs (`swarm/runs`), for the Flow Studio interface.
    pub run_directories: Vec<PathBuf>,
    /// Whether the home holds the samples that come with Quipu.
    pub samples: bool,
    /// What may be spent.
    pub budgets: Budgets,
    /// The zone in which days of budgets begin; that of the system without one.
    pub zone: Option<TimeZone>,
    /// The directory in which workflows that are started over HTTP run.
    pub work_directory: PathBuf,
    /// How many workflows may run at once.
    pub runs: usize,
    /// How many connections there may be at once.
    pub connections: usize,
    /// How many of them may be live streams.
    pub streams: usize,
    /// How long a client may take to send the head of a request.
    pub head_timeout: Duration,
    /// How long a client may take to send a body, beside a second for each KiB of it.
    pub body_timeout: Duration,
    /// How long a client may take to read an answer, beside a second for each KiB of it.
    pub write_timeout: Duration,
    /// How long requests may take to end when the server ends.
    pub grace: Duration,
    /// How many bytes of answers are kept in memory.
    pub cache_bytes: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            listen: vec![Listen::default()],
            tls: None,
            host_names: Vec::new(),
            require_keys: false,
            any_local_user: false,
            run_directories: Vec::new(),
            samples: false,
            budgets: Budgets::default(),
            zone: None,
            work_directory: PathBuf::from("."),
            runs: 8,
            connections: 4096,
            streams: 2048,
            head_timeout: Duration::from_secs(10),
            body_timeout: Duration::from_secs(30),
            write_timeout: Duration::from_secs(30),
            grace: Duration::from_secs(5),
            cache_bytes: 12 << 20,
        }
    }
}
