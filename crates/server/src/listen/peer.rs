//! Which user opened a connection.
//!
//! A port of loopback can be reached by every user of the machine. On Linux the system lists, for each socket, the user who
//! opened it; the client's own end of the connection is among them. Elsewhere nobody can tell, and
//! `docs/threat-model.md` names the Unix socket as the way to keep others out.

use std::fmt::Write as _;
use std::net::{IpAddr, SocketAddr};

/// Whether the client's end of a connection belongs to the user of this process, or to root.
#[cfg(target_os = "linux")]
pub(super) async fn is_same_user(client: SocketAddr, own: Option<SocketAddr>) -> bool {
    let Some(own) = own else {
        return false;
    };
    if let Ok(user) = super::diag::user_of(client, own) {
        return user.is_some_and(is_known);
    }
    // The list takes milliseconds, in which others are to be served.
    let listed = tokio::task::spawn_blocking(move || is_listed(client, own));
    listed.await.unwrap_or(false)
}

/// Whether a user may use the port: the one of this process, and root.
#[cfg(target_os = "linux")]
fn is_known(user: u32) -> bool {
    user == rustix::process::geteuid().as_raw() || user == 0
}

/// The same by the list of all connections.
#[cfg(target_os = "linux")]
fn is_listed(client: SocketAddr, own: SocketAddr) -> bool {
    let lists = ["/proc/net/tcp", "/proc/net/tcp6"];
    let mut any = false;
    for list in lists {
        let Ok(text) = std::fs::read_to_string(list) else {
            continue;
        };
        any = true;
        if let Some(user) = user_of(&text, client, own) {
            return is_known(user);
        }
    }
    // Without the list nobody can be told apart; with it, a connection that is not in it is not of this machine.
    !any
}

#[cfg(not(target_os = "linux"))]
pub(super) async fn is_same_user(_client: SocketAddr, _own: Option<SocketAddr>) -> bool {
    true
}

/// The user of the socket with this local and this remote address.
fn user_of(list: &str, local: SocketAddr, remote: SocketAddr) -> Option<u32> {
    let forms = |address: SocketAddr| -> Vec<String> {
        let ip = address.ip().to_canonical();
        let mut forms = vec![form(ip, address.port())];
        if let IpAddr::V4(ip) = ip {
            forms.push(form(IpAddr::V6(ip.to_ipv6_mapped()), address.port()));
        }
        forms
    };
    let (local, remote) = (forms(local), forms(remote));
    list.lines().skip(1).find_map(|line| {
        let mut words = line.split_ascii_whitespace().skip(1);
        let (from, to) = (words.next()?, words.next()?);
        if !local.iter().any(|it| it == from) || !remote.iter().any(|it| it == to) {
            return None;
        }
        let user = words.nth(4)?.parse().ok()?;
        // A socket that its process has closed has no inode, and some kernels then say that it is root's: whoever sends
        // something and closes at once would pass for root.
        let inode: u64 = words.nth(1)?.parse().ok()?;
        (user != 0 || inode != 0).then_some(user)
    })
}

/// An address as the list has it: words of four bytes in the order of the machine, in hex.
fn form(ip: IpAddr, port: u16) -> String {
    let words: Vec<u32> = match ip {
        IpAddr::V4(ip) => vec![u32::from_ne_bytes(ip.octets())],
        IpAddr::V6(ip) => {
            let octets = ip.octets();
            let words = octets
                .chunks_exact(4)
                .map(|four| u32::from_ne_bytes([four[0], four[1], four[2], four[3]]));
            words.collect()
        }
    };
    let mut text = String::new();
    for word in words {
        if write!(text, "{word:08X}").is_err() {
            // Writing to a text does not fail.
            return String::new();
        }
    }
    format!("{text}:{port:04X}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_endian = "little")]
    fn the_user_of_a_connection_is_found() {
        let list = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1EA7 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 1 1 0 100 0 0 10 0
   1: 0100007F:C350 0100007F:1EA7 01 00000000:00000000 00:00000000 00000000  1001        0 2 1 0 20 4 30 10 -1
   2: 0100007F:1EA7 0100007F:C350 01 00000000:00000000 00:00000000 00000000  1000        0 3 1 0 20 4 30 10 -1
";
        let client = "127.0.0.1:50000".parse().unwrap();
        let own = "127.0.0.1:7847".parse().unwrap();
        assert_eq!(user_of(list, client, own), Some(1001));
        assert_eq!(user_of(list, own, client), Some(1000));
        assert_eq!(user_of(list, "127.0.0.1:50001".parse().unwrap(), own), None);
        let closed = list.replace("  1001        0 2 1", "     0        0 0 1");
        assert_eq!(user_of(&closed, client, own), None, "closed, so of nobody");
        let root = list.replace("  1001        0 2 1", "     0        0 2 1");
        assert_eq!(user_of(&root, client, own), Some(0));
        assert_eq!(
            form("::1".parse().unwrap(), 80),
            "00000000000000000000000001000000:0050"
        );
    }

    #[test]
    fn a_connection_of_this_process_is_of_the_same_user() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let client = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (stream, address) = listener.accept().unwrap();
        assert_eq!(address, client.local_addr().unwrap());
        let own = stream.local_addr().unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        assert!(runtime.block_on(is_same_user(address, Some(own))));
        assert!(!runtime.block_on(is_same_user(address, None)));
        #[cfg(target_os = "linux")]
        assert!(is_listed(address, own), "where the kernel cannot be asked");
        drop(client);
    }
}
