//! `cargo xtask dist`: the program as one self-contained binary, in a folder and an archive for distribution.
//!
//! `target/dist/vervet-VERSION-TARGET` gets the binary, the licences, completions, man pages, and the files
//! of `packaging/` for systemd, containers and clusters. Beside it are the folder as `.tar.gz`, and
//! `SHA256SUMS`.
//!
//! On Linux the binary is static: with musl if `rustup` has the target and `musl-gcc` is installed, otherwise
//! with glibc. The result depends on the commit and the toolchain: folders of the machine are not in the
//! binary, and files of the archive are sorted and have the time of the commit.

use crate::bundle;
use crate::command::{cargo, output};
use crate::licences::{self, Component};
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// A larger binary is an error.
const BINARY_BYTES_MAX: usize = 25_000_000;
/// Shells, and the names under which they search for completions of `vervet`.
const COMPLETIONS: [(&str, &str); 5] = [
    ("bash", "vervet.bash"),
    ("elvish", "vervet.elv"),
    ("fish", "vervet.fish"),
    ("powershell", "_vervet.ps1"),
    ("zsh", "_vervet"),
];
/// Files of the repository, and their names in the folder.
const FILES: [(&str, &str); 23] = [
    ("LICENSE", "LICENSE"),
    ("README.md", "README.md"),
    ("packaging/Dockerfile", "Dockerfile"),
    ("packaging/compose.yaml", "compose.yaml"),
    ("packaging/cluster/Dockerfile", "cluster/Dockerfile"),
    ("packaging/cluster/compose.yaml", "cluster/compose.yaml"),
    ("packaging/cluster/graph/.gitignore", "cluster/graph/.gitignore"),
    ("packaging/cluster/init.sh", "cluster/init.sh"),
    ("packaging/helm/vervet/.helmignore", "helm/vervet/.helmignore"),
    ("packaging/helm/vervet/Chart.yaml", "helm/vervet/Chart.yaml"),
    ("packaging/helm/vervet/files/init.sh", "helm/vervet/files/init.sh"),
    ("packaging/helm/vervet/files/prepare.sh", "helm/vervet/files/prepare.sh"),
    ("packaging/helm/vervet/templates/NOTES.txt", "helm/vervet/templates/NOTES.txt"),
    ("packaging/helm/vervet/templates/_helpers.tpl", "helm/vervet/templates/_helpers.tpl"),
    ("packaging/helm/vervet/templates/config.yaml", "helm/vervet/templates/config.yaml"),
    ("packaging/helm/vervet/templates/init.yaml", "helm/vervet/templates/init.yaml"),
    ("packaging/helm/vervet/templates/services.yaml", "helm/vervet/templates/services.yaml"),
    ("packaging/helm/vervet/templates/statefulset.yaml", "helm/vervet/templates/statefulset.yaml"),
    ("packaging/helm/vervet/values.yaml", "helm/vervet/values.yaml"),
    ("packaging/monitoring/alerts.yaml", "monitoring/alerts.yaml"),
    ("packaging/monitoring/dashboard.json", "monitoring/dashboard.json"),
    ("packaging/vervet.service", "systemd/vervet.service"),
    ("packaging/vervet.toml", "systemd/vervet.toml"),
];
/// The empty folder of which the image makes its volume.
const VOLUME: &str = "data";
const LICENCES: &str = "THIRD-PARTY-LICENCES.txt";
/// The toolchain's notices for the standard library.
const RUST_NOTICES: &str = "RUST-LIBRARY-COPYRIGHT.html";

/// The platform of the binary.
struct Target {
    triple: String,
    /// Flags of rustc besides those of every build.
    flags: &'static [&'static str],
    /// Why this target was chosen, and what is particular about it.
    note: String,
}

/// Builds the distribution for this machine, or for a target whose programs run on it.
///
/// # Errors
/// A step that failed; a binary that is too large, or lacks the web console.
pub(crate) fn dist(triple: Option<&str>) -> Result<(), String> {
    let start = Instant::now();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize();
    let root = root.map_err(|error| format!("could not find the repository: {error}"))?;
    let target = match triple {
        Some(triple) => given(triple),
        None => choose(&output(Command::new("rustc").arg("-vV"))?),
    };
    println!("== dist: {}: {}", target.triple, target.note);
    let changes = output(Command::new("git").current_dir(&root).args(["status", "--porcelain"]));
    if changes.is_ok_and(|changes| !changes.is_empty()) {
        println!("== dist: the sources differ from the commit that the binary will name");
    }
    let metadata = metadata(&root, &target.triple)?;
    let (version, output_folder) = (cli_version(&metadata)?, target_folder(&metadata)?);

    let program = build(&root, &output_folder, &target)?;
    let binary = read(&program)?;
    check_size(binary.len())?;
    check_version(&output(Command::new(&program).arg("--version"))?, &target.triple)?;

    let name = format!("vervet-{version}-{}", target.triple);
    let dist = output_folder.join("dist");
    let folder = dist.join(&name);
    if folder.exists() {
        fs::remove_dir_all(&folder).map_err(|error| problem(&folder, &error))?;
    }
    let file_name = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
    write(&folder.join(&file_name), &binary)?;
    executable(&folder.join(&file_name))?;
    for (from, to) in FILES {
        write(&folder.join(to), &read(&root.join(from))?)?;
    }
    fs::create_dir_all(folder.join(VOLUME)).map_err(|error| problem(&folder, &error))?;
    for (shell, file) in COMPLETIONS {
        let script = output(Command::new(&program).args(["completions", shell]))?;
        write(&folder.join("completions").join(file), script.as_bytes())?;
    }
    output(Command::new(&program).arg("man-pages").arg(folder.join("man/man1")))?;
    let list = licence_list(&root, &metadata, &format!("Vervet {version} for {}", target.triple), &target)?;
    write(&folder.join(LICENCES), list.as_bytes())?;
    let sysroot = output(Command::new("rustc").args(["--print", "sysroot"]))?;
    let notices = Path::new(sysroot.trim()).join("share/doc/rust/COPYRIGHT-library.html");
    write(&folder.join(RUST_NOTICES), &read(&notices)?)?;

    let archive = dist.join(format!("{name}.tar.gz"));
    let mut files = Vec::new();
    bundle::collect(&folder, "", &mut files)?;
    let compressed = archive_of(&name, files, &file_name, commit_seconds(&root))?;
    write(&archive, &compressed)?;
    write(&dist.join("SHA256SUMS"), sums(&dist, &format!("vervet-{version}-"))?.as_bytes())?;

    println!("== dist: {}", archive.display());
    println!("{:10.2} MB  binary, of at most {}", mb(binary.len()), mb(BINARY_BYTES_MAX));
    println!("{:10.2} MB  archive", mb(compressed.len()));
    println!("{:10.0} s   in all", start.elapsed().as_secs_f64());
    Ok(())
}

/// The best target of this machine; `version`: `rustc -vV`.
fn choose(version: &str) -> Target {
    let host = version.lines().find_map(|line| line.strip_prefix("host: ")).unwrap_or_default();
    let Some((machine, "linux-gnu" | "linux-musl")) = host.split_once("-unknown-") else {
        return given(host);
    };
    let musl = format!("{machine}-unknown-linux-musl");
    match missing_for(&musl) {
        None => given(&musl),
        Some(reason) => {
            let glibc = given(&format!("{machine}-unknown-linux-gnu"));
            Target { note: format!("{}; not musl: {reason}", glibc.note), ..glibc }
        }
    }
}

fn given(triple: &str) -> Target {
    let (flags, note): (&[&str], _) = if triple.ends_with("-linux-musl") {
        (&[], "static, with musl")
    } else if triple.ends_with("-linux-gnu") {
        (
            &["-C", "target-feature=+crt-static"],
            "static, with glibc (LGPL: for your own machines, not for distribution)",
        )
    } else if triple.ends_with("-windows-msvc") {
        (&["-C", "target-feature=+crt-static"], "static, with the C runtime")
    } else {
        (&[], "with the C library of the system")
    };
    Target { triple: triple.to_owned(), flags, note: note.to_owned() }
}

/// What a build with musl lacks on this machine. Adds the target to the toolchain if necessary.
fn missing_for(musl: &str) -> Option<String> {
    let has_library = || {
        let folder = output(Command::new("rustc").args(["--print", "target-libdir", "--target", musl]));
        folder.is_ok_and(|folder| Path::new(folder.trim()).is_dir())
    };
    if !has_library() {
        let added = Command::new("rustup").args(["target", "add", musl]).status();
        if !(added.is_ok_and(|status| status.success()) && has_library()) {
            return Some(format!("rustup target add {musl} failed"));
        }
    }
    let compiler = format!("CC_{}", musl.replace('-', "_"));
    if std::env::var_os(compiler).is_none() && Command::new("musl-gcc").arg("--version").output().is_err() {
        return Some("there is no musl-gcc (Debian: musl-tools)".to_owned());
    }
    None
}

/// Builds the program and returns its path.
fn build(root: &Path, output_folder: &Path, target: &Target) -> Result<PathBuf, String> {
    // Folders of this machine would be in panic messages.
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(std::env::home_dir()?.join(".cargo"))).unwrap_or_default();
    let mut flags: Vec<String> = target.flags.iter().map(|&flag| flag.to_owned()).collect();
    for (folder, name) in [(home.as_path(), "/cargo"), (root, "/vervet")] {
        flags.push(format!("--remap-path-prefix={}={name}", folder.display()));
    }
    let arguments = ["build", "--locked", "--profile", "dist", "-p", "vervet-cli", "--target"];
    let status = cargo()
        .current_dir(root)
        .args(arguments)
        .arg(&target.triple)
        .env("CARGO_ENCODED_RUSTFLAGS", flags.join("\x1f"))
        .status()
        .map_err(|error| format!("could not start cargo: {error}"))?;
    if !status.success() {
        return Err(format!("failed: cargo {} {}", arguments.join(" "), target.triple));
    }
    let name = if target.triple.contains("windows") { "vervet.exe" } else { "vervet" };
    Ok(output_folder.join(&target.triple).join("dist").join(name))
}

fn check_size(bytes: usize) -> Result<(), String> {
    if bytes <= BINARY_BYTES_MAX {
        return Ok(());
    }
    Err(format!("the binary has {bytes} bytes, more than {BINARY_BYTES_MAX}"))
}

/// Checks the output of `vervet --version`.
fn check_version(text: &str, triple: &str) -> Result<(), String> {
    for line in ["web console: yes".to_owned(), format!("target: {triple}")] {
        if !text.lines().any(|other| other == line) {
            return Err(format!("vervet --version should print {line:?}, and printed:\n{text}"));
        }
    }
    Ok(())
}

fn metadata(root: &Path, triple: &str) -> Result<Value, String> {
    let mut command = cargo();
    command.current_dir(root).args([
        "metadata",
        "--format-version",
        "1",
        "--locked",
        "--filter-platform",
        triple,
    ]);
    serde_json::from_str(&output(&mut command)?).map_err(|error| format!("cargo metadata: {error}"))
}

fn cli_version(metadata: &Value) -> Result<String, String> {
    let mut packages = metadata["packages"].as_array().into_iter().flatten();
    let package = packages.find(|package| package["name"] == "vervet-cli");
    let version = package.and_then(|package| package["version"].as_str());
    Ok(version.ok_or("cargo metadata has no vervet-cli")?.to_owned())
}

fn target_folder(metadata: &Value) -> Result<PathBuf, String> {
    let folder = metadata["target_directory"].as_str().ok_or("cargo metadata has no target_directory")?;
    Ok(PathBuf::from(folder))
}

/// The licences of everything in the binary but Vervet itself.
fn licence_list(root: &Path, metadata: &Value, title: &str, target: &Target) -> Result<String, String> {
    let mut command = cargo();
    command.current_dir(root).args([
        "tree",
        "--locked",
        "-p",
        "vervet-cli",
        "-e",
        "normal",
        "--prefix",
        "none",
    ]);
    let mut components = system(target)?;
    components.extend(licences::packages(metadata, &output(command.args(["--target", &target.triple]))?)?);
    let demo = read(&root.join("crates/cli/demo/ATTRIBUTION.md"))?;
    components.push(part(
        "air routes",
        "data of vervet demo",
        "Apache-2.0",
        String::from_utf8_lossy(&demo).into(),
    ));
    let console = console_licences(&root.join("crates/server/console.tar.gz"))?;
    components.push(part("packages of the web console", "see text", "see text", console));
    let title = format!(
        "{title}: licences of the software in the binary.\n\
         Vervet itself is under the Apache License 2.0 (LICENSE). Each line has name, version, licence, origin and\n\
         the numbers of its texts below."
    );
    Ok(licences::render(&title, &components))
}

/// The libraries that come with the toolchain.
fn system(target: &Target) -> Result<Vec<Component>, String> {
    let version = output(Command::new("rustc").arg("-V"))?;
    let version = version.split(' ').nth(1).unwrap_or_default().to_owned();
    let library = Component {
        name: "Rust standard library".to_owned(),
        version,
        licence: "MIT OR Apache-2.0".to_owned(),
        home: "https://github.com/rust-lang/rust".to_owned(),
        texts: vec![("notice".to_owned(), format!("The notices are in {RUST_NOTICES}."))],
    };
    let mut components = vec![library];
    if target.triple.ends_with("-musl") {
        components.push(part("musl", "of the Rust toolchain", "MIT", include_str!("musl.txt").to_owned()));
    } else if !target.flags.is_empty() && target.triple.ends_with("-gnu") {
        let text = "https://www.gnu.org/licenses/old-licenses/lgpl-2.1.html";
        components.push(part("GNU C library", "of the system", "LGPL-2.1-or-later", text.to_owned()));
    }
    Ok(components)
}

fn part(name: &str, version: &str, licence: &str, text: String) -> Component {
    Component {
        name: name.to_owned(),
        version: version.to_owned(),
        licence: licence.to_owned(),
        home: String::new(),
        texts: vec![("notice".to_owned(), text)],
    }
}

/// The licences of the console's packages, which its build writes into the archive.
fn console_licences(archive: &Path) -> Result<String, String> {
    let file = fs::File::open(archive).map_err(|error| problem(archive, &error))?;
    let mut archive_files = tar::Archive::new(GzDecoder::new(file));
    for entry in archive_files.entries().map_err(|error| problem(archive, &error))? {
        let mut entry = entry.map_err(|error| problem(archive, &error))?;
        if entry.path().is_ok_and(|path| path.ends_with("licenses.txt")) {
            let mut text = String::new();
            entry.read_to_string(&mut text).map_err(|error| problem(archive, &error))?;
            return Ok(text);
        }
    }
    Err(format!("{}: there is no licenses.txt", archive.display()))
}

/// Seconds since 1970 of the commit; of `SOURCE_DATE_EPOCH` if it is set; 0 without both.
fn commit_seconds(root: &Path) -> u64 {
    let seconds = |text: &str| text.trim().parse().ok();
    let git = || output(Command::new("git").current_dir(root).args(["log", "-1", "--format=%ct"])).ok();
    let set = std::env::var("SOURCE_DATE_EPOCH").ok();
    set.or_else(git).and_then(|text| seconds(&text)).unwrap_or_default()
}

/// A compressed archive of `files` (names in the folder, and paths) below `name`. `program` is executable.
fn archive_of(
    name: &str,
    mut files: Vec<(String, PathBuf)>,
    program: &str,
    seconds: u64,
) -> Result<Vec<u8>, String> {
    files.sort();
    let problem = |error| format!("could not write the archive: {error}");
    let mut builder = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::best()));
    let header = |kind, mode, bytes: usize| {
        let mut header = tar::Header::new_ustar();
        header.set_entry_type(kind);
        header.set_mode(mode);
        header.set_size(bytes as u64);
        header.set_mtime(seconds);
        header.set_uid(0);
        header.set_gid(0);
        header
    };
    let mut folder = header(tar::EntryType::Directory, 0o755, 0);
    builder.append_data(&mut folder, format!("{name}/{VOLUME}/"), &[][..]).map_err(problem)?;
    for (file, path) in files {
        let bytes = read(&path)?;
        let mode = if file == program { 0o755 } else { 0o644 };
        let mut header = header(tar::EntryType::Regular, mode, bytes.len());
        builder.append_data(&mut header, format!("{name}/{file}"), &*bytes).map_err(problem)?;
    }
    builder.into_inner().and_then(GzEncoder::finish).map_err(problem)
}

/// The checksums of the archives whose names start with `start`, as `sha256sum` writes them.
fn sums(folder: &Path, start: &str) -> Result<String, String> {
    let mut lines = Vec::new();
    for entry in fs::read_dir(folder).map_err(|error| problem(folder, &error))? {
        let path = entry.map_err(|error| problem(folder, &error))?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name.starts_with(start) && name.ends_with(".tar.gz") {
            let digest: String =
                Sha256::digest(read(&path)?).iter().map(|byte| format!("{byte:02x}")).collect();
            lines.push((name, digest));
        }
    }
    lines.sort();
    Ok(lines.iter().map(|(name, digest)| format!("{digest}  {name}\n")).collect())
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    fs::read(path).map_err(|error| problem(path, &error))
}

/// Writes a file, and creates its folder.
fn write(path: &Path, bytes: &[u8]) -> Result<(), String> {
    let folder = path.parent().unwrap_or(path);
    fs::create_dir_all(folder)
        .and_then(|()| fs::File::create(path)?.write_all(bytes))
        .map_err(|error| problem(path, &error))
}

fn executable(path: &Path) -> Result<(), String> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = fs::Permissions::from_mode(0o755);
        fs::set_permissions(path, mode).map_err(|error| problem(path, &error))?;
    }
    Ok(())
}

fn problem(path: &Path, error: &std::io::Error) -> String {
    format!("{}: {error}", path.display())
}

/// Millions of bytes.
fn mb(bytes: usize) -> f64 {
    bytes as f64 / 1e6
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use std::io::Cursor;

    #[test]
    fn the_binary_has_a_maximum_size() {
        assert_eq!(check_size(BINARY_BYTES_MAX), Ok(()));
        assert!(check_size(BINARY_BYTES_MAX + 1).unwrap_err().contains("25000001"));
    }

    #[test]
    fn a_binary_without_the_console_or_for_another_target_is_refused() {
        let text = "vervet 0.1.0 (abc)\nweb console: yes\nParquet: yes\nkernels for GPUs: yes\ntarget: a-b\n";
        assert_eq!(check_version(text, "a-b"), Ok(()));
        assert!(check_version(text, "a-c").unwrap_err().contains("target: a-c"));
        assert!(check_version(&text.replace("yes", "no"), "a-b").unwrap_err().contains("web console: yes"));
    }

    #[test]
    fn archives_are_sorted_and_have_fixed_times_and_owners() {
        let folder = tempfile::tempdir().unwrap();
        write(&folder.path().join("vervet"), b"program").unwrap();
        write(&folder.path().join("man/man1/vervet.1"), b"page").unwrap();
        let files = || {
            let mut files = Vec::new();
            bundle::collect(folder.path(), "", &mut files).unwrap();
            files
        };
        let archive = archive_of("vervet-1", files(), "vervet", 1_700_000_000).unwrap();
        let reversed = archive_of("vervet-1", files().into_iter().rev().collect(), "vervet", 1_700_000_000);
        assert_eq!(archive, reversed.unwrap());
        let mut unpacked = tar::Archive::new(GzDecoder::new(Cursor::new(archive)));
        let entries = unpacked.entries().unwrap().map(|entry| {
            let mut entry = entry.unwrap();
            let mut text = String::new();
            entry.read_to_string(&mut text).unwrap();
            let header = entry.header();
            assert_eq!(
                (header.mtime().unwrap(), header.uid().unwrap(), header.gid().unwrap()),
                (1_700_000_000, 0, 0)
            );
            (entry.path().unwrap().display().to_string(), header.mode().unwrap(), text)
        });
        let expected = [
            ("vervet-1/data/", 0o755, ""),
            ("vervet-1/man/man1/vervet.1", 0o644, "page"),
            ("vervet-1/vervet", 0o755, "program"),
        ];
        let expected = expected.map(|(name, mode, text)| (name.to_owned(), mode, text.to_owned()));
        assert_eq!(entries.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn checksums_are_those_of_sha256sum() {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in [
            ("vervet-1-b.tar.gz", "abc"),
            ("vervet-1-a.tar.gz", ""),
            ("vervet-2-a.tar.gz", ""),
            ("vervet-1-a.txt", ""),
        ] {
            write(&folder.path().join(name), text.as_bytes()).unwrap();
        }
        // FIPS 180-4: of no bytes, and of "abc".
        assert_eq!(
            sums(folder.path(), "vervet-1-").unwrap(),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  vervet-1-a.tar.gz\n\
             ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad  vervet-1-b.tar.gz\n"
        );
    }

    #[test]
    fn targets_say_how_they_are_linked() {
        assert!(given("x86_64-unknown-linux-musl").flags.is_empty());
        for triple in ["x86_64-unknown-linux-gnu", "x86_64-pc-windows-msvc"] {
            assert_eq!(given(triple).flags, ["-C", "target-feature=+crt-static"], "{triple}");
        }
        let mac = choose("rustc 1.90.0\nhost: aarch64-apple-darwin\n");
        assert_eq!((mac.triple.as_str(), mac.flags.len()), ("aarch64-apple-darwin", 0));
    }

    /// Files that the distribution takes from the repository.
    #[test]
    fn the_repository_has_the_files_of_the_distribution() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let text = console_licences(&root.join("crates/server/console.tar.gz")).unwrap();
        assert!(text.contains("codemirror") && text.contains("Permission is hereby granted"), "{text}");
        for (file, _) in FILES {
            assert!(root.join(file).is_file(), "{file}");
        }
        // And has none for operators that it leaves out. The folder of a first graph may have files of a
        // user.
        let mut packaging = Vec::new();
        bundle::collect(&root.join("packaging"), "packaging/", &mut packaging).unwrap();
        for (file, _) in packaging {
            let is_left_out = file.ends_with("_test.yaml")
                || file.starts_with("packaging/cluster/graph/") && !file.ends_with(".gitignore");
            assert!(is_left_out || FILES.iter().any(|(from, _)| *from == file), "{file}");
        }
    }
}
