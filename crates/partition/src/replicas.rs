//! Partitions that several servers have, as one part of a graph.
//!
//! # Shape
//! A request goes to the first server that is not suspected to be down. If it cannot be reached, or does not
//! answer, the next one gets the same request: what servers have of these partitions is equal, and requests
//! only read. The servers may have more partitions, so each request names those that it is for.
//! # Cost
//! The bytes of each request are kept until it is answered. A server that is silent holds a request up for
//! the time after which connections give up; then it is suspected, and asked last.

use crate::bytes;
use crate::remote::{Answer, Remote};
use std::sync::Arc;
use vervet_model::{Error, ErrorKind, Result, ThreadLimits};

/// See the header of this file.
#[derive(Debug)]
pub struct Replicas {
    /// In the order in which they are asked.
    servers: Vec<Arc<dyn Remote>>,
    /// Names the partitions.
    prefix: Vec<u8>,
}

impl Replicas {
    /// `servers`: those that have all of `partitions` (ascending) of a build, in the order in which they are
    /// asked.
    #[must_use]
    pub fn new(servers: Vec<Arc<dyn Remote>>, build: u64, partitions: &[usize]) -> Self {
        let mut prefix = Vec::new();
        bytes::write_partitions(build, partitions, &mut prefix);
        Self { servers, prefix }
    }

    /// The positions of the servers in the order in which they are asked at present.
    fn order(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.servers.len()).collect();
        order.sort_by_key(|at| self.servers[*at].is_suspected());
        order
    }

    /// Sends a request to the first server of `left` that takes it. `failure`: that of the one before.
    fn send_to<'a>(
        &'a self,
        mut left: std::vec::IntoIter<usize>,
        request: Vec<u8>,
        mut failure: Error,
    ) -> Result<Sent<'a>> {
        for at in left.by_ref() {
            ThreadLimits::check()?;
            match self.servers[at].send(&request) {
                Ok(answer) => return Ok(Sent { replicas: self, answer, request, left }),
                Err(error) if error.kind() == ErrorKind::Unavailable => failure = error,
                Err(error) => return Err(error),
            }
        }
        Err(failure)
    }
}

impl Remote for Replicas {
    /// That of the server which is asked first at present.
    fn name(&self) -> &str {
        let usable = self.servers.iter().find(|server| !server.is_suspected());
        usable.or(self.servers.first()).map_or("", |server| server.name())
    }

    fn is_suspected(&self) -> bool {
        self.servers.iter().all(|server| server.is_suspected())
    }

    fn send<'a>(&'a self, request: &[u8]) -> Result<Box<dyn Answer + 'a>> {
        let none = Error::new(ErrorKind::Unavailable, "no server has these partitions");
        let request = [&self.prefix, request].concat();
        Ok(Box::new(self.send_to(self.order().into_iter(), request, none)?))
    }
}

/// A request that a server has taken.
struct Sent<'a> {
    replicas: &'a Replicas,
    answer: Box<dyn Answer + 'a>,
    request: Vec<u8>,
    /// The servers that have not been asked yet.
    left: std::vec::IntoIter<usize>,
}

impl Answer for Sent<'_> {
    fn receive(self: Box<Self>) -> Result<Vec<u8>> {
        let mut sent = *self;
        loop {
            match sent.answer.receive() {
                Err(error) if error.kind() == ErrorKind::Unavailable => {
                    sent = sent.replicas.send_to(sent.left, sent.request, error)?;
                }
                received => return received,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicBool, Ordering};
    use vervet_model::lock;

    /// A server that answers with its name.
    #[derive(Debug, Default)]
    struct Server {
        name: &'static str,
        /// Refuses requests, or answers none.
        is_down: AtomicBool,
        is_silent: AtomicBool,
        is_suspected: AtomicBool,
        failure: Option<ErrorKind>,
        requests: Mutex<Vec<Vec<u8>>>,
    }

    struct Name(Result<Vec<u8>>);

    impl Answer for Name {
        fn receive(self: Box<Self>) -> Result<Vec<u8>> {
            self.0
        }
    }

    impl Remote for Server {
        fn name(&self) -> &str {
            self.name
        }

        fn is_suspected(&self) -> bool {
            self.is_suspected.load(Ordering::Relaxed)
        }

        fn send<'a>(&'a self, request: &[u8]) -> Result<Box<dyn Answer + 'a>> {
            let down = || Error::new(ErrorKind::Unavailable, format!("server {} is down", self.name));
            if self.is_down.load(Ordering::Relaxed) {
                return Err(down());
            }
            lock(&self.requests).push(request.to_vec());
            Ok(Box::new(Name(match self.failure {
                Some(kind) => Err(Error::new(kind, "another failure")),
                None if self.is_silent.load(Ordering::Relaxed) => Err(down()),
                None => Ok(self.name.as_bytes().to_vec()),
            })))
        }
    }

    fn server(name: &'static str) -> Arc<Server> {
        Arc::new(Server { name, ..Server::default() })
    }

    #[test]
    fn the_next_server_answers_for_one_that_is_down() {
        let (one, other) = (server("a"), server("b"));
        let replicas = Replicas::new(vec![Arc::clone(&one) as _, Arc::clone(&other) as _], 7, &[1, 5]);
        let ask = || {
            let answer = replicas.send(b"?")?.receive()?;
            Ok::<_, Error>(String::from_utf8(answer).expect("a name"))
        };
        assert_eq!((ask().expect("answered").as_str(), replicas.name()), ("a", "a"));
        one.is_silent.store(true, Ordering::Relaxed);
        assert_eq!(ask().expect("answered"), "b");
        one.is_down.store(true, Ordering::Relaxed);
        assert_eq!(ask().expect("answered"), "b");
        // One that is suspected is asked last, and asked all the same.
        other.is_suspected.store(true, Ordering::Relaxed);
        one.is_down.store(false, Ordering::Relaxed);
        one.is_silent.store(false, Ordering::Relaxed);
        one.is_suspected.store(true, Ordering::Relaxed);
        assert!(replicas.is_suspected());
        other.is_down.store(true, Ordering::Relaxed);
        assert_eq!(ask().expect("answered"), "a");
        one.is_down.store(true, Ordering::Relaxed);
        let failed = ask().expect_err("both are down");
        assert_eq!((failed.kind(), failed.message()), (ErrorKind::Unavailable, "server b is down"));
        // Each request was the same.
        let requests = [&one, &other].map(|server| lock(&server.requests).clone()).concat();
        assert!(requests.iter().all(|request| *request == requests[0]), "{requests:?}");
    }

    #[test]
    fn other_failures_are_those_of_the_request() {
        let one = Arc::new(Server { failure: Some(ErrorKind::Corrupt), name: "a", ..Server::default() });
        let other = server("b");
        let replicas = Replicas::new(vec![one, Arc::clone(&other) as _], 7, &[0]);
        let failed = replicas.send(b"?").and_then(|answer| answer.receive()).expect_err("damaged");
        assert_eq!(failed.kind(), ErrorKind::Corrupt);
        assert!(lock(&other.requests).is_empty());
    }
}
