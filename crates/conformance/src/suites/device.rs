//! A sample of the suites with the simulated device; `--device simulated` runs all of them.

use crate::cluster::Spread;
use crate::device::driver;
use crate::random;
use std::sync::Arc;
use vervet::{Database, Format, Placement, QueryOptions};

fn check(seeds: std::ops::Range<u64>, faults: u64) {
    let driver = Arc::new(driver(seeds.start, faults));
    let place = |database: Database| Ok(Spread::here(database.with_driver(Arc::clone(&driver) as _)));
    let differences: Vec<String> = seeds.filter_map(|seed| random::case_on(seed, &place).err()).collect();
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    let counts = driver.counts();
    assert!(counts.queries_on_device > 50, "too little ran on the device to prove anything: {counts:?}");
    assert_eq!(counts.strips_failed > 0, faults > 0, "{counts:?}");
}

#[test]
fn random_queries_have_the_same_answers_on_the_device() {
    check(1..120, 0);
}

#[test]
fn random_queries_have_the_same_answers_on_a_device_that_fails() {
    check(5_000..5_120, 61);
}

/// Steps in `EXISTS` have more rows than estimated, on a device of which every call fails: the plan that the
/// CPU runs in its place is not the one that the planner would correct.
#[test]
fn nested_steps_with_many_rows_run_on_the_cpu() {
    for seed in [3_000_203, 3_001_348] {
        let driver = Arc::new(driver(seed, 1));
        let place = |database: Database| Ok(Spread::here(database.with_driver(Arc::clone(&driver) as _)));
        assert_eq!(random::case_on(seed, &place).err(), None);
        let counts = driver.counts();
        assert!(counts.strips_failed > 0 && counts.strips_on_device == 0, "{counts:?}");
    }
}

/// `EXPLAIN` and profiles name the steps on the device.
#[test]
fn plans_say_what_runs_on_the_device() {
    let database = Database::in_memory();
    let data = "<urn:a> <urn:p> <urn:b> .\n<urn:b> <urn:p> <urn:c> .\n<urn:c> <urn:p> <urn:a> .\n";
    database.load_text(Format::NTriples, data).expect("it is loaded");
    let database = database.with_driver(Arc::new(driver(1, 0)));
    let text = "SELECT ?x ?z WHERE { ?x <urn:p> ?y . ?y <urn:p> ?z } ORDER BY ?x";
    let explained = |placement| {
        let options = QueryOptions { placement, ..QueryOptions::default() };
        database.explain(text, &options).expect("it is planned")
    };
    assert!(explained(Placement::Gpu).contains("steps 1 to 2 can run on the simulated device"));
    assert!(!explained(Placement::Cpu).contains("device"));
    let profile = |placement| {
        let options = QueryOptions { placement, profile: true, ..QueryOptions::default() };
        let prepared = database.prepare_with(text, &options).expect("it is planned");
        match prepared.run_with(&options).expect("it runs") {
            vervet::Answer::Solutions(solutions) => solutions.profile().unwrap_or_default().to_owned(),
            _ => String::new(),
        }
    };
    let on_device = profile(Placement::Gpu);
    assert!(
        on_device.contains("steps 1 to 2 on the simulated device: 1 strips in 4 launches"),
        "{on_device}"
    );
    assert!(!profile(Placement::Cpu).contains("device"));
}
