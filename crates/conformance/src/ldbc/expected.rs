//! Expected answers: one JSON object per line, in two formats.
//!
//! `{"query", "params", "columns", "rows"}` has rows as lists. `{"query", "params", "result"}` has maps (or
//! one map), and its parameter names end in the name of the query (`personIdQ1`, `person2IdQ14EndNode`).

use super::answer::{Cell, Row};
use super::parameters::Parameters;
use super::query::{Order, Query};
use serde_json::Value as Json;
use std::path::Path;

/// The maximum number of rows in a message.
const SHOWN_MAX: usize = 2;

/// A query with values for its parameters, and its answer.
pub(super) struct Case {
    pub(super) query: &'static Query,
    pub(super) parameters: Parameters,
    rows: Vec<Row>,
}

/// Reads a file; cases are grouped by query, in the order of the file.
pub(super) fn read(path: &Path) -> Result<Vec<Case>, String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let mut cases = Vec::new();
    for (i, line) in text.lines().enumerate() {
        cases.push(case(line).map_err(|error| format!("{}:{}: {error}", path.display(), i + 1))?);
    }
    let place = |case: &Case| super::QUERIES.iter().position(|query| query.name == case.query.name);
    cases.sort_by_key(place);
    Ok(cases)
}

fn case(line: &str) -> Result<Case, String> {
    let json: Json = serde_json::from_str(line).map_err(|error| error.to_string())?;
    let name = json["query"].as_str().ok_or("no name of a query")?;
    let query = Query::named(name).ok_or_else(|| format!("the query {name} is unknown"))?;
    let parameters = parameters(json["params"].as_object().ok_or("no parameters")?)?;
    let found: Vec<&Json> = match json.get("rows").or_else(|| json.get("result")) {
        Some(Json::Array(rows)) => rows.iter().collect(),
        Some(row) => vec![row],
        None => return Err("no rows".to_owned()),
    };
    let rows = found.into_iter().map(|row| {
        let cells = match row {
            Json::Array(cells) => cells.iter().map(Cell::of_json).collect(),
            row => query.fields.iter().map(|field| Cell::of_json(&row[*field])).collect(),
        };
        query.row(cells).map_err(|error| error.to_string())
    });
    Ok(Case { query, parameters, rows: rows.collect::<Result<_, _>>()? })
}

fn parameters(given: &serde_json::Map<String, Json>) -> Result<Parameters, String> {
    let mut all = Parameters::default();
    let number = |name: &str, value: &Json| value.as_i64().ok_or_else(|| format!("{name} is not a number"));
    let text = |name: &str, value: &Json| {
        value.as_str().map(str::to_owned).ok_or_else(|| format!("{name} is not a string"))
    };
    for (name, value) in given {
        // Parameter names that end in the name of their query.
        let plain = ["personId", "person1Id", "person2Id"].into_iter().find(|plain| name.starts_with(plain));
        all = match plain.unwrap_or(name) {
            "personId" => all.person("person", number(name, value)?),
            "person1Id" => all.person("person1", number(name, value)?),
            "person2Id" => all.person("person2", number(name, value)?),
            "messageId" => all.message(number(name, value)?),
            "firstName" => all.text("firstName", text(name, value)?),
            "maxDate" => all.number("maxDate", number(name, value)?),
            "minDate" => all.number("minDate", number(name, value)?),
            "startDate" => all.days(number(name, value)?, number("durationDays", &given["durationDays"])?),
            "countryXName" => all.text("countryX", text(name, value)?),
            "countryYName" => all.text("countryY", text(name, value)?),
            "countryName" => all.text("country", text(name, value)?),
            "tagName" => all.text("tagName", text(name, value)?),
            "tagClassName" => all.text("tagClass", text(name, value)?),
            "workFromYear" => all.number("year", number(name, value)?),
            "month" => all.month(number(name, value)?),
            // The value of the specification, which is in our query texts.
            "limit" | "durationDays" => all,
            other => return Err(format!("the parameter {other} is unknown")),
        };
    }
    Ok(all)
}

impl Case {
    /// Compares rows with the expected ones; an error describes the difference.
    pub(super) fn compare(&self, found: &[Row]) -> Result<(), String> {
        let (mut expected, mut found) = (self.rows.clone(), found.to_vec());
        if self.query.order == Order::LastDescending {
            let last = |row: &Row| row.last().and_then(Cell::number);
            if !found.is_sorted_by(|a, b| last(a) >= last(b)) {
                return Err("rows are not in descending order of their last column".to_owned());
            }
            for rows in [&mut expected, &mut found] {
                rows.sort_by(|a, b| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal));
            }
        }
        if expected == found {
            return Ok(());
        }
        let place = expected.iter().zip(&found).position(|(a, b)| a != b);
        let place = place.unwrap_or(expected.len().min(found.len()));
        let shown = |rows: &[Row]| {
            let rows = rows.iter().skip(place).take(SHOWN_MAX);
            let texts: Vec<String> =
                rows.map(|row| row.iter().map(ToString::to_string).collect::<Vec<_>>().join(" | ")).collect();
            texts.join("\n    ")
        };
        Err(format!(
            "{} rows expected, {} found; from row {} on\n  expected\n    {}\n  found\n    {}",
            expected.len(),
            found.len(),
            place + 1,
            shown(&expected),
            shown(&found)
        ))
    }
}
