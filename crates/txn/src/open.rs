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

    /// The graph in a directory: everything that had been committed at some moment during the call, also by a process
    /// that is writing to it now. The directory becomes this process's own when it first writes.
    ///
    /// # Errors
    /// [`ErrorKind::Input`]: there is no database. [`ErrorKind::Corrupt`]: it is damaged.
    pub fn open(environment: Environment, directory: &Path, options: Options) -> Result<Arc<Self>> {
        let Recovered { version, timestamp, constraints, .. } =
            recovery::recover_beside(&environment, directory)?;
        Ok(Self::new(environment, Some(directory.to_owned()), options, version, timestamp, constraints))
    }

    /// [`Transactions::open`], or an empty graph that the first commit or load will put there.
    ///
    /// # Errors
    /// [`ErrorKind::Corrupt`]: what is there is damaged.
    pub fn open_or_create(environment: Environment, directory: &Path, options: Options) -> Result<Arc<Self>> {
        match Self::open(environment.clone(), directory, options.clone()) {
            Err(error) if error.kind() == ErrorKind::Input => {
                let version = version_of(Store::empty()?);
                let directory = Some(directory.to_owned());
                Ok(Self::new(environment, directory, options, version, Timestamp::default(), Arc::default()))
            }
            opened => opened,
        }
    }
}
