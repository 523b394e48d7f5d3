//! The Python package (`python/`): builds its module, puts the package together in `target/python`, and runs
//! its tests.
//!
//! The build needs no Python. The tests need an interpreter with pytest: that of the environment variable
//! `PYTHON`, else `python3`. Without one this step prints the reason and skips them. Nothing is installed.

use crate::command::cargo;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The oldest version of Python that the module supports.
const PYTHON_MIN: (u32, u32) = (3, 11);

/// Builds and tests the package.
///
/// # Errors
/// A step that failed.
pub(crate) fn python() -> Result<(), String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python");
    println!("== python: cargo build -p vervet-python");
    let built = cargo().args(["build", "--quiet", "-p", "vervet-python"]).status();
    if !built.map_err(|error| format!("could not start cargo: {error}"))?.success() {
        return Err("failed: cargo build -p vervet-python".to_owned());
    }
    let path = assemble(&folder).map_err(|error| format!("could not put the package together: {error}"))?;
    let interpreter = std::env::var_os("PYTHON").unwrap_or_else(|| "python3".into());
    let python = || {
        let mut command = Command::new(&interpreter);
        // Not in `python/`, where the package has no module.
        let root = folder.join("..");
        command.current_dir(root).env("PYTHONPATH", &path).env("PYTHONDONTWRITEBYTECODE", "1");
        // For a test of `vervet mcp`, if an earlier step has built the command.
        let vervet = std::env::current_exe().map(|program| program.with_file_name("vervet"));
        if let Some(vervet) = vervet.ok().filter(|vervet| vervet.exists()) {
            command.env("VERVET_COMMAND", vervet);
        }
        command
    };
    if let Some(reason) = missing(python()) {
        println!("== python: the tests are skipped: {reason}");
        return Ok(());
    }
    println!("== python: {} -m pytest python/tests", interpreter.display());
    // `-rs` prints the tests that are skipped, and the packages that they need.
    let arguments = ["-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", "python/tests"];
    let status = python().args(arguments).status();
    match status.map_err(|error| format!("could not start {}: {error}", interpreter.display()))?.success() {
        true => Ok(()),
        false => Err("failed: python -m pytest python/tests".to_owned()),
    }
}

/// Copies the files of the package and the module that was built to a folder for `PYTHONPATH`.
fn assemble(folder: &Path) -> std::io::Result<PathBuf> {
    // This program and the module are in the same folder of the same profile.
    let program = std::env::current_exe()?;
    let built = program.parent().unwrap_or(Path::new("."));
    let module = ["lib_vervet.so", "lib_vervet.dylib", "_vervet.dll"].map(|name| built.join(name));
    let module = module.iter().find(|path| path.exists()).unwrap_or(&module[0]);
    let path = built.join("../python");
    let package = path.join("vervet");
    if package.exists() {
        fs::remove_dir_all(&package)?;
    }
    fs::create_dir_all(&package)?;
    for entry in fs::read_dir(folder.join("vervet"))? {
        let file = entry?.path();
        let name = file.file_name().unwrap_or_default();
        // Not the module of an installation in place, and no folders of compiled files.
        if file.is_file() && !name.to_string_lossy().starts_with("_vervet.abi3") {
            fs::copy(&file, package.join(name))?;
        }
    }
    let name = if cfg!(windows) { "_vervet.pyd" } else { "_vervet.abi3.so" };
    fs::copy(module, package.join(name))?;
    // As an installation would: NetworkX and rdflib find the package by its entry points.
    let metadata = path.join("vervet-0.dist-info");
    fs::create_dir_all(&metadata)?;
    fs::write(metadata.join("METADATA"), "Metadata-Version: 2.1\nName: vervet\nVersion: 0\n")?;
    let project = fs::read_to_string(folder.join("pyproject.toml"))?;
    fs::write(metadata.join("entry_points.txt"), entry_points(&project))?;
    path.canonicalize()
}

/// The entry points of a `pyproject.toml` as `entry_points.txt` has them.
fn entry_points(project: &str) -> String {
    let mut text = String::new();
    let mut is_inside = false;
    for line in project.lines() {
        if line.starts_with('[') {
            let group = line.strip_prefix("[project.entry-points.").and_then(|rest| rest.strip_suffix(']'));
            is_inside = group.is_some();
            if let Some(group) = group {
                text.push_str(&format!("[{}]\n", group.trim_matches('"')));
            }
        } else if is_inside && line.contains('=') {
            text.push_str(&line.replace('"', ""));
            text.push('\n');
        }
    }
    text
}

/// The reason why the tests cannot run with this interpreter, if any.
fn missing(mut python: Command) -> Option<String> {
    let script = "import sys; print(*sys.version_info[:2]); import pytest";
    let Ok(output) = python.args(["-c", script]).output() else {
        return Some("there is no python3".to_owned());
    };
    let text = String::from_utf8_lossy(&output.stdout);
    let Some(version) = version(&text) else { return Some("python3 does not run".to_owned()) };
    if version < PYTHON_MIN {
        let (major, minor) = PYTHON_MIN;
        return Some(format!("python3 is {}.{}, and must be {major}.{minor} or newer", version.0, version.1));
    }
    (!output.status.success()).then(|| "there is no pytest; install it with `pip install pytest`".to_owned())
}

/// Major and minor version.
fn version(text: &str) -> Option<(u32, u32)> {
    let mut parts = text.split_whitespace().map(str::parse);
    Some((parts.next()?.ok()?, parts.next()?.ok()?))
}

#[cfg(test)]
mod tests {
    use super::{PYTHON_MIN, entry_points, missing, version};
    use std::process::Command;

    #[test]
    fn versions_are_compared_by_number() {
        assert_eq!(version("3 9\n"), Some((3, 9)));
        assert!(version("3 9\n") < Some(PYTHON_MIN) && version("3 14\n") > Some(PYTHON_MIN));
        assert_eq!(version(""), None);
    }

    #[test]
    fn entry_points_are_those_of_the_project() {
        let project =
            "[project]\nname = \"x\"\n\n[project.entry-points.\"a.b\"]\nc = \"d.e:f\"\n\n[tool.x]\ny = 1\n";
        assert_eq!(entry_points(project), "[a.b]\nc = d.e:f\n");
    }

    #[test]
    fn a_missing_interpreter_is_a_reason() {
        let reason = missing(Command::new("a-program-that-does-not-exist"));
        assert_eq!(reason.as_deref(), Some("there is no python3"));
    }
}
