//! `cargo xtask gpu`: the device kernels, compiled for GPUs by `gpu/compile.py`, and their tests on the
//! simulated device: with each barrier removed, under sanitizers, and with many random queries.

use crate::command::cargo;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Exit status of the program without a compiler.
const SKIPPED: i32 = 3;
/// A test of changed kernels that runs for longer waits for ever.
const TEST_MAX: Duration = Duration::from_secs(300);
/// The statement that `mutate` removes.
const BARRIER: &str = "block_barrier();";
/// Random cases of each kind, if no number is given.
const CASES: &str = "50000";

/// The command after `gpu`; `None`: there is no such command.
pub(crate) fn run(arguments: &[&str]) -> Option<Result<(), String>> {
    Some(match arguments {
        ["check"] | ["build", _] => compile(arguments),
        ["mutate"] => mutate(),
        ["sanitize"] => sanitize(),
        ["random"] => random(CASES),
        ["random", count] if count.parse::<u32>().is_ok() => random(count),
        _ => return None,
    })
}

/// Runs `gpu/compile.py` with these arguments. Without Python or NVRTC it prints a line and succeeds.
pub(crate) fn compile(arguments: &[&str]) -> Result<(), String> {
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../gpu/compile.py");
    let Ok(status) = Command::new("python3").arg(program).args(arguments).status() else {
        println!("skipped: there is no python3");
        return Ok(());
    };
    match status.code() {
        Some(0 | SKIPPED) => Ok(()),
        _ => Err("failed: device kernels for GPUs".to_owned()),
    }
}

/// One barrier of a kernel.
struct Barrier {
    file: String,
    /// From 1.
    line: usize,
    /// The text of the file without it.
    changed: String,
}

/// Removes each barrier in turn; the tests of the kernels must fail for each.
fn mutate() -> Result<(), String> {
    let kernels = Path::new(env!("CARGO_MANIFEST_DIR")).join("../device/kernels");
    let folder = target_folder("gpu-mutate");
    let sources = folder.join("kernels");
    copy(&kernels, &sources)?;
    // The unchanged copy passes.
    if !test(&folder, &sources)? {
        return Err("failed: the tests of the unchanged kernels".to_owned());
    }
    let barriers = barriers(&kernels)?;
    if barriers.is_empty() {
        return Err(format!("no {BARRIER} in {}", kernels.display()));
    }
    let mut survivors = Vec::new();
    for Barrier { file, line, changed } in &barriers {
        let path = sources.join(file);
        let original = read(&path)?;
        write(&path, changed)?;
        let start = Instant::now();
        let passes = test(&folder, &sources)?;
        write(&path, &original)?;
        let verdict = if passes { "NOT FOUND" } else { "found" };
        println!("{file}:{line} without its barrier: {verdict} in {:.0} s", start.elapsed().as_secs_f64());
        if passes {
            survivors.push(format!("{file}:{line}"));
        }
    }
    println!("{} of {} removed barriers found", barriers.len() - survivors.len(), barriers.len());
    match survivors.is_empty() {
        true => Ok(()),
        false => Err(format!("no test fails without the barriers at {}", survivors.join(", "))),
    }
}

/// All barriers of the kernels, without their definitions.
fn barriers(kernels: &Path) -> Result<Vec<Barrier>, String> {
    let mut found = Vec::new();
    for file in files(kernels)? {
        if file.starts_with("dialect") || file.starts_with("simulated") {
            continue;
        }
        let text = read(&kernels.join(&file))?;
        for (at, _) in text.match_indices(BARRIER) {
            let changed = format!("{}{}", &text[..at], &text[at + BARRIER.len()..]);
            found.push(Barrier { file: file.clone(), line: 1 + text[..at].matches('\n').count(), changed });
        }
    }
    Ok(found)
}

/// Whether the tests of these kernels pass.
fn test(folder: &Path, sources: &Path) -> Result<bool, String> {
    let command = || {
        let mut command = cargo();
        command.args([
            "test",
            "--quiet",
            "-p",
            "vervet-device",
            "--features",
            "simulated",
            "--test",
            "kernels",
        ]);
        command.env("CARGO_TARGET_DIR", folder.join("target")).env("VERVET_KERNEL_SOURCES", sources);
        command.env_remove("VERVET_KERNELS").stdout(Stdio::null()).stderr(Stdio::null());
        command
    };
    let problem = |error| format!("could not start cargo: {error}");
    if !command().arg("--no-run").status().map_err(problem)?.success() {
        return Err("failed: the build of the kernels and their tests".to_owned());
    }
    let mut child = command().spawn().map_err(problem)?;
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait().map_err(problem)? {
            return Ok(status.success());
        }
        if start.elapsed() > TEST_MAX {
            child.kill().map_err(problem)?;
            child.wait().map_err(problem)?;
            return Ok(false);
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Runs the tests of the kernels with the sanitizers of g++ for addresses and undefined behaviour. Every
/// allocation of the simulated device is a block of the heap, so an access outside of it is found.
fn sanitize() -> Result<(), String> {
    const FLAGS: &str = "-fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer";
    let version = crate::command::output(Command::new("rustc").arg("-vV"))?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: ")).unwrap_or_default();
    // rustc links without the libraries that g++ would add. The first one has to be loaded before the C
    // library, whose allocator it replaces.
    let library = crate::command::output(Command::new("g++").arg("-print-file-name=libasan.so"))?;
    let runner = format!("CARGO_TARGET_{}_RUNNER", host.to_uppercase().replace('-', "_"));
    let mut command = cargo();
    command.args(["test", "-p", "vervet-device", "--features", "simulated", "--test", "kernels"]);
    // With a target, build scripts are linked and run without sanitizers.
    command.args(["--target", host]).env("CARGO_TARGET_DIR", target_folder("gpu-sanitize"));
    command.env("CXX", "g++").env("CXXFLAGS", FLAGS);
    command.env("RUSTFLAGS", "-C link-arg=-lasan -C link-arg=-lubsan");
    command.env(runner, format!("env LD_PRELOAD={}", library.trim()));
    // What the process still has at its end is not of interest.
    command.env("ASAN_OPTIONS", "detect_leaks=0").env_remove("VERVET_KERNELS");
    let status = command.status().map_err(|error| format!("could not start cargo: {error}"))?;
    if status.success() {
        Ok(())
    } else {
        Err("failed: the tests of the kernels under sanitizers".to_owned())
    }
}

/// Random queries on the simulated device, compared with Oxigraph and a model of Gremlin: on a base and with
/// changes, and a tenth as many with a device whose calls fail.
fn random(count: &str) -> Result<(), String> {
    let tenth = (count.parse::<u32>().unwrap_or(0) / 10).max(1).to_string();
    let suites: [&[&str]; 6] = [
        &["random", count, "1", "--delta"],
        &["random-gremlin", count, "1"],
        &["random-gremlin", count, "1", "--delta"],
        &["random", &tenth, "3000000", "--faults", "61"],
        &["random", &tenth, "4000000", "--delta", "--faults", "61"],
        &["random", count, "1"],
    ];
    let mut failed = Vec::new();
    for suite in suites {
        let start = Instant::now();
        println!("== {} --device simulated", suite.join(" "));
        let mut command = cargo();
        command.args(["run", "--release", "--quiet", "-p", "vervet-conformance", "--"]);
        command.args(suite).args(["--device", "simulated"]);
        let status = command.status().map_err(|error| format!("could not start cargo: {error}"))?;
        println!("{:.0} s", start.elapsed().as_secs_f64());
        if !status.success() {
            failed.push(suite.join(" "));
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(format!("failed: {}", failed.join("; "))) }
}

/// A folder of builds with other flags.
fn target_folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target").join(name)
}

fn files(folder: &Path) -> Result<Vec<String>, String> {
    let problem = |error| format!("could not list {}: {error}", folder.display());
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).map_err(problem)? {
        names.push(entry.map_err(problem)?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}

fn copy(from: &Path, to: &Path) -> Result<(), String> {
    fs::create_dir_all(to).map_err(|error| format!("could not create {}: {error}", to.display()))?;
    for file in files(from)? {
        write(&to.join(&file), &read(&from.join(&file))?)?;
    }
    Ok(())
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("could not read {}: {error}", path.display()))
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|error| format!("could not write {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_barrier_of_a_kernel_is_removed_once() {
        let folder = tempfile::tempdir().unwrap();
        write(&folder.path().join("dialect.cuh"), "void block_barrier();").unwrap();
        write(&folder.path().join("a.cu"), "a();\nblock_barrier();\nb();  block_barrier(); c();\n").unwrap();
        let found = barriers(folder.path()).unwrap();
        let places: Vec<usize> = found.iter().map(|barrier| barrier.line).collect();
        assert_eq!(places, [2, 3]);
        assert_eq!(found[0].changed, "a();\n\nb();  block_barrier(); c();\n");
        assert_eq!(found[1].changed, "a();\nblock_barrier();\nb();   c();\n");
    }
}
