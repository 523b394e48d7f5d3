//! The open transaction of a shell and its savepoints.

use crate::output::Outcome;
use crate::request::TransactionCommand;
use vervet::{Database, Error, ErrorKind, Isolation, Savepoint, Transaction, TransactionOptions};

/// See the header of this file.
#[derive(Default)]
pub(crate) struct OpenTransaction {
    open: Option<Open>,
}

pub(crate) struct Open {
    pub(crate) transaction: Transaction,
    isolation: Isolation,
    savepoints: Vec<(String, Savepoint)>,
}

impl OpenTransaction {
    /// The open transaction.
    pub(crate) fn open(&mut self) -> Option<&mut Transaction> {
        self.open.as_mut().map(|open| &mut open.transaction)
    }

    /// Its description in the prompt.
    pub(crate) fn describe(&self) -> Option<&'static str> {
        self.open.as_ref().map(|open| match open.isolation {
            Isolation::Snapshot => "snapshot transaction",
            Isolation::Serializable => "transaction",
        })
    }

    /// Runs a command; returns a message for the user.
    pub(crate) fn run(&mut self, control: &TransactionCommand, database: &Database) -> Outcome<String> {
        Ok(match control {
            TransactionCommand::Begin(isolation) => {
                if self.open.is_some() {
                    return Err(input("a transaction is open already", "commit or rollback ends it").into());
                }
                let transaction = database.begin_with(TransactionOptions { isolation: *isolation })?;
                self.open = Some(Open { transaction, isolation: *isolation, savepoints: Vec::new() });
                "the transaction sees the graph as it is now, and its own changes".to_owned()
            }
            TransactionCommand::Commit => {
                let open = self.open.take().ok_or_else(none)?;
                format!("commit {}", open.transaction.commit().map_err(over)?)
            }
            TransactionCommand::Rollback => {
                self.open.take().ok_or_else(none)?.transaction.roll_back();
                "rolled back".to_owned()
            }
            TransactionCommand::Savepoint(name) => {
                let open = self.open.as_mut().ok_or_else(none)?;
                // A later savepoint of the same name hides the earlier one.
                open.savepoints.push((name.clone(), open.transaction.savepoint()));
                format!("savepoint {name}")
            }
            TransactionCommand::RollbackTo(name) => {
                let open = self.open.as_mut().ok_or_else(none)?;
                let at = open.savepoints.iter().rposition(|(other, _)| other == name);
                let Some(at) = at else {
                    let known: Vec<&str> = open.savepoints.iter().map(|(name, _)| name.as_str()).collect();
                    let hint = match known.is_empty() {
                        true => "savepoint NAME makes one".to_owned(),
                        false => format!("there are {}", known.join(", ")),
                    };
                    return Err(input(&format!("there is no savepoint {name}"), &hint).into());
                };
                open.transaction.roll_back_to(&open.savepoints[at].1)?;
                // Later savepoints are no longer valid.
                open.savepoints.truncate(at + 1);
                format!("as it was at savepoint {name}")
            }
            TransactionCommand::Wrong(form) => {
                return Err(input("this is not a command", &format!("write {form}")).into());
            }
        })
    }

    /// Rolls back at the end of the shell; returns whether there was a transaction.
    pub(crate) fn abandon(&mut self) -> bool {
        self.open.take().is_some()
    }
}

fn input(message: &str, hint: &str) -> Error {
    Error::new(ErrorKind::Input, message).with_hint(hint)
}

fn none() -> Error {
    input("there is no open transaction", "begin opens one")
}

/// The error of a commit: the transaction has ended in any case.
fn over(error: Error) -> Error {
    match error.kind() {
        ErrorKind::Conflict => {
            let hint = "nothing was changed: begin again, and run the same requests on the current graph";
            error.with_hint(hint)
        }
        _ => error,
    }
}
