//! The arguments of `quipu up` and `quipu serve`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::ValueEnum;

#[derive(Debug, clap::Args)]
#[command(after_help = UP_HELP)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a flag of the command line"
)]
pub(crate) struct Up {
    /// Import, say what was found, and end
    #[arg(long)]
    pub(crate) once: bool,
    /// Load the samples that come with Quipu, into a home of their own, and serve them
    #[arg(long)]
    pub(crate) demo: bool,
    /// Write a unit that starts `quipu up` with your session, and say how to use and remove it
    #[arg(long, conflicts_with_all = ["once", "demo"])]
    pub(crate) install_service: bool,
    /// Serve the home also while nothing is in it, instead of the samples
    #[arg(long, conflicts_with = "demo")]
    pub(crate) no_samples: bool,
    #[command(flatten)]
    pub(crate) serve: Serve,
}

const UP_HELP: &str = "\
Imports the sessions of every agent on this machine, serves them on loopback, and imports what agents write as they write \
it, until Ctrl-C. A second `quipu up` says where the first one listens. Where no agent left a session yet, samples are \
served until one does.";

#[derive(Debug, Clone, Default, clap::Args)]
#[command(after_help = SERVE_HELP)]
pub(crate) struct Serve {
    /// Where to listen: ADDRESS:PORT, or the path of a Unix socket that only you can open (can be repeated) [default:
    /// 127.0.0.1:7847, or the next free port]
    #[arg(long, value_name = "ADDRESS", help_heading = "Where")]
    pub(crate) listen: Vec<String>,
    /// A certificate and its chain, in PEM: serve HTTPS
    #[arg(
        long,
        value_name = "FILE",
        requires = "tls_key",
        help_heading = "Where"
    )]
    pub(crate) tls_cert: Option<PathBuf>,
    /// The private key of the certificate, in PEM
    #[arg(
        long,
        value_name = "FILE",
        requires = "tls_cert",
        help_heading = "Where"
    )]
    pub(crate) tls_key: Option<PathBuf>,
    /// A name that the server goes by, such as behind a proxy (can be repeated)
    #[arg(long, value_name = "NAME", help_heading = "Where")]
    pub(crate) host_name: Vec<String>,
    /// Ask for a key on loopback, too (beyond loopback a key is always needed)
    #[arg(long, help_heading = "Who")]
    pub(crate) require_keys: bool,
    /// Let other users of this machine read through the port
    #[arg(long, help_heading = "Who")]
    pub(crate) any_local_user: bool,
    /// A directory of runs of Flow Studio, such as swarm/runs (can be repeated)
    #[arg(long, value_name = "DIR", help_heading = "What")]
    pub(crate) runs: Vec<PathBuf>,
    /// The directory in which workflows that are started over HTTP run [default: the current directory]
    #[arg(long, value_name = "DIR", help_heading = "What")]
    pub(crate) work_dir: Option<PathBuf>,
    /// How the server's log is written to standard error
    #[arg(
        long,
        value_enum,
        value_name = "FORM",
        default_value_t,
        help_heading = "What is said"
    )]
    pub(crate) log: LogForm,
    /// How much of it: `error`, `warn`, `info`, `debug`
    #[arg(long, value_enum, value_name = "LEVEL", help_heading = "What is said")]
    pub(crate) log_level: Option<LogLevel>,
}

const SERVE_HELP: &str = "\
Serves what is kept, and imports nothing. `quipu up` does both.

Examples:
  quipu serve                                       on loopback
  quipu serve --listen /run/user/1000/quipu.sock    on a socket that no other user can open
  quipu serve --listen 0.0.0.0:7847 --tls-cert cert.pem --tls-key key.pem    for others, with keys (`quipu keys new`)";

/// How a log is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum LogForm {
    /// For people
    #[default]
    Text,
    /// One JSON object a line
    Json,
}

/// How much is logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogLevel {
    /// What failed
    Error,
    /// What needs a look
    Warn,
    /// What was changed and refused
    Info,
    /// Every request
    Debug,
}

/// Where to listen, as it was written.
pub(crate) fn address(text: &str) -> Result<quipu_server::Listen, String> {
    if text.contains('/') {
        return Ok(quipu_server::Listen::Unix(PathBuf::from(text)));
    }
    match text.parse::<SocketAddr>() {
        Ok(address) => Ok(quipu_server::Listen::Tcp {
            address,
            or_next: false,
        }),
        Err(_) => Err(format!(
            "{text:?} is neither ADDRESS:PORT, such as 127.0.0.1:7847, nor the path of a socket, such as ./quipu.sock"
        )),
    }
}
