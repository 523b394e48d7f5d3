//! Embeds the console into the binary: `page/dist` if it has been built, else the plain page of this crate.
//!
//! Writes a table of files to `OUT_DIR/page.rs`: path, content type, bytes, and the gzip-compressed bytes
//! where compression saves space. cargo watches `page/dist` only once it has existed; after the very first
//! build of the page, `touch crates/server/build.rs` triggers a rebuild.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

/// Shorter files are not worth compressing.
const COMPRESSED_FROM_BYTES: usize = 1024;

fn main() -> io::Result<()> {
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR").map_err(io::Error::other)?);
    let out = PathBuf::from(env::var("OUT_DIR").map_err(io::Error::other)?);
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=plain");
    let built = root.join("../../page/dist");
    let mut files = Vec::new();
    if built.join("index.html").is_file() {
        println!("cargo::rerun-if-changed={}", built.display());
        collect(&built, "", &mut files)?;
    } else {
        files.push(("/index.html".to_owned(), root.join("plain/index.html")));
        files.push(("/assets/plain.js".to_owned(), root.join("plain/plain.js")));
    }
    files.sort();
    let mut table = String::from("[\n");
    for (number, (path, file)) in files.iter().enumerate() {
        let bytes = fs::read(file)?;
        let plain = out.join(format!("page{number}"));
        fs::write(&plain, &bytes)?;
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        encoder.write_all(&bytes)?;
        let compressed = encoder.finish()?;
        let gzip = if bytes.len() >= COMPRESSED_FROM_BYTES && compressed.len() < bytes.len() / 10 * 9 {
            let gzip = out.join(format!("page{number}.gz"));
            fs::write(&gzip, &compressed)?;
            format!("Some(include_bytes!({gzip:?}))")
        } else {
            "None".to_owned()
        };
        let content_type = content_type(path);
        let _ = writeln!(
            table,
            "File {{ path: {path:?}, content_type: {content_type:?}, bytes: include_bytes!({plain:?}), gzip: {gzip} }},"
        );
    }
    table.push(']');
    fs::write(out.join("page.rs"), table)
}

/// All files below a folder, with their URL paths.
fn collect(folder: &Path, prefix: &str, files: &mut Vec<(String, PathBuf)>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = format!("{prefix}/{}", entry.file_name().to_string_lossy());
        if entry.file_type()?.is_dir() {
            collect(&entry.path(), &name, files)?;
        } else {
            files.push((name, entry.path()));
        }
    }
    Ok(())
}

fn content_type(path: &str) -> &'static str {
    match path.rsplit_once('.').map_or("", |(_, extension)| extension) {
        "html" => "text/html; charset=utf-8",
        "js" | "mjs" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "json" | "map" => "application/json",
        "webmanifest" => "application/manifest+json",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "webp" => "image/webp",
        "ico" => "image/x-icon",
        "woff2" => "font/woff2",
        "woff" => "font/woff",
        "wasm" => "application/wasm",
        "txt" => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}
