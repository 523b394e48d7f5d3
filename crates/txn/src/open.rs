//! Opening a graph.

use crate::change::Timestamp;
use crate::recovery::{self, Recovered, version_of};
use crate::transactions::{Options, Transactions};
use std::path::Path;
use std::sync::Arc;
use vervet_env::Environment;
use vervet_model::{ErrorKind, Result};
use vervet_store::Store;

impl Transactions {
    /// An empty graph that is gone with the last pointer to it.
    ///
    /// # Errors
    /// None that is known.
    pub fn in_memory(environment: Environment, options: Options) -> Result<Arc<Self>> {
        let version = version_of(Store::empty()?);
        Ok(Self::new(environment, None, options, version, Timestamp::default(), Arc::default()))
    }

    /// The graph in a directory: everything that had been committed at some moment during the call, also by a
    /// process that is writing to it now. The directory becomes this process's own when it first writes.
    ///
    /// # Errors
    /// [`ErrorKind::Input`]: there is no database. [`ErrorKind::Corrupt`]: it is damaged.
    pub fn open(environment: Environment, directory: &Path, options: Options) -> Result<Arc<Self>> {
        let Recovered { version, timestamp, constraints, .. } =
            recovery::recover_beside(&environment, directory)?;
        Ok(Self::new(environment, Some(directory.to_owned()), options, version, timestamp, constraints))
    }

    /// [`Transactions::open`] for a process that is going to write: the directory becomes its own at once, so
    /// log and base are read once, and not again by the first transaction.
    ///
    /// # Errors
    /// As [`Transactions::open`]; [`ErrorKind::Unavailable`]: another process writes to it.
    pub fn open_to_write(environment: Environment, directory: &Path, options: Options) -> Result<Arc<Self>> {
        // Nothing is locked, and so nothing made, where no database is.
        Store::open(&environment, directory)?;
        let owner = Self::empty(environment, directory, options)?;
        owner.own()?;
        Ok(owner)
    }

    /// [`Transactions::open_to_write`], or an empty graph that the first commit or load will put there.
    ///
    /// # Errors
    /// As [`Transactions::open_to_write`].
    pub fn open_or_create_to_write(
        environment: Environment,
        directory: &Path,
        options: Options,
    ) -> Result<Arc<Self>> {
        match Self::open_to_write(environment.clone(), directory, options.clone()) {
            Err(error) if error.kind() == ErrorKind::Input => Self::empty(environment, directory, options),
            opened => opened,
        }
    }

    /// An empty graph that is in no file yet.
    fn empty(environment: Environment, directory: &Path, options: Options) -> Result<Arc<Self>> {
        let version = version_of(Store::empty()?);
        let directory = Some(directory.to_owned());
        Ok(Self::new(environment, directory, options, version, Timestamp::default(), Arc::default()))
    }

    /// [`Transactions::open`], or an empty graph that the first commit or load will put there.
    ///
    /// # Errors
    /// [`ErrorKind::Corrupt`]: what is there is damaged.
    pub fn open_or_create(environment: Environment, directory: &Path, options: Options) -> Result<Arc<Self>> {
        match Self::open(environment.clone(), directory, options.clone()) {
            Err(error) if error.kind() == ErrorKind::Input => Self::empty(environment, directory, options),
            opened => opened,
        }
    }
}
