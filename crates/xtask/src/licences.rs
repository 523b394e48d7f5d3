//! The licence list of a distribution: each package in the program with its licence, and the licence texts.
//!
//! `cargo tree` decides which packages are in the program, since `cargo metadata` unifies the features of the
//! whole workspace and so has more. `cargo metadata` has their licences and folders. Texts that differ only
//! in white space are printed once.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write;
use std::fs;
use std::path::Path;

/// Beginnings of the names of files with licences and notices, in lower case.
const TEXT_NAMES: [&str; 6] = ["license", "licence", "copying", "copyright", "notice", "unlicense"];
/// Extensions of files that have such a name and other contents.
const OTHER_EXTENSIONS: [&str; 8] = ["rs", "c", "h", "html", "toml", "json", "py", "sh"];
/// Folders of a package that are not in the program.
const OTHER_FOLDERS: [&str; 6] = ["tests", "test", "benches", "examples", "fuzz", "target"];
/// A package may contain this licence as an alternative; the list has the licence of the manifest.
const GPL: &str = "GNU GENERAL PUBLIC LICENSE";

/// Software in the program: a package of cargo, or a part that cargo does not know.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Component {
    pub name: String,
    pub version: String,
    /// An SPDX expression.
    pub licence: String,
    pub home: String,
    /// File names and contents.
    pub texts: Vec<(String, String)>,
}

/// The packages of `tree` (`cargo tree --prefix none`) that are not of this workspace, sorted.
///
/// # Errors
/// A package without a licence, or missing in `metadata` (`cargo metadata`); a file that could not be read.
pub(crate) fn packages(metadata: &Value, tree: &str) -> Result<Vec<Component>, String> {
    let field = |package: &Value, name: &str| package[name].as_str().unwrap_or_default().to_owned();
    let known: HashMap<_, _> = (metadata["packages"].as_array().into_iter().flatten())
        .map(|package| ((field(package, "name"), field(package, "version")), package))
        .collect();
    let mut components = Vec::new();
    for (name, version) in names(tree) {
        let package = *known
            .get(&(name.to_owned(), version.to_owned()))
            .ok_or_else(|| format!("cargo metadata does not have {name} {version}"))?;
        // Packages of this workspace have no source.
        if package["source"].is_null() {
            continue;
        }
        let (licence, file) = (field(package, "license"), field(package, "license_file"));
        if licence.is_empty() && file.is_empty() {
            return Err(format!("{name} {version} has no licence"));
        }
        let manifest = field(package, "manifest_path");
        let folder = Path::new(&manifest).parent().unwrap_or(Path::new(""));
        let mut texts = Vec::new();
        texts_of(folder, "", &file, &mut texts)?;
        texts.retain(|(_, text)| licence.contains("GPL") || !text.trim_start().starts_with(GPL));
        texts.sort();
        let licence = if licence.is_empty() { format!("see {file}") } else { licence };
        let home = field(package, "repository");
        let home = if home.is_empty() { field(package, "homepage") } else { home };
        let (name, version) = (name.to_owned(), version.to_owned());
        components.push(Component { name, version, licence, home, texts });
    }
    Ok(components)
}

/// Names and versions in the output of `cargo tree --prefix none`: `name v1.2.3 (/folder) (*)`.
fn names(tree: &str) -> BTreeSet<(&str, &str)> {
    tree.lines()
        .filter_map(|line| {
            let mut words = line.split(' ');
            Some((words.next()?, words.next()?.strip_prefix('v')?))
        })
        .collect()
}

/// Appends the licences and notices in a folder and its subfolders, and the file `also` of the manifest.
fn texts_of(
    folder: &Path,
    prefix: &str,
    also: &str,
    texts: &mut Vec<(String, String)>,
) -> Result<(), String> {
    let problem = |error| format!("could not read {}: {error}", folder.display());
    for entry in fs::read_dir(folder).map_err(problem)? {
        let path = entry.map_err(problem)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let inner = format!("{prefix}{name}");
        if path.is_dir() {
            if !OTHER_FOLDERS.contains(&name.as_str()) {
                texts_of(&path, &format!("{inner}/"), also, texts)?;
            }
        } else if is_text(&name) || inner == also {
            let bytes = fs::read(&path).map_err(problem)?;
            texts.push((inner, String::from_utf8_lossy(&bytes).replace("\r\n", "\n")));
        }
    }
    Ok(())
}

fn is_text(name: &str) -> bool {
    let name = name.to_lowercase();
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    TEXT_NAMES.iter().any(|start| name.starts_with(start)) && !OTHER_EXTENSIONS.contains(&extension)
}

/// The list: a line for each component with the numbers of its texts, then the texts.
pub(crate) fn render(title: &str, components: &[Component]) -> String {
    let mut numbers: BTreeMap<String, usize> = BTreeMap::new();
    // Files and contents, by number.
    let mut texts: Vec<(Vec<String>, &str)> = Vec::new();
    let mut list = String::new();
    for component in components {
        let Component { name, version, licence, home, .. } = component;
        let mut own = Vec::new();
        for (file, text) in &component.texts {
            let key = text.split_whitespace().collect::<Vec<_>>().join(" ");
            let number = *numbers.entry(key).or_insert(texts.len());
            if number == texts.len() {
                texts.push((Vec::new(), text));
            }
            texts[number].0.push(format!("{name} {version}: {file}"));
            let number = (number + 1).to_string();
            if !own.contains(&number) {
                own.push(number);
            }
        }
        let own = match own.is_empty() {
            true => "its package has no text".to_owned(),
            false => format!("texts {}", own.join(", ")),
        };
        let head = format!("{name} {version}");
        let fields = [&head, licence, home, &own].map(String::as_str);
        let fields: Vec<_> = fields.into_iter().filter(|field| !field.is_empty()).collect();
        let _ = writeln!(list, "{}", fields.join(" | "));
    }
    let rule = "=".repeat(100);
    let mut out = format!("{title}\n\n{list}");
    for (number, (files, text)) in texts.iter().enumerate() {
        let _ = write!(out, "\n{rule}\nText {}\n{}\n\n{}\n", number + 1, files.join("\n"), text.trim());
    }
    out
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::{Component, is_text, names, packages, render};
    use serde_json::{Value, json};
    use std::fs;
    use std::path::Path;

    #[test]
    fn packages_of_a_tree_are_found_once() {
        let tree = "vervet-cli v0.1.0 (/a/crates/cli)\nmemchr v2.8.0\nserde_derive v1.0.1 (proc-macro)\nmemchr v2.8.0 (*)\n\n";
        let expected = [("memchr", "2.8.0"), ("serde_derive", "1.0.1"), ("vervet-cli", "0.1.0")];
        assert_eq!(names(tree).into_iter().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn licence_files_have_their_names() {
        for name in [
            "LICENSE",
            "License-MIT",
            "LICENSE-Apache-2.0_WITH_LLVM-exception",
            "COPYING.txt",
            "UNLICENSE",
            "notice.md",
        ] {
            assert!(is_text(name), "{name}");
        }
        for name in ["README.md", "license.rs", "copyright.html", "src", "my-license"] {
            assert!(!is_text(name), "{name}");
        }
    }

    /// A package in a folder, as `cargo metadata` describes it.
    fn package(root: &Path, name: &str, licence: Option<&str>, files: &[(&str, &str)]) -> Value {
        for (file, text) in files {
            let path = root.join(name).join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let manifest = root.join(name).join("Cargo.toml");
        json!({
            "name": name, "version": "1.0.0", "license": licence, "source": "registry",
            "manifest_path": manifest.to_str().unwrap(), "repository": format!("https://example.org/{name}"),
        })
    }

    #[test]
    fn the_list_has_each_package_and_each_text_once() {
        let root = tempfile::tempdir().unwrap();
        let mit = "The MIT licence\n\nof a and b\n";
        let mut own = package(root.path(), "own", Some("Apache-2.0"), &[("LICENSE", "own text")]);
        own["source"] = Value::Null;
        let gpl = "\n   GNU GENERAL PUBLIC LICENSE";
        let metadata = json!({"packages": [
            package(root.path(), "b", Some("MIT"), &[("LICENSE", "The MIT licence\r\n of a and b"), ("c/COPYING", gpl)]),
            package(root.path(), "a", Some("MIT OR ISC"), &[("LICENSE-MIT", mit), ("src/license.rs", "code"), ("vendor/NOTICE", "A notice"), ("tests/LICENSE", "of a test")]),
            package(root.path(), "bare", Some("ISC"), &[("README.md", "text")]),
            package(root.path(), "unused", None, &[("README.md", "text")]),
            own,
        ]});
        let components =
            packages(&metadata, "own v1.0.0 (/x)\nb v1.0.0\nbare v1.0.0\na v1.0.0\nb v1.0.0 (*)\n").unwrap();
        let list = render("Title", &components);
        let rule = "=".repeat(100);
        assert_eq!(
            list,
            format!(
                "Title\n\n\
                 a 1.0.0 | MIT OR ISC | https://example.org/a | texts 1, 2\n\
                 b 1.0.0 | MIT | https://example.org/b | texts 1\n\
                 bare 1.0.0 | ISC | https://example.org/bare | its package has no text\n\
                 \n{rule}\nText 1\na 1.0.0: LICENSE-MIT\nb 1.0.0: LICENSE\n\nThe MIT licence\n\nof a and b\n\
                 \n{rule}\nText 2\na 1.0.0: vendor/NOTICE\n\nA notice\n"
            )
        );
        // Without a licence, or unknown.
        assert_eq!(packages(&metadata, "unused v1.0.0"), Err("unused 1.0.0 has no licence".to_owned()));
        assert!(packages(&metadata, "a v2.0.0").unwrap_err().contains("a 2.0.0"));
    }

    #[test]
    fn a_licence_file_of_the_manifest_counts() {
        let root = tempfile::tempdir().unwrap();
        let mut odd = package(root.path(), "odd", None, &[("terms.txt", "Terms")]);
        odd["license_file"] = json!("terms.txt");
        let components = packages(&json!({"packages": [odd]}), "odd v1.0.0").unwrap();
        let expected = Component {
            name: "odd".to_owned(),
            version: "1.0.0".to_owned(),
            licence: "see terms.txt".to_owned(),
            home: "https://example.org/odd".to_owned(),
            texts: vec![("terms.txt".to_owned(), "Terms".to_owned())],
        };
        assert_eq!(components, [expected]);
    }
}
