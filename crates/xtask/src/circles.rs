//! Circles between the files of a crate: `a` uses `crate::b`, and `b` uses `crate::a`, directly or through
//! other files.
//!
//! # Shape
//! Tokens of the files -> modules with their definitions, imports and paths -> for each path the file that
//! defines its item, through re-exports -> sets of files that reach each other.
//!
//! Not counted: `mod child`, a `pub use` of a descendant that the parent itself does not use, and items under
//! `#[cfg(test)]`.
//!
//! `circles.txt` lists the known circles; each line is `CRATE: FILE FILE…: REASON`.

use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of re-exports through which a name is resolved.
const REEXPORTS_MAX: usize = 16;

/// Files that reach each other, by path without `.rs`, and the uses between them.
#[derive(Debug, PartialEq)]
struct Circle {
    files: Vec<String>,
    uses: String,
}

/// Adds a problem for each unlisted circle, and for each listed one that does not exist. `files` are names
/// relative to the root of the repository, with texts.
pub(crate) fn check(files: &[(String, String)], list: &str, problems: &mut Vec<String>) {
    let mut crates: BTreeMap<&str, Vec<(&str, &str)>> = BTreeMap::new();
    for (name, text) in files {
        let path = name.strip_prefix("crates/").unwrap_or(name).split_once("/src/");
        if let Some((package, file)) = path {
            crates.entry(package).or_default().push((file, text));
        }
    }
    let mut listed = BTreeSet::new();
    for line in list.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let mut parts = line.splitn(3, ": ");
        let entry = parts.next().zip(parts.next());
        let Some(((package, files), _)) = entry.zip(parts.next().filter(|reason| !reason.is_empty())) else {
            problems.push(format!("circles.txt: no `CRATE: FILE FILE…: REASON`: {line}"));
            continue;
        };
        let mut files: Vec<_> = files.split(' ').collect();
        files.sort_unstable();
        listed.insert(format!("{package}: {}", files.join(" ")));
    }
    for (package, files) in crates {
        for circle in circles(&files) {
            let entry = format!("{package}: {}", circle.files.join(" "));
            if !listed.remove(&entry) {
                problems.push(format!(
                    "a circle that circles.txt does not list: `{entry}: REASON`\n{}",
                    circle.uses
                ));
            }
        }
    }
    for entry in listed {
        problems.push(format!("circles.txt: the files are no circle (any more): `{entry}`"));
    }
}

/// The circles of a crate. `files`: paths relative to `src`, and texts.
fn circles(files: &[(&str, &str)]) -> Vec<Circle> {
    let has_library = files.iter().any(|(name, _)| *name == "lib.rs");
    let mut tree = Tree::default();
    for (number, (name, text)) in files.iter().enumerate() {
        tree.read(number, module_of(name, has_library), text);
    }
    let uses = tree.uses(files.len());
    let reached: Vec<_> = (0..files.len()).map(|file| reachable(&uses, file)).collect();
    let name = |file: usize| files[file].0.trim_end_matches(".rs").to_owned();
    let mut found: Vec<Circle> = Vec::new();
    let mut seen = BTreeSet::new();
    for file in 0..files.len() {
        if !reached[file].contains(&file) || seen.contains(&file) {
            continue;
        }
        let mut members: Vec<_> =
            reached[file].iter().copied().filter(|other| reached[*other].contains(&file)).collect();
        members.sort_by_key(|member| name(*member));
        let lines = members.iter().map(|member| {
            let used = uses[*member].iter().filter(|used| members.contains(used));
            let used: Vec<_> = used.map(|used| name(*used)).collect();
            format!("    {} uses {}", name(*member), used.join(", "))
        });
        found.push(Circle {
            uses: lines.collect::<Vec<_>>().join("\n"),
            files: members.iter().map(|member| name(*member)).collect(),
        });
        seen.extend(members);
    }
    found
}

/// The files that `start` uses, directly or through other files.
fn reachable(uses: &[BTreeSet<usize>], start: usize) -> BTreeSet<usize> {
    let mut reached = BTreeSet::new();
    let mut next = vec![start];
    while let Some(file) = next.pop() {
        next.extend(uses[file].iter().copied().filter(|used| reached.insert(*used)));
    }
    reached
}

/// The module of a file: `a/b.rs` and `a/b/mod.rs` are `[a, b]`, the root of the crate is `[]`.
fn module_of(file: &str, has_library: bool) -> Vec<String> {
    let stem = file.trim_end_matches(".rs");
    let root = if has_library { "lib" } else { "main" };
    if stem == root {
        return Vec::new();
    }
    stem.trim_end_matches("/mod").split('/').map(str::to_owned).collect()
}

/// A module: a file, or a `mod name { … }` in one.
#[derive(Default)]
struct Module {
    file: usize,
    /// Items, except modules.
    defined: BTreeSet<String>,
    imports: BTreeMap<String, Vec<String>>,
    globs: Vec<Vec<String>>,
    /// Paths in code and in private imports, and names of types.
    used: BTreeSet<Vec<String>>,
    reexported: Vec<Vec<String>>,
}

/// The modules of a crate by path.
#[derive(Default)]
struct Tree {
    modules: BTreeMap<Vec<String>, Module>,
    /// Modules under `#[cfg(test)]`.
    tests: BTreeSet<Vec<String>>,
}

impl Tree {
    fn read(&mut self, file: usize, module: Vec<String>, text: &str) {
        let tokens = tokens(text);
        Reader { tree: self, tokens: &tokens, at: 0, file, module, depth: 0, outer: Vec::new() }.read();
    }

    /// For each file the others that it uses.
    fn uses(&self, files: usize) -> Vec<BTreeSet<usize>> {
        let mut uses = vec![BTreeSet::new(); files];
        for (path, module) in &self.modules {
            if (0..=path.len()).any(|end| self.tests.contains(&path[..end])) {
                continue;
            }
            let used = module.used.iter().filter_map(|used| self.resolve(path, used, 0));
            let reexported = (module.reexported.iter())
                .filter_map(|used| self.resolve(path, used, 0))
                .filter(|found| !found.starts_with(path));
            for found in used.chain(reexported) {
                let file = self.modules[&found].file;
                if file != module.file {
                    uses[module.file].insert(file);
                }
            }
        }
        uses
    }

    /// The module that defines what `path`, written in `module`, names; `None`: another crate.
    fn resolve(&self, module: &[String], path: &[String], reexports: usize) -> Option<Vec<String>> {
        let mut at = module.to_vec();
        let mut rest = path;
        while let Some((first, tail)) = rest.split_first() {
            match first.as_str() {
                "crate" => at.clear(),
                "self" => {}
                "super" => {
                    at.pop()?;
                }
                _ => break,
            }
            rest = tail;
        }
        let mut is_in_crate = rest.len() < path.len();
        while let Some((name, tail)) = rest.split_first() {
            let child = [&at[..], std::slice::from_ref(name)].concat();
            if self.modules.contains_key(&child) {
                (at, rest, is_in_crate) = (child, tail, true);
                continue;
            }
            let module = self.modules.get(&at)?;
            if module.defined.contains(name) {
                return Some(at);
            }
            if reexports == REEXPORTS_MAX {
                return None;
            }
            if let Some(import) = module.imports.get(name) {
                return self.resolve(&at, &[import, tail].concat(), reexports + 1);
            }
            for glob in &module.globs {
                let target = self.resolve(&at, glob, reexports + 1);
                let found = target
                    .and_then(|target| self.resolve(&target, std::slice::from_ref(name), reexports + 1));
                if found.is_some() {
                    return found;
                }
            }
            // A macro may have defined it.
            return is_in_crate.then_some(at);
        }
        self.modules.contains_key(&at).then_some(at)
    }
}

/// Finds the modules, definitions, imports and paths in the tokens of a file.
struct Reader<'t> {
    tree: &'t mut Tree,
    tokens: &'t [&'t str],
    at: usize,
    file: usize,
    module: Vec<String>,
    /// Number of open braces.
    depth: usize,
    /// Depths outside of the inline modules around `at`.
    outer: Vec<usize>,
}

impl<'t> Reader<'t> {
    fn read(&mut self) {
        self.open_module();
        let mut is_public = false;
        while let Some(token) = self.token(0) {
            match token {
                "#" => {
                    if self.attribute() {
                        self.skip_item();
                    }
                    continue;
                }
                "pub" => {
                    self.at += 1;
                    if self.token(0) == Some("(") {
                        self.skip_group();
                    }
                    is_public = true;
                    continue;
                }
                "use" if self.token(1) != Some("<") => {
                    self.at += 1;
                    self.use_tree(&[], is_public);
                }
                "mod" if self.token(2) == Some("{") => {
                    self.module.push(self.tokens[self.at + 1].to_owned());
                    self.outer.push(self.depth);
                    self.open_module();
                    self.at += 2;
                    continue;
                }
                "struct" | "enum" | "union" | "trait" | "fn" | "const" | "static" | "type"
                    if self.depth == self.outer.last().map_or(0, |outer| outer + 1) =>
                {
                    if let Some(name) = self.token(1) {
                        self.current().defined.insert(name.to_owned());
                    }
                }
                "{" => self.depth += 1,
                "}" => {
                    self.depth = self.depth.saturating_sub(1);
                    if self.outer.last() == Some(&self.depth) {
                        self.outer.pop();
                        self.module.pop();
                    }
                }
                name if is_name(name) => self.path(),
                _ => {}
            }
            is_public = false;
            self.at += 1;
        }
    }

    fn token(&self, ahead: usize) -> Option<&'t str> {
        self.tokens.get(self.at + ahead).copied()
    }

    fn current(&mut self) -> &mut Module {
        self.tree.modules.entry(self.module.clone()).or_default()
    }

    fn open_module(&mut self) {
        self.current().file = self.file;
    }

    /// Skips an attribute; returns whether it is `#[cfg(test)]`, perhaps with further conditions.
    fn attribute(&mut self) -> bool {
        self.at += 1;
        if self.token(0) == Some("!") {
            self.at += 1;
        }
        let start = self.at;
        self.skip_group();
        let words = &self.tokens[start..self.at];
        words.get(1) == Some(&"cfg")
            && words.contains(&"test")
            && !words.contains(&"not")
            && !words.contains(&"any")
    }

    /// Skips `( … )`, `[ … ]` or `{ … }`.
    fn skip_group(&mut self) {
        let mut open = 0_usize;
        while let Some(token) = self.token(0) {
            self.at += 1;
            match token {
                "(" | "[" | "{" => open += 1,
                ")" | "]" | "}" => open = open.saturating_sub(1),
                _ => {}
            }
            if open == 0 {
                return;
            }
        }
    }

    /// Skips an item of tests. A test module in a file of its own is recorded.
    fn skip_item(&mut self) {
        while self.token(0) == Some("#") {
            self.attribute();
        }
        if self.token(0) == Some("mod") && self.token(2) == Some(";") {
            let child = [&self.module[..], &[self.tokens[self.at + 1].to_owned()]].concat();
            self.tree.tests.insert(child);
        }
        let is_use = (0..6).any(|ahead| self.token(ahead) == Some("use"));
        while let Some(token) = self.token(0) {
            match token {
                ";" => break,
                "(" | "[" => self.skip_group(),
                "{" => {
                    self.skip_group();
                    if !is_use {
                        return;
                    }
                }
                // The end of a field, of an argument or of the enclosing group.
                "}" | ")" => return,
                _ => self.at += 1,
            }
        }
        self.at += 1;
    }

    /// Reads a tree of `use`, up to the `;`, `,` or `}` after it.
    fn use_tree(&mut self, prefix: &[String], is_public: bool) {
        let mut path = prefix.to_vec();
        let mut alias = None;
        while let Some(token) = self.token(0) {
            match token {
                ";" | "," | "}" => break,
                "::" => {}
                "as" => {
                    alias = self.token(1).map(str::to_owned);
                    self.at += 1;
                }
                "*" => {
                    self.at += 1;
                    self.current().globs.push(path.clone());
                    return self.import(path, is_public);
                }
                "{" => {
                    while matches!(self.token(0), Some("{" | ",")) {
                        self.at += 1;
                        self.use_tree(&path, is_public);
                    }
                    self.at += 1;
                    return;
                }
                name => path.push(name.to_owned()),
            }
            self.at += 1;
        }
        // The end of a group after a trailing comma.
        if path.len() == prefix.len() {
            return;
        }
        if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
            path.pop();
        }
        if let Some(name) = alias.or_else(|| path.last().cloned()) {
            self.current().imports.insert(name, path.clone());
        }
        self.import(path, is_public);
    }

    fn import(&mut self, path: Vec<String>, is_public: bool) {
        let module = self.current();
        if is_public {
            module.reexported.push(path);
        } else {
            module.used.insert(path);
        }
    }

    /// Reads a path in code, or a single name of a type, up to its last token.
    fn path(&mut self) {
        let is_inside = self.at > 0 && matches!(self.tokens[self.at - 1], "::" | ".");
        let mut path = vec![self.tokens[self.at].to_owned()];
        while self.token(1) == Some("::") && self.token(2).is_some_and(is_name) {
            self.at += 2;
            path.push(self.tokens[self.at].to_owned());
        }
        let is_type = path[0].starts_with(char::is_uppercase);
        if !is_inside && (path.len() > 1 || is_type) {
            self.current().used.insert(path);
        }
    }
}

fn is_name(token: &str) -> bool {
    token.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// Names, `::` and single other characters, without comments, literals and lifetimes.
fn tokens(text: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let length = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else if let Some(length) = literal(rest) {
            length
        } else if first.is_whitespace() || rest.starts_with("r#") {
            first.len_utf8() + usize::from(first == 'r')
        } else {
            let length = if is_word(first) {
                rest.find(|c| !is_word(c)).unwrap_or(rest.len())
            } else if rest.starts_with("::") {
                2
            } else {
                first.len_utf8()
            };
            tokens.push(&rest[..length]);
            length
        };
        rest = &rest[length..];
    }
    tokens
}

/// The length of the string, the character or the lifetime at the start of a text.
fn literal(text: &str) -> Option<usize> {
    if let Some(rest) = text.strip_prefix('\'') {
        let first = rest.chars().next()?;
        if first != '\\' && !rest[first.len_utf8()..].starts_with('\'') {
            // A lifetime: its name is skipped as well.
            return Some(1 + rest.find(|c: char| !c.is_alphanumeric() && c != '_')?);
        }
        return closed(text, 1, '\'');
    }
    if text.starts_with("b'") {
        return closed(text, 2, '\'');
    }
    let prefix = text.find(|c: char| !matches!(c, 'b' | 'c' | 'r')).filter(|prefix| *prefix <= 2)?;
    let rest = &text[prefix..];
    let hashes = rest.find(|c| c != '#')?;
    if !rest[hashes..].starts_with('"') {
        return None;
    }
    if text[..prefix].ends_with('r') {
        let start = prefix + hashes + 1;
        let end = format!("\"{}", "#".repeat(hashes));
        return text[start..].find(&end).map(|length| start + length + end.len());
    }
    if hashes > 0 { None } else { closed(text, prefix + 1, '"') }
}

/// The length of a literal with escapes whose contents begin at `start`.
fn closed(text: &str, start: usize, quote: char) -> Option<usize> {
    let mut is_escaped = false;
    for (at, c) in text[start..].char_indices() {
        if is_escaped {
            is_escaped = false;
        } else if c == '\\' {
            is_escaped = true;
        } else if c == quote {
            return Some(start + at + 1);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::{check, circles, tokens};

    /// The files of each circle.
    fn found(files: &[(&str, &str)]) -> Vec<Vec<String>> {
        circles(files).into_iter().map(|circle| circle.files).collect()
    }

    #[test]
    fn circles_of_two_and_three_are_found() {
        let root = ("lib.rs", "mod a; mod b; mod c; pub use a::A;");
        let a = ("a.rs", "use crate::b::{self, B};\npub struct A(B);");
        let b = ("b.rs", "pub(crate) struct B;\nfn f() { crate::a::A::new() }");
        assert_eq!(found(&[root, a, b]), [["a", "b"]]);
        let b = ("b.rs", "use super::c::g;\npub struct B;");
        assert!(found(&[root, a, b, ("c.rs", "pub fn g() {}")]).is_empty());
        assert_eq!(found(&[root, a, b, ("c.rs", "pub fn g(_: crate::a::A) {}")]), [["a", "b", "c"]]);
        let c = ("c.rs", "use crate::A; pub fn g() {}");
        assert_eq!(found(&[root, a, b, c]), [["a", "b", "c"]], "through the re-export");
        let other = ("c.rs", "use crate::d::x; pub fn g() {}");
        let apart = [root, a, ("b.rs", "use super::A; pub struct B;"), other, ("d.rs", "use crate::c::g;")];
        assert_eq!(found(&apart), [["a", "b"], ["c", "d"]]);
    }

    #[test]
    fn a_parent_that_declares_and_reexports_uses_no_child() {
        let child = ("a/b.rs", "use super::Limit;\nuse crate::a::c::C;\npub struct B(Limit, C);");
        let sibling = ("a/c.rs", "pub struct C;");
        let parent = |text| [("lib.rs", "mod a; pub use a::*;"), ("a.rs", text), child, sibling];
        let declarations = "mod b; mod c; pub use b::B; pub(crate) use c::C; pub struct Limit;";
        assert!(found(&parent(declarations)).is_empty());
        let private = "mod b; mod c; use b::B; pub struct Limit;";
        assert_eq!(found(&parent(private)), [["a", "a/b"]]);
        let path = "mod b; mod c; pub struct Limit; fn f() { b::f() }";
        assert_eq!(found(&parent(path)), [["a", "a/b"]]);
        let name = "mod b; mod c; pub use b::B; pub struct Limit; fn f(_: &B) {}";
        assert_eq!(found(&parent(name)), [["a", "a/b"]]);
    }

    #[test]
    fn tests_are_not_counted() {
        let a = ("a.rs", "pub fn a() { crate::b::b() }");
        let root = "mod a; mod b;";
        let tests = "pub fn b() {}\n#[cfg(test)]\nmod tests { use crate::a::a; }";
        assert!(found(&[("lib.rs", root), a, ("b.rs", tests)]).is_empty());
        let file = "#[cfg(all(test, feature = \"x\"))]\n#[allow(dead_code)]\nmod tests;\npub fn b() {}";
        let used = ("b/tests.rs", "use crate::a::a; use super::b;");
        assert!(found(&[("lib.rs", root), a, ("b.rs", file), used]).is_empty());
        let after = "#[cfg(test)]\nuse crate::a::{a, c};\npub fn b() { crate::a::a() }";
        assert_eq!(found(&[("lib.rs", root), a, ("b.rs", after)]), [["a", "b"]]);
        let production = "#[cfg(not(test))]\nuse crate::a::a;\npub fn b() {}";
        assert_eq!(found(&[("lib.rs", root), a, ("b.rs", production)]), [["a", "b"]]);
    }

    #[test]
    fn comments_and_literals_are_no_uses() {
        let text = "'a: &'static str = \"use crate::a;\\\" //\"; '\"' b'\\'' r#\"/* \" */\"# // crate::a\n/* x */ b::c r#type";
        let expected = [":", "&", "str", "=", ";", "b", "::", "c", "type"];
        assert_eq!(tokens(text), expected);
    }

    #[test]
    fn the_list_is_exact() {
        let file = |name: &str, text: &str| (format!("crates/one/src/{name}"), text.to_owned());
        let files = [file("lib.rs", ""), file("a.rs", "use crate::b::b;"), file("b.rs", "use crate::a::a;")];
        let problems = |list: &str| {
            let mut problems = Vec::new();
            check(&files, list, &mut problems);
            problems
        };
        assert!(problems("# Circles.\n\none: b a: to be split\n").is_empty());
        let missing = problems("");
        assert_eq!(missing.len(), 1);
        assert!(missing[0].contains("`one: a b: REASON`\n    a uses b\n    b uses a"), "{}", missing[0]);
        assert_eq!(problems("one: a b").len(), 2, "no reason");
        assert_eq!(problems("one: a b: to be split\none: a c: to be split\ntwo: a b: x").len(), 2);
    }
}
