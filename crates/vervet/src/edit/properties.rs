//! Property values.
//!
//! A key and an edge label may have the same name: values are literals, edges lead to vertices.

use super::find::{VALUES, plain};
use crate::{Element, Transaction};
use oxrdf::Literal;
use vervet_model::vocab::KEY_NAMESPACE;
use vervet_model::{Direction, Id, Result, Statement};
use vervet_txn::Read;

impl Transaction {
    /// Makes this the only value of a property of a vertex or edge. Two transactions that set the same
    /// property conflict.
    ///
    /// # Errors
    /// [`vervet_model::ErrorKind::Input`]: the element does not exist, or is an edge without an id; a key
    /// that looks like an IRI but is invalid, or that is reserved, such as `rdf:type`.
    pub fn set_property(
        &mut self,
        element: impl Element,
        key: &str,
        value: impl Into<Literal>,
    ) -> Result<()> {
        let (subject, graph) = self.located(element)?;
        let key = self.intern_key(key)?;
        let value = self.inner.intern(value.into().as_ref().into())?;
        self.set_value(subject, key, value, graph)
    }

    /// Makes this the only value of a key of a subject.
    pub(super) fn set_value(&mut self, subject: Id, key: Id, value: Id, graph: Id) -> Result<()> {
        self.inner.record_read(Read::Key(key, Direction::Out, subject));
        let mut values = self.values(key, subject)?;
        let before = values.len();
        values.retain(|statement| statement.object != value);
        if values.len() == before {
            self.inner.insert_all(&[plain(subject, key, value, graph)])?;
        }
        self.take_out(values)?;
        Ok(())
    }

    /// Adds a value to a property beside its other values; `false`: it had this one. Serializable
    /// transactions that add different values do not conflict.
    ///
    /// # Errors
    /// As [`Transaction::set_property`].
    pub fn add_property(
        &mut self,
        element: impl Element,
        key: &str,
        value: impl Into<Literal>,
    ) -> Result<bool> {
        let (subject, graph) = self.located(element)?;
        let key = self.intern_key(key)?;
        let value = self.inner.intern(value.into().as_ref().into())?;
        self.add_value(plain(subject, key, value, graph))
    }

    /// Removes all values of a property; returns their number.
    ///
    /// # Errors
    /// As [`Transaction::set_property`].
    pub fn remove_property(&mut self, element: impl Element, key: &str) -> Result<u64> {
        let (subject, _) = self.located(element)?;
        let Some(key) = self.lookup_key(key)? else { return Ok(0) };
        self.inner.record_read(Read::Key(key, Direction::Out, subject));
        let values = self.values(key, subject)?;
        let mut count = 0;
        let mut last = Id::UNBOUND;
        for statement in &values {
            // Equal values in several graphs count once.
            count += u64::from(statement.object != last);
            last = statement.object;
        }
        self.take_out(values)?;
        Ok(count)
    }

    /// Removes one value of a property; `false`: the property did not have it.
    ///
    /// # Errors
    /// As [`Transaction::set_property`].
    pub fn remove_property_value(
        &mut self,
        element: impl Element,
        key: &str,
        value: impl Into<Literal>,
    ) -> Result<bool> {
        let (subject, _) = self.located(element)?;
        let Some(key) = self.lookup_key(key)? else { return Ok(false) };
        let value = self.inner.view()?.as_snapshot().lookup(value.into().as_ref().into())?;
        let Some(value) = value else { return Ok(false) };
        self.inner.record_read(Read::Entry(subject, key, value));
        let values = self.entries(key, Direction::Out, subject, value..=value)?;
        Ok(self.take_out(values)? > 0)
    }

    /// Adds a plain statement unless some graph has it; returns whether it was added.
    pub(super) fn add_value(&mut self, statement: Statement) -> Result<bool> {
        let Statement { subject, predicate, object, .. } = statement;
        self.inner.record_read(Read::Entry(subject, predicate, object));
        if self.is_there(subject, predicate, object)? {
            return Ok(false);
        }
        self.inner.insert_all(&[statement])?;
        Ok(true)
    }

    /// The statements with values of a property, ordered by value.
    pub(super) fn values(&self, key: Id, subject: Id) -> Result<Vec<Statement>> {
        self.entries(key, Direction::Out, subject, VALUES)
    }

    /// The id of a key, if it has ever been interned.
    pub(super) fn lookup_key(&self, key: &str) -> Result<Option<Id>> {
        self.lookup_name(KEY_NAMESPACE, key)
    }
}
