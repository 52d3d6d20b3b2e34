//! Servers as processes of their own, and what the system says of them.

use std::io::{BufRead as _, BufReader, Read};
use std::net::SocketAddr;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};

use super::http::get;
use super::load::once;

/// How long a server may take to say where it is.
const PATIENCE: Duration = Duration::from_secs(60);

/// Linux tells programs time in hundredths of a second, whatever it counts in itself.
const TICKS: f64 = 100.0;

/// A server. It ends when this is dropped.
pub(crate) struct Server {
    child: Child,
    pub(crate) address: SocketAddr,
    /// When it was started.
    began: Instant,
}

impl Server {
    /// Starts a server, and waits until it says where it is: at `http://` and an address, on either output.
    pub(crate) fn start(mut command: Command) -> Result<Self> {
        // A group of its own, so that it ends with what it started.
        command
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let began = Instant::now();
        let child = command.spawn();
        let child = child.with_context(|| format!("run {command:?}"))?;
        let mut server = Self {
            child,
            address: SocketAddr::from(([127, 0, 0, 1], 0)),
            began,
        };
        let (say, said) = sync_channel(16);
        let out = server.child.stdout.take().context("its output")?;
        let err = server.child.stderr.take().context("its errors")?;
        listen(out, say.clone());
        listen(err, say);
        let mut last = String::new();
        loop {
            let left = PATIENCE.saturating_sub(began.elapsed());
            let Ok(line) = said.recv_timeout(left) else {
                bail!("{command:?} does not say where it is; it said last: {last}");
            };
            if let Some(address) = address_in(&line) {
                server.address = address;
                return Ok(server);
            }
            last = line;
        }
    }

    /// Waits until it answers, and gives how long that took from its start.
    pub(crate) fn ready(&self, path: &str) -> Result<Duration> {
        let request = get(self.address, path, "");
        while self.began.elapsed() < PATIENCE {
            if let Ok((200, ..)) = once(self.address, &request, "") {
                return Ok(self.began.elapsed());
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        bail!("{} is not ready", self.address)
    }

    /// Processor time so far, in seconds.
    pub(super) fn cpu(&self) -> Result<f64> {
        let text = self.told("stat")?;
        // The name of the program is in brackets, and may have anything in it.
        let (_, rest) = text.rsplit_once(") ").context("no name")?;
        let fields: Vec<&str> = rest.split(' ').collect();
        // The 14th and the 15th of all; two were cut off.
        let ticks = |n: usize| -> Result<u64> {
            let field = fields.get(n).context("too few figures")?;
            Ok(field.parse()?)
        };
        let ticks = ticks(11)? + ticks(12)?;
        Ok(ticks as f64 / TICKS)
    }

    /// How often it read so far, and how many bytes.
    pub(super) fn reads(&self) -> Result<(u64, u64)> {
        let text = self.told("io")?;
        Ok((figure(&text, "syscr:")?, figure(&text, "rchar:")?))
    }

    /// What it holds now, in MiB.
    pub(super) fn memory(&self) -> Result<f64> {
        Ok(figure(&self.told("status")?, "VmRSS:")? as f64 / 1024.0)
    }

    /// The most it held, in MiB.
    pub(super) fn peak(&self) -> Result<f64> {
        Ok(figure(&self.told("status")?, "VmHWM:")? as f64 / 1024.0)
    }

    fn told(&self, what: &str) -> Result<String> {
        let path = format!("/proc/{}/{what}", self.child.id());
        std::fs::read_to_string(&path).with_context(|| path)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let group = i32::try_from(self.child.id()).ok();
        if let Some(group) = group.and_then(rustix::process::Pid::from_raw) {
            // It may have ended already.
            rustix::process::kill_process_group(group, rustix::process::Signal::KILL).ok();
        }
        drop(self.child.wait());
    }
}

/// Reads to the end what somebody says, so that nobody waits for it to be read; passes on the first lines.
fn listen(from: impl Read + Send + 'static, say: SyncSender<String>) {
    std::thread::spawn(move || {
        let mut lines = BufReader::new(from).lines();
        while let Some(Ok(line)) = lines.next() {
            // Nobody listens any more once the address is known.
            drop(say.try_send(line));
        }
    });
}

fn address_in(line: &str) -> Option<SocketAddr> {
    let (_, rest) = line.split_once("http://")?;
    let end = |c: char| !(c.is_ascii_alphanumeric() || ".:[]".contains(c));
    rest.split(end).next()?.parse().ok()
}

fn figure(text: &str, name: &str) -> Result<u64> {
    let mut lines = text.lines();
    let line = lines.find_map(|line| line.strip_prefix(name));
    let line = line.with_context(|| format!("{name} is not told"))?;
    let number = line.split_whitespace().next().context("a figure")?;
    Ok(number.parse()?)
}

/// Lets this process and those that it starts open as many files as the system allows.
pub(super) fn raise_limits(wanted: usize) -> Result<()> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    setrlimit(Resource::Nofile, raised)?;
    let enough = limit.maximum.is_none_or(|most| most > wanted as u64);
    ensure!(enough, "the system does not allow {wanted} open files");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_say_where_they_are() {
        let found = |line| address_in(line).map(|address| address.port());
        assert_eq!(found("Serving at http://127.0.0.1:80"), Some(80));
        assert_eq!(
            found("it v1 listening at http://127.0.0.1:38195 (started in 431ms)"),
            Some(38195)
        );
        assert_eq!(found("Using available port 38195"), None);
    }
}
