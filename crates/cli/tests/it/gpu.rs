//! `--device` and `info --gpu`, with a driver of a GPU in software (`crates/device/tests/fake_cuda.cpp`).
#![cfg(all(target_os = "linux", feature = "gpu"))]
#![allow(clippy::unwrap_used, reason = "a failure fails the test")]

use crate::common::{Done, Place};
use std::process::Command;

const QUERY: &str = "SELECT ?x (COUNT(*) AS ?n) { ?x <urn:p> ?y . ?y <urn:p> ?z FILTER(?z != <urn:v3>) } \
                     GROUP BY ?x ORDER BY ?x";

struct Machine {
    place: Place,
}

impl Machine {
    /// A machine with a database and, in the folder `driver`, the library of a driver.
    fn new() -> Self {
        let place = Place::new();
        let lines: Vec<String> = (0..200_u32)
            .flat_map(|i| (1..4).map(move |k| format!("<urn:v{i}> <urn:p> <urn:v{}> .", (i * k + k) % 200)))
            .collect();
        place.file("data.nt", &lines.join("\n"));
        place.ok(&["load", "db", "data.nt"]);
        std::fs::create_dir(place.path("driver")).unwrap();
        let compiler = std::env::var_os("CXX").unwrap_or_else(|| "c++".into());
        let mut command = Command::new(compiler);
        command.args(["-std=c++17", "-O1", "-shared", "-fPIC", "-o"]).arg(place.path("driver/libcuda.so.1"));
        command.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/../device/tests/fake_cuda.cpp"));
        assert!(command.status().unwrap().success(), "the driver could not be built");
        place.file("kernels", "kernels");
        Self { place }
    }

    /// Runs a command with the driver; it ends after some launches, if `launches` is set.
    fn run(&self, arguments: &[&str], launches: Option<u32>) -> Done {
        let mut command = self.place.command(arguments);
        command.env("LD_LIBRARY_PATH", self.place.path("driver")).env("VERVET_KERNELS", "kernels");
        command.envs(launches.map(|count| ("VERVET_FAKE_CUDA_LAUNCHES", count.to_string())));
        Done::from(command.output().unwrap())
    }
}

#[test]
fn a_gpu_is_named_and_used_and_its_loss_changes_no_answer() {
    let machine = Machine::new();
    let info = machine.run(&["info", "--gpu"], None);
    assert!(info.out.contains("Heavy queries may run on driver in software."), "{info:?}");
    assert!(
        info.out.contains("CUDA 12.9") && info.out.contains("compute capability 9.0, 0.1 GB"),
        "{info:?}"
    );
    let json = machine.run(&["info", "--gpu", "--json"], None);
    let json: serde_json::Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!((&json["used"], &json["driver"]), (&"driver in software".into(), &"12.9".into()), "{json}");
    assert_eq!(json["gpus"][0]["memory_bytes"], 64 << 20);

    let expected = machine.place.ok(&["query", "db", QUERY, "--device", "cpu"]);
    assert_eq!(expected.lines().count(), 201);
    for launches in [None, Some(0), Some(3)] {
        let done = machine.run(&["query", "db", QUERY, "--device", "gpu"], launches);
        assert_eq!((done.code, &done.out), (0, &expected), "{launches:?}: {}", done.err);
        let is_lost = done.err.contains("the device is lost");
        assert_eq!(
            (is_lost, done.err.lines().count()),
            (launches.is_some(), usize::from(is_lost)),
            "{done:?}"
        );
    }
    let profile = machine.run(&["query", "db", QUERY, "--device", "gpu", "--profile"], None);
    assert!(profile.out.contains("on the driver in software: 1 strips in"), "{profile:?}");
    let light = machine.run(&["query", "db", QUERY, "--profile"], None);
    assert!(!light.out.contains("in software"), "a light query is not worth the device: {light:?}");
}

#[test]
fn without_a_gpu_queries_run_on_the_cpu_and_one_line_says_why() {
    let machine = Machine::new();
    let info = machine.place.ok(&["info", "--gpu"]);
    if !info.contains("All queries run on the CPU: no CUDA driver: ") {
        println!("this machine has the driver of a GPU: {info}");
        return;
    }
    let expected = machine.place.ok(&["query", "db", QUERY, "--device", "cpu"]);
    for (device, lines) in [("gpu", 1), ("auto", 0)] {
        let done = machine.place.run(&["query", "db", QUERY, "--device", device]);
        assert_eq!((done.code, &done.out), (0, &expected));
        assert_eq!(done.err.lines().count(), lines, "{}", done.err);
    }
    // A driver without a function that is needed, and kernels that it does not know.
    let mut command = machine.place.command(&["query", "db", QUERY, "--device", "gpu"]);
    machine.place.file("other", "other kernels");
    command.env("LD_LIBRARY_PATH", machine.place.path("driver")).env("VERVET_KERNELS", "other");
    let done = Done::from(command.output().unwrap());
    assert_eq!((done.code, &done.out), (0, &expected));
    assert!(done.err.contains("cuModuleLoadData failed") && done.err.lines().count() == 1, "{}", done.err);
    machine.place.fails(&["info"], 2, &["DB"]);
}
