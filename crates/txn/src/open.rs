//! Opening a graph: in memory, for reading, or for writing.

use crate::mutation::Timestamp;
use crate::recovery::{self, Recovered, version_of};
use crate::transactions::{Options, Transactions};
use std::path::Path;
use std::sync::Arc;
use vervet_env::Environment;
use vervet_model::{ErrorKind, Result};
use vervet_store::Store;

impl Transactions {
    /// An empty graph in memory, which exists as long as a pointer to it.
    ///
    /// # Errors
    /// None at present.
    pub fn in_memory(environment: Environment, options: Options) -> Result<Arc<Self>> {
        let version = version_of(Store::empty()?);
        Ok(Self::new(environment, None, options, version, Timestamp::default(), Arc::default()))
    }

    /// Opens the graph in a directory: everything committed at some moment during the call, also by a
    /// concurrent writer process. This process takes the directory when it first writes.
    ///
    /// # Errors
    /// [`ErrorKind::Input`]: there is no database. [`ErrorKind::Corrupt`]: it is damaged.
    pub fn open(environment: Environment, directory: &Path, options: Options) -> Result<Arc<Self>> {
        let Recovered { version, timestamp, constraints, .. } =
            recovery::recover_beside(&environment, directory)?;
        Ok(Self::new(environment, Some(directory.to_owned()), options, version, timestamp, constraints))
    }

    /// [`Transactions::open`] for a process that is going to write: it takes the directory at once, so log
    /// and base are read once, and not again by the first transaction.
    ///
    /// # Errors
    /// As [`Transactions::open`]; [`ErrorKind::Unavailable`]: another process writes to it.
    pub fn open_to_write(environment: Environment, directory: &Path, options: Options) -> Result<Arc<Self>> {
        // Without a database nothing is locked or created.
        Store::open(&environment, directory)?;
        let owner = Self::empty(environment, directory, options)?;
        owner.take_ownership()?;
        Ok(owner)
    }

    /// [`Transactions::open_to_write`], or an empty graph that the first commit or load creates on disk.
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

    /// An empty graph without files.
    fn empty(environment: Environment, directory: &Path, options: Options) -> Result<Arc<Self>> {
        let version = version_of(Store::empty()?);
        let directory = Some(directory.to_owned());
        Ok(Self::new(environment, directory, options, version, Timestamp::default(), Arc::default()))
    }

    /// [`Transactions::open`], or an empty graph that the first commit or load creates on disk.
    ///
    /// # Errors
    /// [`ErrorKind::Corrupt`]: the database is damaged.
    pub fn open_or_create(environment: Environment, directory: &Path, options: Options) -> Result<Arc<Self>> {
        match Self::open(environment.clone(), directory, options.clone()) {
            Err(error) if error.kind() == ErrorKind::Input => Self::empty(environment, directory, options),
            opened => opened,
        }
    }
}
