//! A server of the day: a process.

use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use vervet_model::lock;

/// A server.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) name: String,
    pub(super) http: String,
    pub(super) directory: PathBuf,
    /// The program of its next start.
    pub(super) program: Mutex<PathBuf>,
    pub(super) process: Mutex<Option<Child>>,
    /// The load balancer sends requests to it.
    pub(super) is_in_rotation: AtomicBool,
}

impl Node {
    pub(super) fn new(name: &str, http: String, directory: PathBuf, program: &Path) -> Arc<Self> {
        Arc::new(Self {
            name: name.to_owned(),
            http,
            directory,
            program: Mutex::new(program.to_owned()),
            process: Mutex::default(),
            is_in_rotation: AtomicBool::new(false),
        })
    }

    pub(super) fn rotate(&self, is_in: bool) {
        self.is_in_rotation.store(is_in, Ordering::SeqCst);
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        if let Some(mut process) = lock(&self.process).take() {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}
