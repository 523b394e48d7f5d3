//! The queries: their texts and the contents of their columns.

use super::answer::{Cell, ColumnKind, Row};
use super::parameters::Parameters;
use vervet::Database;
use vervet::gremlin::GremlinOptions;
use vervet_model::{Error, ErrorKind, Result};

/// The order of the rows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Order {
    /// A total order.
    Total,
    /// By the last column, descending; equal rows in any order.
    LastDescending,
}

/// The SPARQL form of a query.
#[derive(Clone, Copy, Debug)]
pub enum Sparql {
    /// Its text, with `$name` in place of parameter values.
    Text(&'static str),
    /// The language cannot express the query; why.
    Inexpressible(&'static str),
}

/// A query.
#[derive(Clone, Copy, Debug)]
pub struct Query {
    /// Its name, such as `IC1`.
    pub name: &'static str,
    /// Its Gremlin text; parameters are variables.
    pub gremlin: &'static str,
    /// Its SPARQL form.
    pub sparql: Sparql,
    pub(super) kinds: &'static [ColumnKind],
    pub(super) order: Order,
    /// The names of the columns in answers with named columns.
    pub(super) fields: &'static [&'static str],
}

macro_rules! gremlin {
    ($file:literal) => {
        include_str!(concat!("../../ldbc/gremlin/", $file, ".gremlin"))
    };
}

macro_rules! query {
    ($name:literal, $file:literal, $kinds:expr, $fields:expr) => {
        Query {
            name: $name,
            gremlin: gremlin!($file),
            sparql: Sparql::Text(include_str!(concat!("../../ldbc/sparql/", $file, ".rq"))),
            kinds: &$kinds,
            order: Order::Total,
            fields: &$fields,
        }
    };
}

const NO_SHORTEST_PATH: &str =
    "SPARQL paths only test for existence: they return neither length nor vertices";

use ColumnKind::{Day, List, Minutes, Plain, Set};

/// All queries.
pub const QUERIES: [Query; 21] = [
    query!(
        "IS1",
        "is1",
        [Plain, Plain, Day, Plain, Plain, Plain, Plain, Plain],
        [
            "firstName",
            "lastName",
            "birthday",
            "locationIp",
            "browserUsed",
            "cityId",
            "gender",
            "creationDate"
        ]
    ),
    query!("IS2", "is2", [Plain; 7], []),
    query!("IS3", "is3", [Plain; 4], ["personId", "firstName", "lastName", "friendshipCreationDate"]),
    query!("IS4", "is4", [Plain; 2], []),
    query!("IS5", "is5", [Plain; 3], []),
    query!("IS6", "is6", [Plain; 5], []),
    query!("IS7", "is7", [Plain; 7], []),
    query!(
        "IC1",
        "ic1",
        [Plain, Plain, Plain, Day, Plain, Plain, Plain, Plain, Set, Set, Plain, Set, Set],
        [
            "friendId",
            "friendLastName",
            "distanceFromPerson",
            "friendBirthday",
            "friendCreationDate",
            "friendGender",
            "friendBrowserUsed",
            "friendLocationIp",
            "friendEmails",
            "friendLanguages",
            "friendCityName",
            "friendUniversities",
            "friendCompanies"
        ]
    ),
    query!("IC2", "ic2", [Plain; 6], []),
    query!("IC3", "ic3", [Plain; 6], []),
    query!("IC4", "ic4", [Plain; 2], []),
    query!("IC5", "ic5", [Plain; 2], []),
    query!("IC6", "ic6", [Plain; 2], ["tagName", "postCount"]),
    query!("IC7", "ic7", [Plain, Plain, Plain, Plain, Plain, Plain, Minutes, Plain], []),
    query!("IC8", "ic8", [Plain; 6], []),
    query!("IC9", "ic9", [Plain; 6], []),
    query!(
        "IC10",
        "ic10",
        [Plain; 6],
        [
            "personId",
            "personFirstName",
            "personLastName",
            "commonInterestScore",
            "personGender",
            "personCityName"
        ]
    ),
    query!(
        "IC11",
        "ic11",
        [Plain; 5],
        ["personId", "personFirstName", "personLastName", "organizationName", "organizationWorkFromYear"]
    ),
    query!(
        "IC12",
        "ic12",
        [Plain, Plain, Plain, Set, Plain],
        ["personId", "personFirstName", "personLastName", "tagNames", "replyCount"]
    ),
    Query {
        name: "IC13",
        gremlin: gremlin!("ic13"),
        sparql: Sparql::Inexpressible(NO_SHORTEST_PATH),
        kinds: &[Plain],
        order: Order::Total,
        fields: &["shortestPathLength"],
    },
    Query {
        name: "IC14",
        gremlin: gremlin!("ic14"),
        sparql: Sparql::Inexpressible(NO_SHORTEST_PATH),
        kinds: &[List, Plain],
        order: Order::LastDescending,
        fields: &["personIdsInPath", "pathWeight"],
    },
];

impl Query {
    /// The query with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        QUERIES.iter().find(|query| query.name == name)
    }

    /// Runs the Gremlin form.
    ///
    /// # Errors
    /// Errors of the database; rows with other columns.
    pub fn gremlin_rows(
        &self,
        database: &Database,
        parameters: &Parameters,
        options: GremlinOptions,
    ) -> Result<Vec<Row>> {
        let options = GremlinOptions { bindings: parameters.bindings(), ..options };
        let found = database.gremlin_with(self.gremlin, &options)?;
        found
            .values()
            .map(|value| {
                let cells = Cell::of_columns(value)
                    .ok_or_else(|| Error::internal(format!("{}: a result is not a map", self.name)))?;
                self.row(cells)
            })
            .collect()
    }

    /// The SPARQL text with the values of its parameters.
    ///
    /// # Errors
    /// The language cannot express the query.
    pub fn sparql_text(&self, parameters: &Parameters) -> Result<String> {
        match self.sparql {
            Sparql::Text(text) => Ok(parameters.fill_in(text)),
            Sparql::Inexpressible(why) => {
                Err(Error::new(ErrorKind::Unsupported, format!("{}: {why}", self.name)))
            }
        }
    }

    /// Runs the SPARQL form.
    ///
    /// # Errors
    /// Errors of the database; the language cannot express the query.
    pub fn sparql_rows(&self, database: &Database, parameters: &Parameters) -> Result<Vec<Row>> {
        let found = database.select(&self.sparql_text(parameters)?)?;
        let mut rows = Vec::with_capacity(found.len());
        for row in found.rows() {
            let cells = found.variables().iter().map(|name| Ok(Cell::of_term(row.get(name)?.as_ref())));
            rows.push(self.row(cells.collect::<Result<_>>()?)?);
        }
        Ok(rows)
    }

    /// A row with its cells converted to the kinds of their columns.
    pub(super) fn row(&self, cells: Vec<Cell>) -> Result<Row> {
        if cells.len() != self.kinds.len() {
            let message =
                format!("{}: a row has {} columns, not {}", self.name, cells.len(), self.kinds.len());
            return Err(Error::internal(message));
        }
        Ok(cells.into_iter().zip(self.kinds).map(|(cell, kind)| cell.settled(*kind)).collect())
    }
}
