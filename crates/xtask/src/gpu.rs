//! `cargo xtask gpu`: the device kernels for GPUs, compiled by `gpu/compile.py`.

use std::path::Path;
use std::process::Command;

/// Exit status of the program without a compiler.
const SKIPPED: i32 = 3;

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
