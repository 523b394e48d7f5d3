//! The main program of every target: the entry is the one that the program is named after.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::sync::OnceLock;
use vervet_hostile::EntryPoint;

fuzz_target!(|data: &[u8]| {
    static ENTRY: OnceLock<EntryPoint> = OnceLock::new();
    ENTRY.get_or_init(prepare).check(data);
});

fn prepare() -> EntryPoint {
    let abort = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        // The loader makes an error of what these libraries panic at (`parquet` often within `bytes`);
        // libFuzzer's hook would end the program before. What nobody catches ends it all the same.
        let caught = |at: &std::panic::Location<'_>| {
            ["/oxjsonld-", "/parquet-", "/bytes-"].iter().any(|library| at.file().contains(library))
        };
        let caught = panic.location().is_some_and(caught);
        if !caught {
            abort(panic);
        }
    }));
    entry()
}

fn entry() -> EntryPoint {
    let program = std::env::current_exe().expect("a program knows where it is");
    let name = program.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
    EntryPoint::from_name(name).unwrap_or_else(|| panic!("no entry is called {name}"))
}
