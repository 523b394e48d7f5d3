//! Schema changes: adding, removing and keeping constraints while transactions run.
//!
//! # Shape
//! The constraints are part of what a commit publishes, beside the version of the graph. Changing them is a
//! commit of its own, with a timestamp and a record that lists all constraints from then on.
//! # Why every commit satisfies the constraints
//! A constraint is checked on a whole version without a lock; then, under the lock of the head, on the
//! commits since. A transaction that began with other constraints than those of the head conflicts, whatever
//! it changed; so every committing transaction was checked against the current constraints.
//! # Ids
//! The IRIs of a constraint, and `rdf:type`, get ids when it is added; terms precede every record that uses
//! them in the log, and a checkpoint keeps all terms.

use crate::change::Change;
use crate::committed::Changes;
use crate::constraint::Constraint;
use crate::constraints::Constraints;
use crate::reads::ReadSet;
use crate::record;
use crate::sync::MutexGuard;
use crate::transaction::{Isolation, Transaction};
use crate::transactions::{Head, Published, Transactions};
use std::sync::{Arc, PoisonError};
use vervet_delta::Version;
use vervet_dictionary::Dictionary;
use vervet_log::Lsn;
use vervet_model::{Error, ErrorKind, Id, Result, Watch};
use vervet_store::{CheckpointPosition, NewDictionary, Store, StoreBuilder, Target};

/// Maximum attempts of a constraint change that collides with other constraint changes or loads.
const ATTEMPTS_MAX: u32 = 10;
/// Maximum number of concurrent changes that are checked under the lock.
const LOCKED_CHANGES_MAX: usize = 1 << 10;
/// Maximum number of rounds that check those changes without the lock before.
const ROUNDS_MAX: u32 = 8;

/// Replacement of a graph: see [`Transactions::replace_graph`].
#[derive(Debug)]
pub struct Successor<'a> {
    /// The current graph.
    pub version: &'a Version,
    /// The log position that the new manifest must state.
    pub log: Option<CheckpointPosition>,
    pub(crate) constraints: &'a Constraints,
}

impl Successor<'_> {
    /// Makes the store, which keeps the constraints of the graph.
    ///
    /// # Errors
    /// [`ErrorKind::Constraint`]: the new graph violates one; then the directory is unchanged. As
    /// [`StoreBuilder::finish`]. Those of `watch`, which should also be the one of `builder`.
    pub fn finish<'d>(
        &self,
        mut builder: StoreBuilder<'_>,
        dictionary: impl Into<NewDictionary<'d>>,
        target: &Target,
        watch: &Watch<'_>,
    ) -> Result<Store> {
        if self.constraints.is_empty() {
            return builder.finish(dictionary, target);
        }
        builder.set_constraints(self.constraints.texts());
        builder.finish_checked(dictionary, target, &mut |store| self.constraints.check_all(store, watch))
    }
}

impl Published {
    /// The constraints of this version, ascending.
    #[must_use]
    pub fn constraints(&self) -> Vec<Constraint> {
        self.constraints.list().cloned().collect()
    }
}

impl Transactions {
    /// The constraints of every version from the newest one on, ascending.
    #[must_use]
    pub fn constraints(&self) -> Vec<Constraint> {
        self.current().constraints()
    }

    /// Adds a constraint; the check of the graph runs concurrently with transactions. `false` if it exists
    /// already. Transactions that are about to change the graph conflict and must be repeated.
    ///
    /// # Errors
    /// [`ErrorKind::Constraint`]: the graph violates it; the message names the first vertices that do.
    /// [`ErrorKind::Conflict`]: repeated collisions with other constraint changes or loads. As
    /// [`Transactions::begin`].
    ///
    /// # Cost
    /// See `constraint_scan`.
    pub fn add_constraint(self: &Arc<Self>, constraint: &Constraint) -> Result<bool> {
        self.change_constraints(&mut |has| (!has.contains(constraint)).then(|| has.push(constraint.clone())))
    }

    /// Removes a constraint; `false` if it does not exist.
    ///
    /// # Errors
    /// As [`Transactions::add_constraint`], without the violation.
    pub fn remove_constraint(self: &Arc<Self>, constraint: &Constraint) -> Result<bool> {
        self.change_constraints(&mut |has| {
            let at = has.iter().position(|one| one == constraint)?;
            has.remove(at);
            Some(())
        })
    }

    /// Applies `change` to the list of constraints; `None` leaves it unchanged.
    fn change_constraints(
        self: &Arc<Self>,
        change: &mut dyn FnMut(&mut Vec<Constraint>) -> Option<()>,
    ) -> Result<bool> {
        for attempt in 1.. {
            // An active transaction prevents the commits since its begin from being dropped.
            let transaction = self.begin(Isolation::Serializable)?;
            let mut list: Vec<Constraint> = transaction.began.constraints.list().cloned().collect();
            let before = list.clone();
            if change(&mut list).is_none() {
                // The caller may rely on a constraint as soon as it is reported.
                if let Some((log, lsn)) = self.log()?.zip(transaction.began.lsn.get()) {
                    log.wait(*lsn)?;
                }
                return Ok(false);
            }
            let mut id = |iri: &str| transaction.intern(oxrdf::NamedNodeRef::new_unchecked(iri).into());
            let new = list.iter().filter(|one| !before.contains(one)).cloned();
            let new = Constraints::new(new, &mut id)?;
            let all = Arc::new(Constraints::new(list, &mut id)?);
            new.check_all(&transaction.began.version, &Watch::new("check"))?;
            match self.publish_constraints(&transaction, &new, all) {
                Err(error) if error.kind() == ErrorKind::Conflict && attempt < ATTEMPTS_MAX => {}
                published => return published.map(|()| true),
            }
        }
        Err(Error::internal("a change of the constraints did not end"))
    }

    /// Makes `all` the constraints of the graph, of which `new` hold for the version that `transaction` began
    /// with.
    fn publish_constraints(
        &self,
        transaction: &Transaction,
        new: &Constraints,
        all: Arc<Constraints>,
    ) -> Result<()> {
        let log = self.log()?;
        if let Some(log) = log {
            // The IRIs of the constraints are terms.
            self.log_terms(log)?;
        }
        let mut head = self.head_keeping(&transaction.began, new)?;
        if let Some(failure) = self.failure.get() {
            return Err(failure.clone());
        }
        let timestamp = head.published.timestamp.next();
        let mut bytes = Vec::new();
        record::write_constraints(timestamp, &all.texts(), &mut bytes);
        let version = head.published.version.clone();
        let published = Arc::new(Published { constraints: all, ..head.published.with(version, timestamp) });
        let publish = self.publish_visible(&published);
        let mut lsn = None;
        match log {
            Some(log) => {
                let appended = log.append_then(record::CONSTRAINTS, &bytes, publish)?;
                let set = published.lsn.set(appended);
                assert!(set.is_ok(), "a version is appended once");
                lsn = Some(appended);
            }
            None => publish(Lsn(0)),
        }
        self.publish_newest(&published);
        head.committed.push(timestamp, Changes::Listed(Arc::new([])));
        head.published = published;
        drop(head);
        if let Some((log, lsn)) = log.zip(lsn) {
            log.wait(lsn)?;
        }
        Ok(())
    }

    /// Returns the head, locked, once `new` has been checked against every commit since `began`.
    fn head_keeping(&self, began: &Published, new: &Constraints) -> Result<MutexGuard<'_, Head>> {
        let conflict = |what: &str| {
            let message = format!("the constraints could not be changed while {what}");
            Error::new(ErrorKind::Conflict, message).with_hint("try again")
        };
        let mut checked = began.timestamp;
        for round in 0.. {
            let head = self.head_for_writing()?;
            if !Arc::ptr_eq(&head.published.constraints, &began.constraints) {
                return Err(conflict("other transactions changed them"));
            }
            let commits = head.committed.after(checked).ok_or_else(|| conflict("much was committed"))?;
            let mut changes: Vec<Change> = Vec::new();
            for (timestamp, one) in commits {
                match one {
                    Changes::All => return Err(conflict("data were loaded")),
                    Changes::Listed(listed) => changes.extend_from_slice(listed),
                }
                checked = timestamp;
            }
            let newest = Arc::clone(&head.published);
            let check = || new.check(&newest.version, &changes, &mut ReadSet::default());
            if changes.len() <= LOCKED_CHANGES_MAX || round >= ROUNDS_MAX {
                check()?;
                return Ok(head);
            }
            drop(head);
            check()?;
        }
        Err(Error::internal("a check of constraints did not end"))
    }
}

impl Transaction {
    /// Checks the constraints that the transaction began with. The reads of the check are in its read set.
    pub(crate) fn check_constraints(&mut self) -> Result<()> {
        if self.began.constraints.is_empty() {
            return Ok(());
        }
        let mut reads = std::mem::take(self.reads.get_mut().unwrap_or_else(PoisonError::into_inner));
        let checked =
            self.version().and_then(|own| self.began.constraints.check(own, &self.changes, &mut reads));
        self.reads = std::sync::Mutex::new(reads);
        checked
    }
}

/// The constraints in a manifest or log, for a graph with this base and these terms.
///
/// # Errors
/// [`ErrorKind::Corrupt`]: a text is not a constraint, or uses a term that does not exist.
pub(crate) fn recovered(texts: &[String], version: &Version) -> Result<Arc<Constraints>> {
    let damaged =
        |what: String| Error::new(ErrorKind::Corrupt, what).with_hint("restore this database from a backup");
    let parse = |text: &String| {
        text.parse::<Constraint>().map_err(|error| damaged(format!("a constraint is damaged: {error}")))
    };
    let constraints = texts.iter().map(parse).collect::<Result<Vec<_>>>()?;
    let dictionary: &Dictionary = version.base().dictionary();
    let mut id = |iri: &str| -> Result<Id> {
        let term = oxrdf::NamedNodeRef::new_unchecked(iri).into();
        // Not through the version: a term may be unused by statements.
        let found = match dictionary.lookup(term)? {
            None => version.terms().lookup(term),
            found => found,
        };
        found.ok_or_else(|| damaged(format!("a constraint is about {term}, which does not exist")))
    };
    Constraints::new(constraints, &mut id).map(Arc::new)
}
