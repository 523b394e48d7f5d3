//! The README's two commands build the same packages: a feature that only `cargo test` enables would make it
//! build the package, and all that depend on it, a second time.

use crate::command::{cargo, output};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The features of each package: more than one set if build scripts need it with others.
type Features<'a> = BTreeMap<&'a str, BTreeSet<&'a str>>;

/// Packages that tests have with more features, and why. `vervet-device`: its simulated device compiles C++,
/// which the program must not need; only it, the driver and the command line are built a second time.
const TWICE: &[&str] = &["vervet-device"];

pub(crate) fn check(root: &Path, problems: &mut Vec<String>) -> Result<(), String> {
    let program = tree(root, &["-p", "vervet-cli", "-e", "normal,build"])?;
    let tests = tree(root, &["-e", "normal,build,dev"])?;
    let all = differences(&features(&program), &features(&tests));
    let is_twice = |package: &str| TWICE.iter().any(|twice| package.split(' ').next() == Some(*twice));
    for (package, program, tests) in all.into_iter().filter(|(package, ..)| !is_twice(package)) {
        problems.push(format!(
            "{package}: vervet-cli builds it with {program}, cargo test with {tests}; name the features in \
             [workspace.dependencies], or cargo test builds it anew with all that depends on it"
        ));
    }
    Ok(())
}

fn tree(root: &Path, arguments: &[&str]) -> Result<String, String> {
    let format = ["tree", "--locked", "--prefix", "none", "--format", "{p}\t{f}"];
    output(cargo().current_dir(root).args(format).args(arguments))
}

fn features(tree: &str) -> Features<'_> {
    let mut all = Features::new();
    for line in tree.lines() {
        // A package that the tree has shown before.
        let line = line.strip_suffix(" (*)").unwrap_or(line);
        if let Some((package, features)) = line.split_once('\t') {
            all.entry(package).or_default().insert(features.trim_end());
        }
    }
    all
}

/// Packages of the program that the tests do not have with the same features: both sets.
fn differences<'a>(program: &Features<'a>, tests: &Features<'a>) -> Vec<(&'a str, String, String)> {
    let none = BTreeSet::new();
    let text = |features: &BTreeSet<&str>| format!("{features:?}");
    let all =
        program.iter().map(|(package, features)| (*package, features, tests.get(package).unwrap_or(&none)));
    all.filter(|(_, program, tests)| !program.is_subset(tests))
        .map(|(package, program, tests)| (package, text(program), text(tests)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{differences, features};

    #[test]
    fn a_feature_of_tests_alone_is_found() {
        let program =
            features("cli v1\t\nterms v3\trdf-12\nlibc v0\tstd\nlibc v0\textra,std\nterms v3\trdf-12 (*)");
        let same = features("cli v1\t\nterms v3\trdf-12\nlibc v0\tstd\nlibc v0\textra,std\nproptest v1\tstd");
        assert_eq!(differences(&program, &same), []);
        let other = features("cli v1\t\nterms v3\trdf-12,rdfc-10\nlibc v0\tstd\nlibc v0\textra,std");
        let found: Vec<_> = differences(&program, &other).into_iter().map(|(package, ..)| package).collect();
        assert_eq!(found, ["terms v3"]);
    }
}
