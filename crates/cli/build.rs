//! Passes the commit, its date and the target triple to the program, for `vervet --version`.
//!
//! `VERVET_COMMIT` overrides what git reports, for builds from an archive of the sources. Debug builds have
//! no commit, since each commit would build them again.

use std::path::Path;
use std::process::Command;
use std::{env, io};

fn main() -> io::Result<()> {
    let variable = |name| env::var(name).map_err(io::Error::other);
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=VERVET_COMMIT");
    println!("cargo::rustc-env=VERVET_TARGET={}", variable("TARGET")?);
    let commit = match env::var("VERVET_COMMIT") {
        Ok(commit) => commit,
        Err(_) if variable("PROFILE")? == "debug" => "debug build".to_owned(),
        Err(_) => commit(Path::new(&variable("CARGO_MANIFEST_DIR")?)).unwrap_or("unknown commit".to_owned()),
    };
    println!("cargo::rustc-env=VERVET_VERSION={} ({commit})", variable("CARGO_PKG_VERSION")?);
    Ok(())
}

/// Abbreviated hash and day of the commit, from git; `None` outside a checkout of this repository.
fn commit(package: &Path) -> Option<String> {
    let git = |arguments: &[&str]| {
        let output = Command::new("git").args(arguments).current_dir(package).output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        output.status.success().then(|| text.trim().to_owned())
    };
    // Sources inside the checkout of another project have no commit of their own.
    let root = package.join("../..").canonicalize().ok()?;
    if Path::new(&git(&["rev-parse", "--show-toplevel"])?).canonicalize().ok()? != root {
        return None;
    }
    let log = git(&["rev-parse", "--git-path", "logs/HEAD"])?;
    println!("cargo::rerun-if-changed={}", package.join(log).display());
    git(&["log", "-1", "--format=%h %cd", "--abbrev=12", "--date=format-local:%Y-%m-%d"])
}
