//! Queries that the console offers besides examples: a tour, or the usual questions of a database.
//!
//! A file in JSON has the form of those that the console exports; TOML has the same names, and is easier to
//! write by hand.

use crate::toml_error::toml_error;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::io::Read as _;
use std::marker::PhantomData;
use std::path::Path;
use vervet_model::{Error, ErrorKind, Result};

/// The maximum number of queries in a file, as in the console.
const QUERIES_MAX: usize = 1000;

/// The maximum bytes of a file: the console fetches all of it.
const FILE_BYTES_MAX: u64 = 1 << 20;

const FORM_HINT: &str = "docs/server.md, Saved queries, has the form of the file";

/// A list of saved queries: see docs/server.md.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SavedQueries {
    /// Marks the files of the console: `queries`.
    #[serde(rename = "vervet", default, skip_serializing)]
    kind: Option<String>,
    /// The heading of the list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// A sentence about the list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub about: Option<String>,
    /// The queries, in the order of the list.
    #[serde(deserialize_with = "tables")]
    pub queries: Vec<SavedQuery>,
}

/// A value of a derived type that is written with names. The derived code also takes a list of the fields in
/// their order, which would make a misplaced list a valid file.
struct Table<T>(T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Table<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct Names<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Names<T> {
            type Value = Table<T>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str(
                    "names with values: the file has a list `queries`, each of them a `name` and a `text`",
                )
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> std::result::Result<Table<T>, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(Table)
            }
        }
        deserializer.deserialize_map(Names(PhantomData))
    }
}

fn tables<'de, D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Vec<SavedQuery>, D::Error> {
    let queries: Vec<Table<SavedQuery>> = Vec::deserialize(deserializer)?;
    Ok(queries.into_iter().map(|Table(query)| query).collect())
}

/// A saved query.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SavedQuery {
    /// The title.
    pub name: String,
    /// The query.
    pub text: String,
    /// The language of `text`.
    #[serde(default)]
    pub language: QueryLanguage,
    /// A sentence about the query.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The view of its result; `None`: the usual one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub view: Option<ResultView>,
    /// Whether a click runs it; `None`: unless it changes the data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<bool>,
}

/// A language of saved queries.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum QueryLanguage {
    /// SPARQL Query and Update.
    #[default]
    Sparql,
    /// Gremlin.
    Gremlin,
}

/// A view of a result in the console.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ResultView {
    /// Rows and columns.
    Table,
    /// Vertices and edges, drawn.
    Picture,
    /// The response as text.
    Text,
    /// The plan, without running the query.
    Plan,
    /// The plan with measured rows and times.
    Profile,
}

impl SavedQueries {
    /// Reads a file: TOML if its name ends in `.toml`, else JSON.
    ///
    /// # Errors
    /// [`ErrorKind::Input`] with the position of the mistake; [`ErrorKind::Io`].
    pub fn from_file(path: &Path) -> Result<Self> {
        let read = |error| Error::io(format!("read {}", path.display()), &error);
        // A device or a pipe has no size.
        let mut text = String::new();
        let file = std::fs::File::open(path).map_err(read)?;
        file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text).map_err(read)?;
        if text.len() as u64 > FILE_BYTES_MAX {
            let message = format!("{} has more than {FILE_BYTES_MAX} bytes", path.display());
            return Err(Error::new(ErrorKind::Input, message)
                .with_hint("a file of saved queries is JSON that the console has exported, or TOML"));
        }
        // Some editors mark UTF-8 with it.
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        let is_toml = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("toml"));
        let queries = if is_toml { Self::from_toml(text) } else { Self::from_json(text) };
        queries.map_err(|error| error.context(path.display()))
    }

    /// Parses JSON.
    ///
    /// # Errors
    /// [`ErrorKind::Input`] with the position of the mistake.
    pub fn from_json(text: &str) -> Result<Self> {
        let table: Table<Self> = serde_json::from_str(text).map_err(|error| {
            let error = Error::new(ErrorKind::Input, error.to_string());
            error.with_hint(FORM_HINT)
        })?;
        table.0.checked()
    }

    /// Parses TOML.
    ///
    /// # Errors
    /// [`ErrorKind::Input`] with the position of the mistake.
    pub fn from_toml(text: &str) -> Result<Self> {
        let queries: Self =
            toml::from_str(text).map_err(|error| toml_error(text, &error).with_hint(FORM_HINT))?;
        queries.checked()
    }

    fn checked(self) -> Result<Self> {
        let wrong = |message: String| Err(Error::new(ErrorKind::Input, message));
        if self.kind.as_deref().is_some_and(|kind| kind != "queries") {
            return wrong("not a file of saved queries: \"vervet\" is not \"queries\"".to_owned());
        }
        if self.queries.len() > QUERIES_MAX {
            return wrong(format!("{} saved queries, more than {QUERIES_MAX}", self.queries.len()));
        }
        for (number, query) in (1..).zip(&self.queries) {
            if query.name.trim().is_empty() || query.text.trim().is_empty() {
                return wrong(format!("saved query {number} has an empty name or an empty text"));
            }
        }
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The form of page/src/saved-file.ts is accepted, and TOML has the same meaning.
    #[test]
    fn json_of_the_console_and_toml_agree() {
        let json = r#"{"vervet": "queries", "title": "Tour", "queries": [
            {"name": "all", "language": "sparql", "text": "SELECT *\n{}\n"},
            {"name": "walk", "language": "gremlin", "text": "g.V()", "note": "All.", "view": "picture", "run": false}
        ]}"#;
        let toml = "title = 'Tour'\n[[queries]]\nname = 'all'\ntext = '''\nSELECT *\n{}\n'''\n\
                    [[queries]]\nname = 'walk'\nlanguage = 'gremlin'\ntext = 'g.V()'\nnote = 'All.'\n\
                    view = 'picture'\nrun = false\n";
        let (from_json, from_toml) =
            (SavedQueries::from_json(json).unwrap(), SavedQueries::from_toml(toml).unwrap());
        assert_eq!(from_json.queries, from_toml.queries);
        assert_eq!(from_json.queries[0].language, QueryLanguage::Sparql);
        assert_eq!(from_json.queries[1].view, Some(ResultView::Picture));
        assert_eq!(from_json.title, from_toml.title);
    }

    /// The file in the manual is valid.
    #[test]
    fn the_example_of_the_manual_is_valid() {
        let manual = include_str!("../../../docs/server.md");
        let blocks = manual.split("```toml\n").filter_map(|rest| rest.split("```").next());
        let examples: Vec<&str> = blocks.filter(|block| block.contains("[[queries]]")).collect();
        assert_eq!(examples.len(), 1);
        assert_eq!(SavedQueries::from_toml(examples[0]).unwrap().queries.len(), 2);
    }

    #[test]
    fn mistakes_are_named() {
        for (text, part) in [
            ("SELECT", "line 1"),
            ("[]", "invalid type: sequence, expected names with values"),
            ("[\"queries\", null, null, []]", "invalid type: sequence"),
            ("[{\"name\": \"a\", \"text\": \"b\"}]", "a list `queries`, each of them a `name` and a `text`"),
            ("{\"queries\": [[\"a\", \"b\", \"sparql\", null, null, null]]}", "invalid type: sequence"),
            ("{\"queries\": {\"name\": \"a\"}}", "invalid type: map, expected a sequence"),
            ("{\"queries\": [{\"name\": \"a\"}]}", "text"),
            ("{\"queries\": [{\"name\": \" \", \"text\": \"b\"}]}", "saved query 1"),
            ("{\"queries\": [{\"name\": \"a\", \"text\": \"b\", \"language\": \"cypher\"}]}", "cypher"),
            ("{\"queries\": [{\"name\": \"a\", \"text\": \"b\", \"view\": \"pie\"}]}", "pie"),
            ("{\"queries\": [], \"qeries\": 1}", "qeries"),
            ("{\"vervet\": \"mapping\", \"queries\": []}", "not a file of saved queries"),
        ] {
            let error = SavedQueries::from_json(text).unwrap_err();
            assert!(error.message().contains(part), "{text}: {error}");
        }
        let error = SavedQueries::from_toml("[[queries]]\nnme = 'a'").unwrap_err();
        assert!(error.message().contains("nme") && error.message().contains("line 2"), "{error}");
        // A long line of the file is not repeated.
        let text = format!("[[queries]]\nname = 'a'\ntext = '{}' x", "SELECT ".repeat(500));
        let error = SavedQueries::from_toml(&text).unwrap_err();
        assert!(error.message().starts_with("line 3, column ") && error.message().len() < 200, "{error}");
    }

    /// Editors of Windows begin UTF-8 with a mark.
    #[test]
    fn a_byte_order_mark_is_ignored() {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in [
            ("a.json", "{\"queries\": [{\"name\": \"a\", \"text\": \"b\"}]}"),
            ("a.toml", "[[queries]]\nname = 'a'\ntext = 'b'\n"),
        ] {
            let path = folder.path().join(name);
            std::fs::write(&path, format!("\u{feff}{text}")).unwrap();
            assert_eq!(SavedQueries::from_file(&path).unwrap().queries[0].text, "b");
        }
    }
}
