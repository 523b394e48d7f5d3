//! Addresses for servers that tests start.

use std::net::TcpListener;
use std::sync::atomic::{AtomicU32, Ordering};

/// The first port of the range. It ends below the ports that systems give to connections (from 32,768 on
/// Linux, 49,152 elsewhere): a connection could take one of those before the server starts.
const FIRST: u32 = 10_000;
const COUNT: u32 = 20_000;

/// A loopback address with a free port. Each call in a process returns another one.
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
