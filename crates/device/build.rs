//! Compiles the device kernels for the simulated device, if the feature `simulated` is on.

fn main() {
    println!("cargo::rerun-if-changed=kernels");
    #[cfg(feature = "simulated")]
    {
        let mut build = cc::Build::new();
        build.cpp(true).std("c++17").file("kernels/simulated.cpp").warnings(true);
        // Unoptimised kernels take four times as long, and tests run millions of their threads.
        build.opt_level(2).compile("vervet_simulated");
    }
}
