//! Terms with the short forms of Turtle, which a model reads with fewer tokens.

use crate::line_editor::short;

/// Tab-separated values with short forms of numbers, truth values, and IRIs with well-known prefixes.
pub(crate) fn abbreviated(rows: &str) -> String {
    let mut text = String::with_capacity(rows.len());
    for (number, line) in rows.lines().enumerate() {
        text.push_str(if number > 0 { "\n" } else { "" });
        for (column, cell) in line.split('\t').enumerate() {
            text.push_str(if column > 0 { "\t" } else { "" });
            text.push_str(&short_cell(cell));
        }
    }
    text
}

/// A term with the short forms of Turtle.
pub(crate) fn short_cell(cell: &str) -> String {
    short_literal(cell).map_or_else(|| short(cell), str::to_owned)
}

/// The lexical form of a literal that stands for itself in Turtle.
fn short_literal(cell: &str) -> Option<&str> {
    let (lexical, datatype) =
        cell.strip_prefix('"')?.rsplit_once("\"^^<http://www.w3.org/2001/XMLSchema#")?;
    let digits = lexical.strip_prefix(['+', '-']).unwrap_or(lexical);
    let are_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_short = match datatype.strip_suffix('>')? {
        "integer" => are_digits(digits),
        "decimal" => digits.split_once('.').is_some_and(|(a, b)| are_digits(a) && are_digits(b)),
        "boolean" => matches!(lexical, "true" | "false"),
        _ => false,
    };
    is_short.then_some(lexical)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_as_short_as_turtle_permits() {
        let xsd = "http://www.w3.org/2001/XMLSchema#";
        for (cell, text) in [
            (format!("\"-31\"^^<{xsd}integer>"), "-31".to_owned()),
            (format!("\"1.50\"^^<{xsd}decimal>"), "1.50".to_owned()),
            (format!("\"true\"^^<{xsd}boolean>"), "true".to_owned()),
            ("<urn:vervet:key:name>".to_owned(), "key:name".to_owned()),
            ("<urn:vervet:key:a/b>".to_owned(), "<urn:vervet:key:a/b>".to_owned()),
            ("\"<urn:vervet:key:name>\"".to_owned(), "\"<urn:vervet:key:name>\"".to_owned()),
        ] {
            assert_eq!(abbreviated(&format!("?x\t?y\n{cell}\t")), format!("?x\t?y\n{text}\t"));
        }
        // These would be other terms, or none.
        for literal in [
            "\"x\"^^<integer>",
            "\"1\"^^<decimal>",
            "\"1\"^^<boolean>",
            "\"0.5\"^^<double>",
            "\"\"^^<integer>",
        ] {
            let literal = literal.replace('<', &format!("<{xsd}"));
            assert_eq!(abbreviated(&literal), literal);
        }
    }
}
