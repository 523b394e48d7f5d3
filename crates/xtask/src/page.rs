//! Build of the web console (`page/`): type check, unit tests and build, with npm; the result goes to the
//! archive from which every build of the server takes it (`bundle`).
//!
//! Optional: without Node.js, or if the page's few packages cannot be fetched within a minute, this step
//! prints the reason and is skipped, since the archive is in the repository. Once the packages are installed,
//! failures are errors. Not here: the browser test (`npm run test:browser`, page/README.md).

use crate::bundle;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Minimum Node.js version of the page's tools.
const NODE_MIN: (u32, u32) = (20, 19);
/// Time limit for fetching packages.
const FETCH_MAX: Duration = Duration::from_secs(60);

/// Builds and tests the console, and writes it to its archive.
///
/// # Errors
/// A step that failed; with `checks`, an archive that did not hold this console.
pub(crate) fn page(checks: bool) -> Result<(), String> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../page");
    if let Some(reason) = missing(&page)? {
        println!("== page: skipped: {reason}");
        return Ok(());
    }
    for script in ["build", "test"] {
        let start = Instant::now();
        println!("== page: npm run {script}");
        let status = npm(&page).args(["run", "--silent", script]).status();
        if !status.map_err(|error| format!("could not start npm: {error}"))?.success() {
            return Err(format!("failed: npm run {script} (in page/)"));
        }
        println!("== page: npm run {script}: {:.0} s", start.elapsed().as_secs_f64());
    }
    if !bundle::update(&page.join("dist"))? {
        if checks {
            return Err(
                "crates/server/console.tar.gz was not the console of page/; commit the new one".to_owned()
            );
        }
        println!("== page: crates/server/console.tar.gz is new");
    }
    Ok(())
}

/// The reason why the page cannot be built here, if any. Fetches its packages if they are missing.
fn missing(page: &Path) -> Result<Option<String>, String> {
    let Some(version) = node_version() else { return Ok(Some("there is no node".to_owned())) };
    if version < NODE_MIN {
        return Ok(Some(format!(
            "node is {}.{}, and must be {}.{} or newer",
            version.0, version.1, NODE_MIN.0, NODE_MIN.1
        )));
    }
    if npm(page).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_err() {
        return Ok(Some("there is no npm".to_owned()));
    }
    if has_packages(page) {
        return Ok(None);
    }
    println!("== page: npm ci");
    let mut fetch = npm(page);
    fetch.args(["ci", "--no-audit", "--no-fund", "--silent"]);
    Ok(match run_for(fetch, FETCH_MAX)? {
        Some(status) if status.success() => None,
        Some(_) => Some("npm ci failed; is a registry in reach?".to_owned()),
        None => Some(format!("npm ci took longer than {} s", FETCH_MAX.as_secs())),
    })
}

/// Whether all packages of the lock file were installed after it was written. npm writes its own list last.
fn has_packages(page: &Path) -> bool {
    let written = |file: PathBuf| file.metadata().and_then(|data| data.modified()).ok();
    let installed = written(page.join("node_modules/.package-lock.json"));
    installed.is_some() && installed >= written(page.join("package-lock.json"))
}

fn npm(page: &Path) -> Command {
    let mut command = Command::new(if cfg!(windows) { "npm.cmd" } else { "npm" });
    command.current_dir(page).stdin(Stdio::null());
    command
}

/// Major and minor version.
fn node_version() -> Option<(u32, u32)> {
    let output = Command::new("node").arg("--version").output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let mut parts = text.trim().trim_start_matches('v').split('.').map(str::parse);
    Some((parts.next()?.ok()?, parts.next()?.ok()?))
}

/// The status of `command`, or `None` if it was killed after `limit`.
fn run_for(mut command: Command, limit: Duration) -> Result<Option<ExitStatus>, String> {
    let problem = |error| format!("could not run npm: {error}");
    let mut child = command.spawn().map_err(problem)?;
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait().map_err(problem)? {
            return Ok(Some(status));
        }
        if start.elapsed() > limit {
            child.kill().map_err(problem)?;
            child.wait().map_err(problem)?;
            return Ok(None);
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}
