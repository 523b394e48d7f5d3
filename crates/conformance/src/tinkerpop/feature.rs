//! Gherkin parser for the subset that the feature files use: tags, scenarios, steps with a text or a table.
//!
//! # Not here
//! Backgrounds, outlines, rules: a file that contains them is an error, so that no scenario is silently lost.

/// A scenario of a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Scenario {
    /// Its name; a few names occur twice.
    pub(super) name: String,
    /// `@Tag`, those of the feature first.
    pub(super) tags: Vec<String>,
    pub(super) steps: Vec<Step>,
}

/// A step (`Given …`) with its text or table.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Step {
    /// The text without the first word.
    pub(super) text: String,
    /// The text between two `"""`, without the indentation of the first.
    pub(super) block: Option<String>,
    /// Rows of cells, the header first.
    pub(super) table: Vec<Vec<String>>,
}

/// Parses the scenarios of a file.
///
/// # Errors
/// The line outside this subset.
pub(super) fn parse(text: &str) -> Result<Vec<Scenario>, String> {
    let (mut of_all, mut tags) = (Vec::new(), Vec::new());
    let mut scenarios: Vec<Scenario> = Vec::new();
    let mut block: Option<(usize, Vec<&str>)> = None;
    for (number, line) in text.lines().enumerate() {
        let refuse = |what: &str| Err(format!("line {}: {what}: {}", number + 1, line.trim()));
        let trimmed = line.trim();
        if let Some((indentation, lines)) = &mut block {
            if trimmed != "\"\"\"" {
                let spaces = line.len() - line.trim_start().len();
                lines.push(&line[spaces.min(*indentation)..]);
                continue;
            }
            let content = lines.join("\n");
            block = None;
            match scenarios.last_mut().and_then(|scenario| scenario.steps.last_mut()) {
                Some(step) => step.block = Some(content),
                None => return refuse("a text without a step"),
            }
            continue;
        }
        if trimmed == "\"\"\"" {
            block = Some((line.len() - line.trim_start().len(), Vec::new()));
        } else if trimmed.is_empty() || trimmed.starts_with('#') {
        } else if trimmed.starts_with('@') {
            tags.extend(trimmed.split_whitespace().map(str::to_owned));
        } else if trimmed.starts_with("Feature:") {
            of_all = std::mem::take(&mut tags);
        } else if let Some(name) = trimmed.strip_prefix("Scenario:") {
            let tags = of_all.iter().cloned().chain(std::mem::take(&mut tags)).collect();
            scenarios.push(Scenario { name: name.trim().to_owned(), tags, steps: Vec::new() });
        } else if let Some(scenario) = scenarios.last_mut() {
            if trimmed.starts_with('|') {
                match scenario.steps.last_mut() {
                    Some(step) => step.table.push(cells(trimmed)),
                    None => return refuse("a table without a step"),
                }
            } else if let Some(("Given" | "When" | "Then" | "And" | "But", text)) = trimmed.split_once(' ') {
                scenario.steps.push(Step { text: text.trim().to_owned(), ..Step::default() });
            } else {
                return refuse("neither a step nor another known line");
            }
        } else {
            return refuse("something before the first scenario");
        }
    }
    if block.is_some() {
        return Err("unterminated text".to_owned());
    }
    Ok(scenarios)
}

/// The cells of `| a | b |`.
fn cells(line: &str) -> Vec<String> {
    let (mut all, mut cell) = (Vec::new(), String::new());
    let mut characters = line.chars().skip(1);
    while let Some(character) = characters.next() {
        match character {
            '|' => all.push(std::mem::take(&mut cell).trim().to_owned()),
            '\\' => match characters.next() {
                Some('n') => cell.push('\n'),
                Some(escaped @ ('|' | '\\')) => cell.push(escaped),
                other => cell.extend(std::iter::once('\\').chain(other)),
            },
            other => cell.push(other),
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_feature_is_its_scenarios() {
        let text = "# licence\n@A\nFeature: f\n\n  @B @C\n  Scenario: one\n    Given the modern graph\n    \
                    And the traversal of\n      \"\"\"\n      g.V().\n        out()\n      \"\"\"\n    \
                    Then the result should be ordered\n      | result |\n      | a\\|b |\n      | m[\\\\\"x] |\n\n  \
                    Scenario: two\n    When iterated to list\n";
        let scenarios = parse(text).expect("it is well-formed");
        let names: Vec<&str> = scenarios.iter().map(|scenario| scenario.name.as_str()).collect();
        assert_eq!(names, ["one", "two"]);
        assert_eq!(scenarios[0].tags, ["@A", "@B", "@C"]);
        assert_eq!(scenarios[1].tags, ["@A"]);
        let [graph, traversal, result] = scenarios[0].steps.as_slice() else { panic!("three steps") };
        assert_eq!(graph.text, "the modern graph");
        assert_eq!(traversal.block.as_deref(), Some("g.V().\n  out()"));
        assert_eq!(result.table, [["result"], ["a|b"], ["m[\\\"x]"]]);
    }

    #[test]
    fn unknown_lines_are_errors() {
        for text in
            ["Feature: f\nBackground:\n", "Scenario: s\n  Perhaps so\n", "Scenario: s\n \"\"\"\n \"\"\"\n"]
        {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
