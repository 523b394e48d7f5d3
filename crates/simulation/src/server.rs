//! A server in the simulation: the cluster's own code on a node, and threads that answer clients.
//!
//! # Shape
//! A life of a server begins with [`Server::start`] and ends with [`Server::kill`], or in order with
//! [`Server::end`]. Each life has a node of its own. Between lives its disk stays: the log of the voter is on
//! a simulated disk, which forgets what was not synced; other files are real ones in memory.
//! Clients put requests into the mailbox of a life and look for the answer. A request at a server that dies
//! gets none. No thread waits while it has the lock of a mailbox.

use crate::disk::Disk;
use crate::machine::{self, Node};
use crate::transaction::{Answer, Request, answer, execute};
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use vervet::{DatabaseOptions, Environment};
use vervet_cluster::Cluster;
use vervet_model::lock;

/// Threads of a server that answer clients.
const WORKERS: usize = 16;

/// How often a client looks whether the server that it has asked is dead.
const LOOK_NS: u64 = 50_000_000;

/// How long a thread waits for a request.
const IDLE_NS: u64 = 10_000_000_000;

/// A request, and where its answer goes.
pub(crate) struct Job {
    request: Request,
    answer: Mutex<Option<Answer>>,
    key: usize,
}

/// The requests of one life of a server.
pub(crate) struct Mailbox {
    jobs: Mutex<VecDeque<Arc<Job>>>,
    key: usize,
    ending_key: usize,
    is_ending: AtomicBool,
    has_ended: AtomicBool,
    /// Why the server did not start.
    pub(crate) failure: Mutex<Option<String>>,
}

/// One life.
#[derive(Clone)]
pub(crate) struct Life {
    pub(crate) number: u64,
    pub(crate) node: Node,
    pub(crate) mailbox: Arc<Mailbox>,
}

/// See the header of this file.
pub(crate) struct Server {
    pub(crate) name: String,
    pub(crate) directory: PathBuf,
    pub(crate) disk: Disk,
    /// Thousandths of the speed of time.
    rate: u64,
    lives: u64,
    pub(crate) life: Option<Life>,
    /// Only the operator starts it.
    pub(crate) is_held: bool,
    /// It has left.
    pub(crate) is_gone: bool,
}

impl Server {
    pub(crate) fn new(name: String, directory: PathBuf, seed: u64, rate: u64) -> std::io::Result<Self> {
        let disk = Disk::new(seed, &directory)?;
        Ok(Self { name, directory, disk, rate, lives: 0, life: None, is_held: false, is_gone: false })
    }

    /// Begins a life.
    pub(crate) fn start(&mut self) {
        let node = machine::add_node(self.rate);
        let [key, ending_key] = machine::with(|world| [world.new_key(), world.new_key()]);
        let mailbox = Arc::new(Mailbox {
            jobs: Mutex::default(),
            key,
            ending_key,
            is_ending: AtomicBool::new(false),
            has_ended: AtomicBool::new(false),
            failure: Mutex::default(),
        });
        self.lives += 1;
        self.life = Some(Life { number: self.lives, node, mailbox: Arc::clone(&mailbox) });
        let (directory, environment) = (self.directory.clone(), self.disk.environment());
        machine::move_to(node);
        let started = std::thread::Builder::new().spawn(move || run(&directory, environment, &mailbox));
        machine::move_to(0);
        started.expect("a thread");
    }

    /// The server dies now. `power`: its machine does, and says nothing to the others.
    pub(crate) fn kill(&mut self, power: bool, reorders: bool) {
        let Some(life) = self.life.take() else { return };
        machine::with(|world| {
            world.kill(life.node);
            world.cut_off(life.node, !power);
        });
        self.disk.crash(power, reorders);
    }

    /// Asks the server to end in order.
    pub(crate) fn end(&self) {
        if let Some(life) = &self.life {
            life.mailbox.is_ending.store(true, Ordering::Relaxed);
            machine::with(|world| {
                world.wake(life.mailbox.key, usize::MAX);
                world.wake(life.mailbox.ending_key, usize::MAX);
            });
        }
    }

    /// The dead server loses its log, or with `whole` also its data, and all that it knows of its log.
    pub(crate) fn lose_disk(&mut self, seed: u64, whole: bool) -> Result<(), String> {
        let failed = |error: std::io::Error| format!("a disk was not lost: {error}");
        self.disk = Disk::new(seed, &self.directory).map_err(failed)?;
        for entry in std::fs::read_dir(&self.directory).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if whole && name.starts_with("data") {
                std::fs::remove_dir_all(&path).map_err(failed)?;
            } else if whole && name.starts_with("voter-") {
                std::fs::remove_file(&path).map_err(failed)?;
            }
        }
        Ok(())
    }

    /// Whether it says that it is ready: it votes, and shows all that was committed before its start.
    pub(crate) fn is_ready(&self) -> bool {
        let read = self.life.as_ref().and_then(|life| life.ask(Request::Read { strict: false }, LOOK_NS * 4));
        matches!(read, Some(Answer::Registers(..)))
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.life.as_ref().is_none_or(|life| life.mailbox.has_ended.load(Ordering::Relaxed))
    }
}

fn run(directory: &std::path::Path, environment: Environment, mailbox: &Arc<Mailbox>) {
    let options = DatabaseOptions { environment, ..DatabaseOptions::default() };
    let cluster = match Cluster::open(directory, &options) {
        Ok(cluster) => Arc::new(cluster),
        Err(error) => {
            *lock(&mailbox.failure) = Some(error.to_string());
            return;
        }
    };
    let database = cluster.database().clone();
    cluster.on_forwarded(Box::new(move |request| Ok(execute(&database, request))));
    let workers: Vec<_> = (0..WORKERS)
        .map(|_| {
            let (cluster, mailbox) = (Arc::clone(&cluster), Arc::clone(mailbox));
            std::thread::spawn(move || work(&cluster, &mailbox))
        })
        .collect();
    while !mailbox.is_ending.load(Ordering::Relaxed) {
        machine::wait_for(mailbox.ending_key, IDLE_NS);
    }
    cluster.resign();
    cluster.wait_for_forwarded(Duration::from_secs(5));
    for worker in workers {
        _ = worker.join();
    }
    drop(cluster);
    mailbox.has_ended.store(true, Ordering::Relaxed);
}

fn work(cluster: &Arc<Cluster>, mailbox: &Mailbox) {
    loop {
        let job = lock(&mailbox.jobs).pop_front();
        match job {
            Some(job) => {
                let answer = answer(cluster, &job.request);
                *lock(&job.answer) = Some(answer);
                machine::with(|world| world.wake(job.key, usize::MAX));
            }
            None if mailbox.is_ending.load(Ordering::Relaxed) => return,
            None => _ = machine::wait_for(mailbox.key, IDLE_NS),
        }
    }
}

impl Life {
    /// Sends a request, and waits for its answer as long as the server lives, for `time_max_ns` at most.
    pub(crate) fn ask(&self, request: Request, time_max_ns: u64) -> Option<Answer> {
        if self.mailbox.is_ending.load(Ordering::Relaxed) {
            return Some(Answer::Unavailable);
        }
        let key = machine::with(machine::World::new_key);
        let job = Arc::new(Job { request, answer: Mutex::default(), key });
        lock(&self.mailbox.jobs).push_back(Arc::clone(&job));
        let end = machine::with(|world| {
            world.wake(self.mailbox.key, 1);
            world.now() + time_max_ns
        });
        loop {
            if let Some(answer) = lock(&job.answer).take() {
                return Some(answer);
            }
            let (is_over, is_dead) = machine::with(|world| (world.now() >= end, world.is_dead(self.node)));
            if is_over || is_dead || self.mailbox.has_ended.load(Ordering::Relaxed) {
                return None;
            }
            machine::wait_for(key, LOOK_NS);
        }
    }

    /// Whether it is dead, ends, and has ended.
    pub(crate) fn state(&self) -> [bool; 3] {
        let is = |flag: &AtomicBool| flag.load(Ordering::Relaxed);
        [
            machine::with(|world| world.is_dead(self.node)),
            is(&self.mailbox.is_ending),
            is(&self.mailbox.has_ended),
        ]
    }

    /// Why the server did not start.
    pub(crate) fn failure(&self) -> Option<String> {
        lock(&self.mailbox.failure).clone()
    }
}
