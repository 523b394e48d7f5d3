//! The GPU of this machine: for `query` and `serve`, and what `info --gpu` says about it.
//!
//! A GPU is opened when the first query needs it, by `serve` when it starts. Without one, or if it cannot be
//! used, every query runs on the CPU, and the log has one line that says why.

use crate::output::{Outcome, Output};
use crate::table::Table;
use clap::ValueEnum;
use serde_json::json;
use std::io::Write;
use vervet::Placement;

/// The environment variable with a file of kernels, in place of those in the program.
const KERNELS_VARIABLE: &str = "VERVET_KERNELS";

/// Where parts of heavy queries run.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum DeviceChoice {
    /// On the GPU if there is one, and the estimated time there is less
    Auto,
    /// On the CPU
    Cpu,
    /// On the GPU wherever possible
    Gpu,
}

/// The placement of queries.
pub(crate) fn placement(choice: DeviceChoice) -> Placement {
    match choice {
        DeviceChoice::Auto => Placement::Auto,
        DeviceChoice::Cpu => Placement::Cpu,
        DeviceChoice::Gpu => Placement::Gpu,
    }
}

/// What `info --gpu` says.
struct Report {
    /// CUDA version of the driver.
    driver: Option<String>,
    /// Name, compute capability and bytes of memory of each GPU.
    gpus: Vec<(String, String, u64)>,
    /// The kernels of this program.
    kernels: Vec<String>,
    /// The GPU that queries use, or why they use none.
    used: Result<String, String>,
}

/// Describes the driver, the GPUs and the kernels, and opens the GPU that queries would use.
pub(crate) fn report(json: bool) -> Outcome {
    let report = Report::new();
    let mut out = Output::standard();
    if json {
        report.write_json(&mut out)?;
    } else {
        report.write_text(&mut out)?;
    }
    out.finish()
}

impl Report {
    fn write_text(&self, out: &mut Output) -> std::io::Result<()> {
        match &self.used {
            Ok(name) => writeln!(out, "Heavy queries may run on {name}.")?,
            Err(reason) => writeln!(out, "All queries run on the CPU: {reason}.")?,
        }
        writeln!(out)?;
        let mut table = Table::new(&["part", "found"]);
        let none = || "none".to_owned();
        table.row([
            "driver".to_owned(),
            self.driver.as_ref().map_or_else(none, |version| format!("CUDA {version}")),
        ]);
        for (number, (name, capability, memory_bytes)) in self.gpus.iter().enumerate() {
            let gigabytes = *memory_bytes as f64 / 1e9;
            let found = format!("{name}, compute capability {capability}, {gigabytes:.1} GB");
            table.row([format!("GPU {number}"), found]);
        }
        let kernels = if self.kernels.is_empty() { none() } else { self.kernels.join(", ") };
        table.row(["kernels in this program".to_owned(), kernels]);
        table.write("", out)
    }

    fn write_json(&self, out: &mut Output) -> std::io::Result<()> {
        let gpus = self.gpus.iter().map(|(name, capability, memory_bytes)| {
            json!({ "name": name, "compute_capability": capability, "memory_bytes": memory_bytes })
        });
        let report = json!({
            "used": self.used.as_ref().ok(),
            "reason": self.used.as_ref().err(),
            "driver": self.driver,
            "gpus": gpus.collect::<Vec<_>>(),
            "kernels": self.kernels,
        });
        writeln!(out, "{report}")
    }
}

#[cfg(all(feature = "gpu", unix))]
mod available {
    use super::{DeviceChoice, KERNELS_VARIABLE, Report};
    use std::sync::Arc;
    use vervet::Database;
    use vervet_device::{
        Cuda, Device, DeviceError, DeviceErrorKind, GpuFacts, KernelImage, embedded_kernels,
    };
    use vervet_driver_gpu::{GpuDriver, GpuOptions};

    pub(crate) fn has_kernels() -> bool {
        !embedded_kernels().is_empty()
    }

    fn open() -> Result<Box<dyn Device>, DeviceError> {
        let gpu = match std::env::var_os(KERNELS_VARIABLE).filter(|file| !file.is_empty()) {
            Some(file) => {
                let kernels = std::fs::read(&file).map_err(|error| {
                    let message = format!("could not read {}: {error}", file.display());
                    DeviceError::new(DeviceErrorKind::Failed, message)
                })?;
                Cuda::open(0, &kernels)?
            }
            None => Cuda::open_with(0, embedded_kernels())?,
        };
        Ok(Box::new(gpu))
    }

    fn driver(database: &Database, choice: DeviceChoice) -> Option<Arc<GpuDriver>> {
        let may_open = has_kernels() || std::env::var_os(KERNELS_VARIABLE).is_some();
        let force = choice == DeviceChoice::Gpu;
        let is_wanted = force || choice == DeviceChoice::Auto && may_open;
        let options = GpuOptions { force, ..GpuOptions::default() };
        is_wanted.then(|| Arc::new(GpuDriver::with_closed(database.shared_driver(), Box::new(open), options)))
    }

    /// The same database, with a GPU that is opened when a query needs it.
    pub(crate) fn attach(database: Database, choice: DeviceChoice) -> Database {
        match driver(&database, choice) {
            Some(driver) => database.with_driver(driver),
            None => database,
        }
    }

    /// The same database, with a GPU if it can be opened now.
    pub(crate) fn attach_now(database: Database, choice: DeviceChoice) -> Database {
        match driver(&database, choice).filter(|driver| driver.open().is_some()) {
            Some(driver) => database.with_driver(driver),
            None => database,
        }
    }

    impl Report {
        pub(super) fn new() -> Self {
            let mut report = Self {
                driver: None,
                gpus: Vec::new(),
                kernels: embedded_kernels().iter().map(KernelImage::name).collect(),
                used: open().map(|gpu| gpu.name()).map_err(|error| error.to_string()),
            };
            match GpuFacts::new() {
                Ok(facts) => {
                    let version = facts.driver_version;
                    report.driver = Some(format!("{}.{}", version / 1000, version % 1000 / 10));
                    report.gpus = facts
                        .gpus
                        .into_iter()
                        .map(|gpu| {
                            (gpu.name, format!("{}.{}", gpu.capability.0, gpu.capability.1), gpu.memory_bytes)
                        })
                        .collect();
                }
                // It says more than that there are no kernels.
                Err(error) => report.used = Err(error.to_string()),
            }
            report
        }
    }
}

#[cfg(not(all(feature = "gpu", unix)))]
mod available {
    use super::{DeviceChoice, KERNELS_VARIABLE, Report};
    use vervet::Database;

    const REASON: &str = "this program was built without support for GPUs";

    pub(crate) fn has_kernels() -> bool {
        false
    }

    pub(crate) fn attach(database: Database, choice: DeviceChoice) -> Database {
        if choice == DeviceChoice::Gpu || std::env::var_os(KERNELS_VARIABLE).is_some() {
            tracing::warn!(reason = REASON, "queries run on the CPU alone");
        }
        database
    }

    pub(crate) use attach as attach_now;

    impl Report {
        pub(super) fn new() -> Self {
            Self { driver: None, gpus: Vec::new(), kernels: Vec::new(), used: Err(REASON.to_owned()) }
        }
    }
}

pub(crate) use available::{attach, attach_now, has_kernels};
