//! Puts the web console into the binary, from `console.tar.gz`, which `cargo xtask page` writes.
//!
//! A table of files goes to `OUT_DIR/page.rs`: path, content type, bytes, and the bytes compressed by gzip
//! where that saves a tenth.

use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::path::PathBuf;
use std::{env, fs, io};

/// Shorter files are not worth it.
const COMPRESSED_FROM_BYTES: usize = 1024;

fn main() -> io::Result<()> {
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR").map_err(io::Error::other)?);
    let out = PathBuf::from(env::var("OUT_DIR").map_err(io::Error::other)?);
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=console.tar.gz");
    let archive = fs::File::open(root.join("console.tar.gz"))?;
    let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(archive));
    let mut table = String::from("[\n");
    for (number, entry) in archive.entries()?.enumerate() {
        let mut entry = entry?;
        let path = format!("/{}", entry.path()?.display());
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes)?;
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
        let content_type = content_type(&path);
        let _ = writeln!(
            table,
            "File {{ path: {path:?}, content_type: {content_type:?}, bytes: include_bytes!({plain:?}), gzip: {gzip} }},"
        );
    }
    table.push(']');
    fs::write(out.join("page.rs"), table)
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
