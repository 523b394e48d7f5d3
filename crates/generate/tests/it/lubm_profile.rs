//! Compares generated universities with those of another generator of the same profile (`data/lubm/lubm-10`):
//! the same forms of statements, and about as many of each kind for a department.

#![expect(clippy::unwrap_used, reason = "a test")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use vervet_generate::generate_lubm;

const TYPE: &str = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>";

#[test]
fn histograms_agree_with_the_published_data() {
    let Some(file) = test_data().map(|data| data.join("data/lubm/lubm-10.nt.zst")) else {
        println!("skipped: no test data beside the project nor at VERVET_TEST_DATA");
        return;
    };
    let bytes = zstd::decode_all(std::fs::File::open(file).unwrap()).unwrap();
    let theirs = Profile::of(std::str::from_utf8(&bytes).unwrap());
    let mut text = Vec::new();
    generate_lubm(20, 0, &mut text).unwrap();
    let ours = Profile::of(std::str::from_utf8(&text).unwrap());

    assert_eq!(ours.forms, theirs.forms, "forms of statements differ");
    assert_eq!(ours.kinds["type University"], theirs.kinds["type University"]);
    for (kind, count) in &theirs.kinds {
        if kind == "type University" {
            continue;
        }
        let (ours, theirs) = (ours.per_department(kind), *count as f64 / theirs.departments());
        let ratio = ours / theirs;
        println!("{kind:28} {ours:9.2} {theirs:9.2} {ratio:6.3}");
        assert!((0.93..1.07).contains(&ratio), "{kind}: {ours} for a department, not {theirs}");
    }
    let departments = ours.departments() / 20.0;
    assert!((18.0..22.0).contains(&departments), "{departments} departments for a university");
}

/// Number of statements of each kind, and their forms.
struct Profile {
    /// Predicates and `type Class`.
    kinds: BTreeMap<String, u64>,
    /// Statements with every number replaced by `9`.
    forms: BTreeSet<String>,
}

impl Profile {
    fn of(text: &str) -> Self {
        let (mut kinds, mut forms) = (BTreeMap::new(), BTreeSet::new());
        let mut form = String::new();
        for line in text.lines() {
            let mut parts = line.splitn(3, ' ');
            let (_, predicate, object) =
                (parts.next().unwrap(), parts.next().unwrap(), parts.next().unwrap());
            let local = |iri: &str| iri.split('#').nth(1).unwrap().split('>').next().unwrap().to_owned();
            let kind = if predicate == TYPE { format!("type {}", local(object)) } else { local(predicate) };
            *kinds.entry(kind).or_default() += 1;
            form.clear();
            for character in line.chars() {
                if !character.is_ascii_digit() {
                    form.push(character);
                } else if !form.ends_with('9') {
                    form.push('9');
                }
            }
            if !forms.contains(&form) {
                forms.insert(form.clone());
            }
        }
        Self { kinds, forms }
    }

    fn departments(&self) -> f64 {
        self.kinds["type Department"] as f64
    }

    fn per_department(&self, kind: &str) -> f64 {
        self.kinds.get(kind).copied().unwrap_or(0) as f64 / self.departments()
    }
}

/// The folder of test data: `VERVET_TEST_DATA`, or `shared` beside the project.
fn test_data() -> Option<PathBuf> {
    let folder = std::env::var_os("VERVET_TEST_DATA")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared"), PathBuf::from);
    folder.join("data").is_dir().then_some(folder)
}
