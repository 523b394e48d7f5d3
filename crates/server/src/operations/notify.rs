//! Service-manager notification (`sd_notify(3)`): the server is ready, or is stopping.
//!
//! Sends a datagram to the socket in `NOTIFY_SOCKET`; without it, does nothing. No thread waits for delivery.

/// The server accepts requests.
pub(crate) const READY: &str = "READY=1";

/// The server accepts no more connections.
pub(crate) const STOPPING: &str = "STOPPING=1";

#[cfg(unix)]
pub(crate) fn notify(state: &str) {
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::net::{SocketAddr, UnixDatagram};

    let Some(name) = std::env::var_os("NOTIFY_SOCKET") else { return };
    let address = match name.as_bytes().strip_prefix(b"@") {
        None => SocketAddr::from_pathname(&name),
        #[cfg(target_os = "linux")]
        Some(name) => {
            use std::os::linux::net::SocketAddrExt;
            SocketAddr::from_abstract_name(name)
        }
        #[cfg(not(target_os = "linux"))]
        Some(_) => return,
    };
    let send = || UnixDatagram::unbound()?.send_to_addr(state.as_bytes(), &address?);
    if let Err(error) = send() {
        tracing::warn!(%error, state, "could not notify the service manager");
    }
}

#[cfg(not(unix))]
pub(crate) fn notify(_state: &str) {}
