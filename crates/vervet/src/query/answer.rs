//! In-memory query results: solutions as typed rows and columns, a truth value, or a graph.

use crate::query::execute::MaterializedSolutions;
use oxrdf::{Term, Triple};
use vervet_model::{Id, Result, TermParts};

/// The result of a query.
#[derive(Debug)]
pub enum Answer {
    /// Result of `SELECT`.
    Solutions(Solutions),
    /// Result of `ASK`.
    Boolean(bool),
    /// Result of `CONSTRUCT` and `DESCRIBE`, without duplicates.
    Graph(Vec<Triple>),
}

impl Answer {
    /// The solutions of a `SELECT`; `None` for other query forms.
    #[must_use]
    pub fn into_solutions(self) -> Option<Solutions> {
        match self {
            Self::Solutions(solutions) => Some(solutions),
            _ => None,
        }
    }
}

/// The solutions of a `SELECT`, as ids. Terms are read from the snapshot of the query on demand.
///
/// # Cost
/// 8 bytes for each cell. Keeps the snapshot alive.
#[derive(Debug)]
pub struct Solutions {
    /// Boxed, since most [`Answer`]s are smaller.
    pub(crate) materialized: Box<MaterializedSolutions>,
}

impl Solutions {
    /// Column names, without `?`.
    #[must_use]
    pub fn variables(&self) -> &[String] {
        &self.materialized.names
    }

    /// The number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.materialized.rows
    }

    /// Whether there are no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.materialized.rows == 0
    }

    /// The rows, in order.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = Row<'_>> {
        (0..self.materialized.rows).map(|row| Row { solutions: self, row })
    }

    /// A column as ids ([`Id::UNBOUND`] for unbound cells). Equal ids are equal terms.
    #[must_use]
    pub fn column(&self, name: &str) -> Option<&[Id]> {
        let column = self.materialized.names.iter().position(|other| other == name)?;
        Some(&self.materialized.columns[column])
    }

    /// The term of an id in these solutions.
    ///
    /// # Errors
    /// Damaged data.
    pub fn term(&self, id: Id) -> Result<Option<Term>> {
        self.materialized.term(id)
    }

    /// Calls `read` with the parts of the term of an id in these solutions, unless the id is unbound. Makes
    /// no term, so it suits readers that convert many cells; `scratch` is a buffer to reuse.
    ///
    /// # Errors
    /// Damaged data.
    ///
    /// ```
    /// use vervet::{Database, Format};
    ///
    /// # fn main() -> vervet::Result<()> {
    /// let db = Database::in_memory();
    /// db.load_text(Format::NTriples, "<urn:ann> <urn:knows> <urn:bob> .")?;
    /// let solutions = db.select("SELECT ?who { <urn:ann> <urn:knows> ?who }")?;
    /// let (mut scratch, mut names) = (String::new(), Vec::new());
    /// for &id in solutions.column("who").expect("a column") {
    ///     solutions.read(id, &mut scratch, &mut |parts| {
    ///         let mut name = String::new();
    ///         parts.write_str(&mut name);
    ///         names.push(name);
    ///     })?;
    /// }
    /// assert_eq!(names, ["urn:bob"]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn read(&self, id: Id, scratch: &mut String, read: &mut dyn FnMut(TermParts<'_>)) -> Result<()> {
        self.materialized.read(id, scratch, read)
    }

    /// The plan with estimated and actual rows and times, if the query ran with
    /// [`crate::QueryOptions::profile`].
    #[must_use]
    pub fn profile(&self) -> Option<&str> {
        self.materialized.profile.as_deref()
    }
}

/// One solution.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    solutions: &'a Solutions,
    row: usize,
}

impl Row<'_> {
    /// The value of a variable; `None` if it is unbound or not a column.
    ///
    /// # Errors
    /// Damaged data.
    pub fn get(&self, name: &str) -> Result<Option<Term>> {
        match self.solutions.column(name) {
            Some(column) => self.solutions.term(column[self.row]),
            None => Ok(None),
        }
    }

    /// The IRI, lexical form or blank-node label of the value of a variable.
    ///
    /// # Errors
    /// Damaged data.
    pub fn text(&self, name: &str) -> Result<Option<String>> {
        Ok(self.get(name)?.map(|term| match term {
            Term::NamedNode(node) => node.into_string(),
            Term::BlankNode(node) => node.into_string(),
            Term::Literal(literal) => literal.value().to_owned(),
            Term::Triple(triple) => triple.to_string(),
        }))
    }

    /// The value of a variable as an integer; `None` if it is not an integer.
    ///
    /// # Errors
    /// Damaged data.
    pub fn integer(&self, name: &str) -> Result<Option<i64>> {
        Ok(self.number(name)?.and_then(|text| text.parse().ok()))
    }

    /// The value of a variable as a double; `None` if it is not a number.
    ///
    /// # Errors
    /// Damaged data.
    pub fn double(&self, name: &str) -> Result<Option<f64>> {
        Ok(self.number(name)?.and_then(|text| text.parse().ok()))
    }

    /// The lexical form, if the datatype of the value is not a string type.
    fn number(&self, name: &str) -> Result<Option<String>> {
        Ok(self.get(name)?.and_then(|term| match term {
            Term::Literal(literal) if literal.datatype() != oxrdf::vocab::xsd::STRING => {
                Some(literal.value().to_owned())
            }
            _ => None,
        }))
    }
}
