//! The native module of the Python package `vervet` (python/vervet), which wraps it.
//!
//! # Shape
//! * `database`, `transaction`: calls, with arguments and answers of `call`. `run`: how they run: without the
//!   interpreter lock, ended by Ctrl-C.
//! * `load`: loads, with progress; `frames`: tables in Arrow as sources of a load, by `arrow_import`.
//! * `server`: the HTTP server on an open database. `network`: graphs for algorithms, and their results.
//! * `result`: rows, from tables of `cells`; `arrow`: the same as Arrow streams; `decimal`: their decimals.
//! * `terms`, `literals`: RDF terms and Python values. `gremlin_values`: values of Gremlin.
//! * `error`: one exception for each kind of error.
//! # Invariants
//! No lock is held while Python code runs, and no thread waits for a lock while it has the interpreter lock.
// Except in `arrow_import`.
#![deny(unsafe_code)]

mod arrow;
mod arrow_import;
mod call;
mod cells;
mod database;
mod error;
mod frames;
mod gremlin_values;
mod in_parallel;
mod literals;
mod load;
mod network;
mod result;
mod run;
mod server;
mod terms;
mod transaction;

use pyo3::pymodule;

#[pymodule]
mod _vervet {
    #[pymodule_export]
    use crate::call::Options;
    #[pymodule_export]
    use crate::database::Database;
    #[pymodule_export]
    use crate::network::Network;
    #[pymodule_export]
    use crate::result::Rows;
    #[pymodule_export]
    use crate::server::Server;
    #[pymodule_export]
    use crate::terms::{Blank, Iri, PyLiteral, PyTriple};
    #[pymodule_export]
    use crate::transaction::Transaction;
}
