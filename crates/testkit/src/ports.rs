//! Addresses for servers that tests start.

use std::net::TcpListener;
use std::sync::atomic::{AtomicU32, Ordering};

/// Ports from here on are given out: below those that systems give to connections (32,768 on Linux, 49,152
/// elsewhere), since a port that was free and is used again only later could be one of a connection by then.
const FIRST: u32 = 10_000;
const COUNT: u32 = 20_000;

/// A loopback address with a port that nobody listens on, and that no other call of this process gives out.
///
/// # Panics
/// There is none.
#[must_use]
pub fn free_address() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    // Processes begin far from each other.
    let first = std::process::id().wrapping_mul(7_919);
    (0..COUNT)
        .find_map(|_| {
            let port = FIRST + first.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed)) % COUNT;
            let address = format!("127.0.0.1:{port}");
            TcpListener::bind(&address).is_ok().then_some(address)
        })
        .expect("a free port")
}
