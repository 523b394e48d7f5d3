//! Values of query parameters, in both languages.
//!
//! | parameter | value |
//! | --- | --- |
//! | `person`, `person1`, `person2` | a person |
//! | `message`; `post`, `comment` | the number of a message stands for two candidate vertices, of which one exists |
//! | `startDate`, `endDate`, `minDate`, `maxDate` | milliseconds since 1970 |
//! | `month`, `following`; `firstDay`, `monthEnd`, `nextMonth`, `lastDay` | of IC10: numbers of two months; from the 21st of the first to the 21st of the second as strings `MM-DD`, ends excluded |
//! | `firstName`, `countryX`, `countryY`, `country`, `tagName`, `tagClass` | names |
//! | `year` | a number |

use oxrdf::Literal;
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;
use vervet::gremlin::Value;
use vervet_model::vocab::{VERTEX_NAMESPACE, name_iri};

/// Milliseconds of a day.
const DAY_MS: i64 = 86_400_000;

/// A value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Parameter {
    /// A vertex by its name, such as `Person:933`.
    Vertex(String),
    /// Several vertices.
    Vertices(Vec<String>),
    /// A string.
    Text(String),
    /// A number.
    Number(i64),
}

/// Values by name.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Parameters(BTreeMap<&'static str, Parameter>);

impl Parameters {
    /// Adds a person under `name`.
    #[must_use]
    pub fn person(mut self, name: &'static str, number: i64) -> Self {
        self.0.insert(name, Parameter::Vertex(format!("Person:{number}")));
        self
    }

    /// Adds a message.
    #[must_use]
    pub fn message(mut self, number: i64) -> Self {
        let [post, comment] = ["Post", "Comment"].map(|space| format!("{space}:{number}"));
        self.0.insert("message", Parameter::Vertices(vec![post.clone(), comment.clone()]));
        self.0.insert("post", Parameter::Vertex(post));
        self.0.insert("comment", Parameter::Vertex(comment));
        self
    }

    /// Adds a time range that begins with `start`, in milliseconds since 1970, and lasts `days` days.
    #[must_use]
    pub fn days(self, start: i64, days: i64) -> Self {
        self.number("startDate", start).number("endDate", start.saturating_add(days.saturating_mul(DAY_MS)))
    }

    /// Adds a month of birthdays, 1 to 12.
    #[must_use]
    pub fn month(mut self, month: i64) -> Self {
        let next = month % 12 + 1;
        for (name, month, day) in
            [("firstDay", month, 21), ("monthEnd", month, 32), ("nextMonth", next, 1), ("lastDay", next, 22)]
        {
            self.0.insert(name, Parameter::Text(format!("{month:02}-{day:02}")));
        }
        self.number("month", month).number("following", next)
    }

    /// Adds a string.
    #[must_use]
    pub fn text(mut self, name: &'static str, text: impl Into<String>) -> Self {
        self.0.insert(name, Parameter::Text(text.into()));
        self
    }

    /// Adds a number.
    #[must_use]
    pub fn number(mut self, name: &'static str, number: i64) -> Self {
        self.0.insert(name, Parameter::Number(number));
        self
    }

    /// Adds the parameters of `other`, which take precedence.
    #[must_use]
    pub fn with(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self
    }

    /// All parameters.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &Parameter)> {
        self.0.iter().map(|(name, value)| (*name, value))
    }

    /// As Gremlin bindings.
    #[must_use]
    pub fn bindings(&self) -> HashMap<String, Value> {
        let value = |parameter: &Parameter| match parameter {
            Parameter::Vertex(name) | Parameter::Text(name) => Value::text(name),
            Parameter::Vertices(names) => Value::list(names.iter().map(Value::text).collect()),
            Parameter::Number(number) => match i32::try_from(*number) {
                Ok(number) => Value::Int(number),
                Err(_) => Value::Long(*number),
            },
        };
        self.iter().map(|(name, parameter)| (name.to_owned(), value(parameter))).collect()
    }

    /// A SPARQL text with terms in place of `$name`; other names stay.
    #[must_use]
    pub fn fill_in(&self, text: &str) -> String {
        let mut filled = String::with_capacity(text.len() + 64);
        let mut parts = text.split('$');
        filled.push_str(parts.next().unwrap_or_default());
        for part in parts {
            let end = part.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(part.len());
            let (name, rest) = part.split_at(end);
            let _ = match self.0.get(name) {
                Some(Parameter::Vertex(name)) => write!(filled, "<{}>", name_iri(VERTEX_NAMESPACE, name)),
                Some(Parameter::Text(text)) => write!(filled, "{}", Literal::new_simple_literal(text)),
                Some(Parameter::Number(number)) => write!(filled, "{number}"),
                Some(Parameter::Vertices(_)) | None => write!(filled, "${name}"),
            };
            filled.push_str(rest);
        }
        filled
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_stand_where_names_stood() {
        let parameters = Parameters::default()
            .person("person", 7)
            .text("firstName", "a \"b\"")
            .month(12)
            .number("year", 5);
        assert_eq!(
            parameters.fill_in("$person :x ?y . ?y :n $firstName, $year, $following, $other"),
            "<urn:vervet:vertex:Person:7> :x ?y . ?y :n \"a \\\"b\\\"\", 5, 1, $other"
        );
        assert_eq!(parameters.bindings()["lastDay"], Value::text("01-22"));
    }
}
