//! Asking the kernel for one connection, by `sock_diag(7)`. The list in `/proc/net/tcp` has all of them, and takes milliseconds
//! to make.

use std::net::{IpAddr, SocketAddr};

use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, send, socket_with,
};

/// `SOCK_DIAG_BY_FAMILY`, the type of the question and of its answer.
const BY_FAMILY: u16 = 20;
/// `NLM_F_REQUEST`
const REQUEST: u16 = 1;
/// A header of netlink, and the fixed part of the answer before the user.
const HEADER: usize = 16;
const USER: usize = HEADER + 64;
const INODE: usize = USER + 4;

/// The user of the TCP socket with this local and this remote address. `Err` when the kernel cannot be asked; `Ok(None)` when
/// there is no such socket.
pub(super) fn user_of(local: SocketAddr, remote: SocketAddr) -> Result<Option<u32>, ()> {
    let socket = socket_with(
        AddressFamily::NETLINK,
        SocketType::DGRAM,
        SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
        Some(netlink::SOCK_DIAG),
    )
    .map_err(|_| ())?;
    send(&socket, &question(local, remote), SendFlags::empty()).map_err(|_| ())?;
    let mut buffer = [0; 512];
    // The kernel answers before `send` returns.
    let (length, _) = recv(&socket, &mut buffer, RecvFlags::empty()).map_err(|_| ())?;
    answer(&buffer[..length.min(buffer.len())])
}

/// What is asked: this socket and no other.
fn question(local: SocketAddr, remote: SocketAddr) -> Vec<u8> {
    let (local_ip, remote_ip) = (local.ip().to_canonical(), remote.ip().to_canonical());
    let family: u8 = match local_ip {
        IpAddr::V4(_) => 2,
        IpAddr::V6(_) => 10,
    };
    let mut bytes = Vec::with_capacity(72);
    bytes.extend(72_u32.to_ne_bytes());
    bytes.extend(BY_FAMILY.to_ne_bytes());
    bytes.extend(REQUEST.to_ne_bytes());
    bytes.extend([0; 8]);
    // TCP, no extensions, any state.
    bytes.extend([family, 6, 0, 0]);
    bytes.extend(u32::MAX.to_ne_bytes());
    bytes.extend(local.port().to_be_bytes());
    bytes.extend(remote.port().to_be_bytes());
    for ip in [local_ip, remote_ip] {
        let mut words = [0; 16];
        match ip {
            IpAddr::V4(ip) => words[..4].copy_from_slice(&ip.octets()),
            IpAddr::V6(ip) => words = ip.octets(),
        }
        bytes.extend(words);
    }
    // Any interface, and no cookie.
    bytes.extend([0; 4]);
    bytes.extend([0xff; 8]);
    bytes
}

/// What the kernel says: a socket, or an error number.
fn answer(bytes: &[u8]) -> Result<Option<u32>, ()> {
    /// `NLMSG_ERROR`
    const ERROR: u16 = 2;
    /// `-ENOENT`
    const NOT_THERE: i32 = -2;
    let four = |at: usize| -> Result<[u8; 4], ()> {
        let bytes = bytes.get(at..at + 4).ok_or(())?;
        bytes.try_into().map_err(|_| ())
    };
    let kind = bytes.get(4..6).ok_or(())?;
    match u16::from_ne_bytes(kind.try_into().map_err(|_| ())?) {
        // A socket that its process has closed has no inode, and may be said to be root's: whoever sends something and closes at
        // once would pass for root.
        BY_FAMILY if four(INODE)? == [0; 4] => Ok(None),
        BY_FAMILY => Ok(Some(u32::from_ne_bytes(four(USER)?))),
        ERROR if i32::from_ne_bytes(four(HEADER)?) == NOT_THERE => Ok(None),
        _ => Err(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_with_care() {
        assert_eq!(answer(&[]), Err(()));
        let mut error = vec![0; 36];
        error[4] = 2;
        error[HEADER..HEADER + 4].copy_from_slice(&(-2_i32).to_ne_bytes());
        assert_eq!(answer(&error), Ok(None));
        error[HEADER..HEADER + 4].copy_from_slice(&(-1_i32).to_ne_bytes());
        assert_eq!(answer(&error), Err(()));
        let mut found = vec![0; 88];
        found[4] = 20;
        found[USER..USER + 4].copy_from_slice(&1000_u32.to_ne_bytes());
        assert_eq!(answer(&found), Ok(None), "it was closed");
        found[INODE] = 7;
        assert_eq!(answer(&found), Ok(Some(1000)));
        assert_eq!(answer(&found[..82]), Err(()));
    }

    #[test]
    fn the_kernel_knows_the_user_of_a_connection_of_both_families() {
        let own = rustix::process::geteuid().as_raw();
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = std::net::TcpListener::bind(address) else {
                continue;
            };
            let client = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (stream, peer) = listener.accept().unwrap();
            // A sandbox may forbid it; then the list is read.
            if let Ok(user) = user_of(peer, stream.local_addr().unwrap()) {
                assert_eq!(user, Some(own), "{address}");
            }
            drop(client);
            let nobody = "127.0.0.1:1".parse().unwrap();
            assert!(!matches!(user_of(nobody, nobody), Ok(Some(_))));
        }
    }
}
