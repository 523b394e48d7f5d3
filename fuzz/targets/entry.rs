//! The main program of every target: the entry is the one that the program is named after.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::sync::OnceLock;
use vervet_hostile::Entry;

fuzz_target!(|data: &[u8]| {
    static ENTRY: OnceLock<Entry> = OnceLock::new();
    ENTRY.get_or_init(entry).check(data);
});

fn entry() -> Entry {
    let program = std::env::current_exe().expect("a program knows where it is");
    let name = program.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
    Entry::from_name(name).unwrap_or_else(|| panic!("no entry is called {name}"))
}
