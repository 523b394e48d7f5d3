//! The chart of the README: for each query or load of four suites the time of a peer divided by that of
//! Vervet, as dots on a logarithmic axis with the geometric mean of each suite.
//!
//! `cargo xtask chart` draws `docs/benchmarks/speed.svg` from the tables in the same folder. The colours are
//! readable on light and dark backgrounds.

use std::fmt::Write;
use std::fs;
use std::path::Path;

const CHART: &str = "docs/benchmarks/speed.svg";

/// Draws the chart into its file.
///
/// # Errors
/// A table that is missing or has no such column.
pub(crate) fn chart() -> Result<(), String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let drawn = draw(&suites(&root)?);
    fs::write(root.join(CHART), drawn).map_err(|error| format!("could not write {CHART}: {error}"))?;
    println!("== chart: {CHART}");
    Ok(())
}

/// A message if the file is not the chart of the current tables.
///
/// # Errors
/// As [`chart`].
pub(crate) fn problem(root: &Path) -> Result<Option<String>, String> {
    let drawn = draw(&suites(root)?);
    let is_current = fs::read_to_string(root.join(CHART)).is_ok_and(|text| text == drawn);
    Ok((!is_current).then(|| format!("{CHART} does not show the current tables: run `cargo xtask chart`")))
}

/// A row of the chart.
struct Suite {
    title: String,
    against: &'static str,
    /// Of each query: time of the peer divided by time of Vervet.
    ratios: Vec<f64>,
}

fn suites(root: &Path) -> Result<Vec<Suite>, String> {
    let read = |name: &str| {
        let name = format!("docs/benchmarks/{name}");
        fs::read_to_string(root.join(&name)).map_err(|error| format!("could not read {name}: {error}"))
    };
    let features = column(&read("features-lubm-10.md")?, "feature", "ratio", |_| true)?;
    let snb = read("snb.md")?;
    let short = column(&snb, "operation", "peer / Gremlin", |name| name.starts_with("IS"))?;
    let complex = column(&snb, "operation", "peer / Gremlin", |name| name.starts_with("IC"))?;
    let mut loads = Vec::new();
    for name in ["lubm-10.md", "lubm-40.md"] {
        loads
            .extend(column(&read(name)?, "load in its own process", "times faster than the peer", |_| true)?);
    }
    let suite = |title: String, against, ratios| Suite { title, against, ratios };
    Ok(vec![
        suite(format!("SPARQL, {} features, LUBM-10", features.len()), "Oxigraph", features),
        suite("Gremlin, LDBC SNB IS1 to IS7".to_owned(), "TinkerGraph", short),
        suite("Gremlin, LDBC SNB IC1 to IC14".to_owned(), "TinkerGraph", complex),
        suite("Loads of N-Triples, LUBM-10 and -40".to_owned(), "Oxigraph", loads),
    ])
}

/// Numbers of the column `value` of the first table whose first column is `first`, for rows whose first cell
/// satisfies `wanted`. Cells without a number (`-`) are omitted; a bound (`≥ 17`) counts as its number.
fn column(text: &str, first: &str, value: &str, wanted: impl Fn(&str) -> bool) -> Result<Vec<f64>, String> {
    let missing = || format!("docs/benchmarks has no table with the columns {first} and {value}");
    let mut lines = text.lines().map(cells).skip_while(|cells| cells.first() != Some(&first));
    let header = lines.next().ok_or_else(missing)?;
    let index = header.iter().position(|cell| *cell == value).ok_or_else(missing)?;
    let rows = lines.skip(1).take_while(|cells| cells.len() == header.len());
    let numbers: Vec<f64> = rows
        .filter(|cells| wanted(cells[0]))
        .filter_map(|cells| {
            let number: String = cells[index].chars().filter(|c| c.is_ascii_digit() || *c == '.').collect();
            number.parse().ok()
        })
        .collect();
    if numbers.is_empty() { Err(missing()) } else { Ok(numbers) }
}

/// Cells of a row of a Markdown table; empty for other lines.
fn cells(line: &str) -> Vec<&str> {
    let inner = line.strip_prefix('|').and_then(|line| line.trim_end().strip_suffix('|'));
    inner.map(|inner| inner.split('|').map(str::trim).collect()).unwrap_or_default()
}

fn geometric_mean(ratios: &[f64]) -> f64 {
    let logarithms: f64 = ratios.iter().map(|ratio| ratio.ln()).sum();
    (logarithms / f64::from(u32::try_from(ratios.len()).unwrap_or(u32::MAX))).exp()
}

const WIDTH: f64 = 860.0;
const LEFT: f64 = 280.0;
const RIGHT: f64 = 810.0;
const TOP: f64 = 40.0;
const ROW: f64 = 52.0;

/// Decades of the axis.
const DECADES: i32 = 5;

fn x(ratio: f64) -> f64 {
    LEFT + (RIGHT - LEFT) * (ratio.log10() / f64::from(DECADES)).clamp(0.0, 1.0)
}

fn draw(suites: &[Suite]) -> String {
    let mut rows = String::new();
    let mut bottom = TOP;
    for suite in suites {
        let y = bottom + ROW / 2.0;
        let mean = geometric_mean(&suite.ratios);
        let _ = writeln!(
            rows,
            "<text x=\"0\" y=\"{:.0}\">{}</text><text x=\"0\" y=\"{:.0}\" class=\"small\">against {}</text>",
            y - 3.0,
            suite.title,
            y + 15.0,
            suite.against
        );
        for &ratio in &suite.ratios {
            let _ = writeln!(rows, "<circle cx=\"{:.1}\" cy=\"{y:.0}\" r=\"5\"/>", x(ratio));
        }
        let at = x(mean);
        let _ = writeln!(
            rows,
            "<line x1=\"{at:.1}\" y1=\"{:.0}\" x2=\"{at:.1}\" y2=\"{:.0}\" class=\"mean\"/><text x=\"{at:.1}\" y=\"{:.0}\" class=\"value\">{mean:.0}×</text>",
            y - 12.0,
            y + 12.0,
            y - 15.0
        );
        bottom += ROW;
    }
    let mut axis = String::new();
    for decade in 0..=DECADES {
        let value = 10_f64.powi(decade);
        let at = x(value);
        let _ = writeln!(
            axis,
            "<line x1=\"{at:.1}\" y1=\"{TOP:.0}\" x2=\"{at:.1}\" y2=\"{bottom:.0}\" class=\"grid\"/><text x=\"{at:.1}\" y=\"{:.0}\" class=\"tick\">{value}×</text>",
            bottom + 18.0
        );
    }
    let height = bottom + 30.0;
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"-4 0 {WIDTH} {height:.0}\" font-family=\"system-ui, sans-serif\" font-size=\"15\" fill=\"#7d8590\">
<title>Times faster than the peer: one dot per query or load, and the geometric mean of each suite</title>
<style>.small,.tick{{font-size:13px}}.tick,.value{{text-anchor:middle}}.value{{font-weight:600;fill:#c98a1b}}.grid{{stroke:#7d8590;stroke-opacity:.3}}.mean{{stroke:#e0a030;stroke-width:3}}circle{{fill:#2f8f68;fill-opacity:.55}}</style>
<text x=\"0\" y=\"18\" font-weight=\"600\">Times faster than the peer</text><text x=\"{LEFT:.0}\" y=\"18\" class=\"small\">one dot per query or load; the line is the geometric mean</text>
{axis}{rows}</svg>
"
    )
}

#[cfg(test)]
mod tests {
    use super::{Suite, column, draw, geometric_mean};

    const TABLE: &str =
        "text\n\n| a | b |\n| --- | ---: |\n| IS1 | 1,250.5 |\n| IS2 | ≥ 8 |\n| IC1 | - |\n\n| a | b |\n";

    #[test]
    fn columns_are_read() {
        assert_eq!(column(TABLE, "a", "b", |_| true), Ok(vec![1250.5, 8.0]));
        assert_eq!(column(TABLE, "a", "b", |name| name == "IS2"), Ok(vec![8.0]));
        assert!(column(TABLE, "a", "c", |_| true).is_err());
        assert!(column(TABLE, "a", "b", |name| name == "IC1").is_err());
    }

    #[test]
    fn a_dot_for_each_query() {
        assert!((geometric_mean(&[1.0, 100.0]) - 10.0).abs() < 1e-9);
        let drawn = draw(&[Suite { title: "T".to_owned(), against: "P", ratios: vec![1.0, 100.0] }]);
        assert_eq!(drawn.matches("<circle").count(), 2);
        assert!(drawn.contains(">10×</text>") && drawn.contains("against P"), "{drawn}");
    }
}
