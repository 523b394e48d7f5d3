//! The CUDA back end against a driver in software, which is built with the C++ compiler of the machine.
#![cfg(all(feature = "cuda", unix))]
#![allow(clippy::unwrap_used, reason = "a failure fails the test")]

use std::path::{Path, PathBuf};
use std::process::Command;
use vervet_device::{
    Address, Combine, Cuda, Device, DeviceErrorKind, Kernel, Leg, Locate, Mark, Number, Operand, Produce,
    STATUS_WORDS, Status, Window, Windows,
};

/// Builds the driver; `exclude`: without this function.
fn driver(folder: &Path, exclude: Option<&str>) -> PathBuf {
    let library = folder.join(format!("libcuda_{}.so", exclude.unwrap_or("whole")));
    let compiler = std::env::var_os("CXX").unwrap_or_else(|| "c++".into());
    let mut command = Command::new(compiler);
    command.args(["-std=c++17", "-O1", "-shared", "-fPIC", "-o"]).arg(&library);
    command.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fake_cuda.cpp"));
    command.args(exclude.map(|name| format!("-D{name}=vervet_another_name")));
    assert!(command.status().unwrap().success(), "the driver could not be built");
    library
}

fn kind<T>(result: Result<T, vervet_device::DeviceError>) -> DeviceErrorKind {
    result.err().unwrap().kind
}

#[test]
fn kernels_run_by_the_functions_of_a_driver() {
    let folder = tempfile::tempdir().unwrap();
    let library = driver(folder.path(), None);
    let mut gpu = Cuda::open_library(&library, 0, b"kernels").unwrap();
    assert_eq!((gpu.name().as_str(), gpu.blocks_max()), ("driver in software", 6));
    let before = gpu.memory_bytes();

    // Keys 10 and 12 with neighbours 1, 2 and 5.
    let window = Window::encode(&[10, 12], &[2, 3], &[1, 2, 5]).unwrap();
    let mut upload = |words: &[u64]| {
        let at = gpu.allocate(8 * words.len() as u64).unwrap();
        gpu.upload(at, words).unwrap();
        at
    };
    let address = upload(window.words());
    let windows = Windows { last_keys: upload(&[12]), addresses: upload(&[address.0]), count: 1 };
    let column = upload(&[12, 11, 10]);
    let [starts, ends, states, values, keys] = [[0; 3]; 5].map(|words| upload(&words));
    let statuses = [Status::CLEARED; 2].map(|words| upload(&words));
    let legs = vec![Leg { key: Operand::Column(column), windows }];
    let locate = Locate {
        rows: 3,
        legs: legs.clone(),
        starts,
        ends,
        factors: Address::NONE,
        states,
        status: statuses[0],
    };
    gpu.launch(Kernel::Locate, &locate.words(), 9).unwrap();
    let mut found = [0; 3];
    gpu.download(ends, &mut found).unwrap();
    assert_eq!(found, [1, 1, 3]);
    gpu.clear(states, 3).unwrap();
    let produce = Produce {
        rows: 3,
        last: 3,
        starts,
        ends,
        legs,
        values_to: values,
        columns: vec![(column, keys)],
        capacity: 3,
        states,
        status: statuses[1],
        ..Produce::default()
    };
    gpu.launch(Kernel::Produce, &produce.words(), 1).unwrap();
    let mut status = [0; STATUS_WORDS];
    gpu.download(statuses[1], &mut status).unwrap();
    assert_eq!(Status::from_words(status).rows, 3);
    let mut columns = [[0; 3]; 2];
    gpu.download(keys, &mut columns[0]).unwrap();
    gpu.download(values, &mut columns[1]).unwrap();
    assert_eq!(columns, [[12, 10, 10], [5, 1, 2]]);

    // Errors are values.
    assert_eq!(kind(gpu.allocate(1 << 30)), DeviceErrorKind::Memory);
    assert_eq!(kind(gpu.upload(values, &[0; 4])), DeviceErrorKind::Failed);
    assert_eq!(kind(gpu.launch(Kernel::Locate, &[0; 3], 1)), DeviceErrorKind::Failed);
    gpu.free(values);
    assert_eq!(kind(gpu.clear(values, 1)), DeviceErrorKind::Failed);
    assert!(gpu.memory_bytes() < before);
}

#[test]
fn whatever_is_missing_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let whole = driver(folder.path(), None);
    let message = |result: Result<Cuda, vervet_device::DeviceError>| result.err().unwrap().message;
    let missing = message(Cuda::open_library(&folder.path().join("none.so"), 0, b"kernels"));
    assert!(missing.starts_with("no CUDA driver: "), "{missing}");
    let old = driver(folder.path(), Some("cuOccupancyMaxActiveBlocksPerMultiprocessor"));
    let old = message(Cuda::open_library(&old, 0, b"kernels"));
    assert!(old.contains("too old: it has no cuOccupancyMax"), "{old}");
    assert!(message(Cuda::open_library(&whole, 1, b"kernels")).contains("CUDA error 101"));
    assert!(message(Cuda::open_library(&whole, 0, b"other")).contains("cuModuleLoadData"));
}

#[test]
fn parameters_have_the_words_of_their_kernels() {
    assert_eq!(Locate::default().words().len(), Kernel::Locate.parameter_words());
    assert_eq!(Produce::default().words().len(), Kernel::Produce.parameter_words());
    assert_eq!(Number { rows: 0, to: Address::NONE }.words().len(), Kernel::Number.parameter_words());
    let mark = Mark { rows: 0, positions: Address::NONE, value: 0, marks: Address::NONE };
    assert_eq!(mark.words().len(), Kernel::Mark.parameter_words());
    assert_eq!(Combine::default().words().len(), Kernel::Combine.parameter_words());
}
