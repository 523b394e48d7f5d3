//! LUBM-1, -10 and -40: every query of `data/lubm/queries` against `data/lubm/expected`, as sorted rows.

use crate::Report;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::path::Path;
use std::{fs, str};
use vervet::{Database, ErrorKind, OutputFormat, QueryOptions};

/// Runs all queries on LUBM-`scale` below `data` (the folder with `lubm`), in `database`.
///
/// # Errors
/// Missing data, or data that cannot be loaded.
pub fn run(data: &Path, scale: u32, database: &Database, report: &mut Report) -> Result<(), String> {
    let folder = data.join("lubm");
    let file = folder.join(format!("lubm-{scale}.nt.zst"));
    if database.snapshot().statement_count() == 0 {
        database.load_file(&file).map_err(|error| error.to_string())?;
    }
    let database = &crate::cluster::spread(database.clone())?;
    let expected = fs::read_to_string(folder.join(format!("expected/lubm-{scale}.json")))
        .map_err(|error| format!("could not read the expected answers: {error}"))?;
    let expected: Value = serde_json::from_str(&expected).map_err(|error| error.to_string())?;
    let cases = expected.as_object().ok_or("the expected answers are not an object")?;
    let category = format!("lubm-{scale}");
    for (name, expected) in cases {
        let result = fs::read_to_string(folder.join("queries").join(name))
            .map_err(|error| error.to_string())
            .and_then(|query| {
                for (threads, heavy_from) in crate::CONFIGURATIONS {
                    let options =
                        QueryOptions { heavy_from, ..QueryOptions::default().with_threads(threads) };
                    check(database, &query, &options, expected)
                        .map_err(|reason| format!("on {threads} threads: {reason}"))?;
                }
                Ok(())
            });
        report.add(&category, name, result);
    }
    Ok(())
}

fn check(database: &Database, query: &str, options: &QueryOptions, expected: &Value) -> Result<(), String> {
    let mut tsv = Vec::new();
    let result = database.write(query, options, OutputFormat::Tsv, &mut tsv);
    result.map_err(|error| match error.kind() {
        ErrorKind::Unsupported => format!("not supported: {error}"),
        _ => error.to_string(),
    })?;
    let text = str::from_utf8(&tsv).map_err(|error| error.to_string())?;
    let mut lines = text.lines();
    let header = lines.next().unwrap_or_default();
    if Some(header) != expected["header"].as_str() {
        return Err(format!("the header is {header:?}, expected {}", expected["header"]));
    }
    let mut rows: Vec<&str> = lines.collect();
    let count = expected["rows"].as_u64().unwrap_or(u64::MAX);
    if rows.len() as u64 != count {
        return Err(format!("{} rows, expected {count}", rows.len()));
    }
    // With LIMIT and without a total order, the choice of rows is undefined.
    let upper = query.to_uppercase();
    if upper.contains("LIMIT") {
        return Ok(());
    }
    rows.sort_unstable();
    let hash = Sha256::digest(rows.join("\n").as_bytes());
    let hash: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    if Some(hash.as_str()) == expected["sha256"].as_str() {
        return Ok(());
    }
    let first = expected["tsv"]
        .as_array()
        .and_then(|expected| rows.iter().zip(expected).find(|(row, other)| Some(**row) != other.as_str()));
    Err(match first {
        Some((row, other)) => format!("a row is {row:?}, expected {other}"),
        None => "the rows have another SHA-256".to_owned(),
    })
}
