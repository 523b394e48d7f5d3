//! The addresses of a server, looked up aside: the system may take long over a name, and cannot be stopped.

use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Addresses of a name are looked up again after this time; meanwhile the old ones are used.
const FRESH_FOR: Duration = Duration::from_secs(30);

/// See the header of this file.
pub(crate) struct Addresses {
    shared: Arc<Shared>,
}

struct Shared {
    /// Host and port.
    text: String,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    known: Vec<SocketAddr>,
    /// When they were looked up; `None`: never.
    since: Option<Instant>,
    /// Why the last time failed.
    error: Option<String>,
    is_looking: bool,
}

impl Addresses {
    /// Those of `text`, a host and a port.
    pub(crate) fn new(text: &str) -> Self {
        let state = Mutex::default();
        Self { shared: Arc::new(Shared { text: text.to_owned(), state, changed: Condvar::new() }) }
    }

    /// Host and port.
    pub(crate) fn text(&self) -> &str {
        &self.shared.text
    }

    /// The addresses, or why there are none. `wait` says before each wait how long it may take, or fails.
    pub(crate) fn get<E>(
        &self,
        mut wait: impl FnMut() -> Result<Duration, E>,
    ) -> Result<Result<Vec<SocketAddr>, String>, E> {
        if let Ok(address) = self.shared.text.parse() {
            return Ok(Ok(vec![address]));
        }
        let mut state = self.shared.lock();
        if state.since.is_none_or(|since| since.elapsed() > FRESH_FOR) && !state.is_looking {
            state.is_looking = true;
            let shared = Arc::clone(&self.shared);
            let looking = std::thread::Builder::new().name("peer-name".to_owned());
            if let Err(error) = looking.spawn(move || shared.look_up()) {
                state.is_looking = false;
                state.error = Some(error.to_string());
            }
        }
        while state.is_looking && state.known.is_empty() {
            let slice = wait()?;
            state = self.shared.changed.wait_timeout(state, slice).unwrap_or_else(PoisonError::into_inner).0;
        }
        Ok(match (state.known.is_empty(), &state.error) {
            (false, _) => Ok(state.known.clone()),
            (true, Some(error)) => Err(error.clone()),
            (true, None) => Err("its name has no address".to_owned()),
        })
    }
}

impl Addresses {
    /// None of them answers: they are looked up again at the next connection.
    pub(crate) fn distrust(&self) {
        self.shared.lock().since = None;
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn look_up(&self) {
        let found = self.text.to_socket_addrs().map(Iterator::collect::<Vec<_>>);
        let mut state = self.lock();
        state.is_looking = false;
        match found {
            Ok(found) => {
                // One that is not found is looked for again at the next connection.
                state.since = (!found.is_empty()).then(Instant::now);
                state.known = found;
                state.error = None;
            }
            // A name server that does not answer takes nothing away.
            Err(error) => state.error = Some(error.to_string()),
        }
        drop(state);
        self.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn get(addresses: &Addresses) -> Result<Vec<SocketAddr>, String> {
        let waits = || Ok::<_, ()>(Duration::from_secs(1));
        addresses.get(waits).expect("no wait fails")
    }

    #[test]
    fn names_are_looked_up_aside() {
        let literal = Addresses::new("127.0.0.1:80");
        assert_eq!(literal.get(|| Err(())), Ok(Ok(vec![SocketAddr::from(([127, 0, 0, 1], 80))])));
        let named = Addresses::new("localhost:81");
        let found = get(&named).expect("an address of this machine");
        assert!(found.iter().all(|address| address.ip().is_loopback() && address.port() == 81), "{found:?}");
        // They are known now: there is no wait.
        assert_eq!(named.get(|| Err(())), Ok(Ok(found)));
        let unknown = Addresses::new("no-such-host.invalid:82");
        assert!(get(&unknown).is_err() && get(&unknown).is_err());
        // Without a port it is no address.
        assert!(get(&Addresses::new("localhost")).is_err());
    }
}
