#!/bin/sh
# Runs what there is of the GPU engine on a machine with a GPU (docs/gpu.md).
#
#   gpu/measure.sh prepare   on a machine with Rust and a C++ compiler: programs and kernels into target/carry
#   gpu/measure.sh all       on a machine with a GPU and target/carry: runs them, each part with its own time
#                            limit, and prints a line for each; logs go to $OUT, else to target/gpu
#
# PROFILE: the profile of the programs, `release` if unset. VERVET_TEST_DATA: the folder with the data of LUBM.
# So far only answers are checked. Not measured yet: times of kernels and queries, the cost rule.
set -eu
cd "$(dirname "$0")/.."
carry=target/carry

prepare() {
    profile=${PROFILE:-release}
    folder=$profile
    if [ "$profile" = dev ]; then folder=debug; fi
    rm -rf "$carry"
    cargo xtask gpu build "$carry"
    if ! ls "$carry"/*.cubin >/dev/null 2>&1; then
        echo "there are no kernels for GPUs" >&2
        exit 1
    fi
    # Both with one set of features, so that nothing is built twice.
    cargo build --profile "$profile" -p vervet-conformance
    features=vervet-device/simulated,vervet-device/cuda
    tests=$(cargo test -p vervet-device --features "$features" --test kernels --no-run 2>&1 |
        sed -n 's/.*Executable.*(\(.*\))$/\1/p')
    strip -o "$carry/kernels" "$tests"
    strip -o "$carry/vervet-conformance" "${CARGO_TARGET_DIR:-target}/$folder/vervet-conformance"
    du -sh "$carry"
}

# part NAME SECONDS COMMAND...: runs a command under a time limit, with a log.
part() {
    name=$1
    limit=$2
    shift 2
    start=$(date +%s)
    if timeout "$limit" "$@" >"$out/$name.log" 2>&1; then
        verdict=passed
    else
        verdict="FAILED ($?)"
        failed=1
    fi
    echo "$name: $verdict in $(($(date +%s) - start)) s: $(grep . "$out/$name.log" | tail -n 1)"
    grep '^device:' "$out/$name.log" || true
}

all() {
    out=${OUT:-target/gpu}
    failed=0
    mkdir -p "$out"
    if ! nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader; then
        echo "there is no GPU, or no driver" >&2
        exit 1
    fi
    capability=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -n 1 | tr -d .)
    kernels=$carry/kernels_sm_$capability.cubin
    if [ ! -f "$kernels" ]; then kernels=$carry/kernels_compute_80.ptx; fi
    echo "kernels: $kernels"
    part kernels 60 env VERVET_KERNELS="$kernels" "$carry/kernels"
    on_gpu="--device cuda --kernels $kernels"
    # Options are words of their own.
    # shellcheck disable=SC2086
    {
        part random 120 "$carry/vervet-conformance" random 1000 1 $on_gpu
        part random-delta 60 "$carry/vervet-conformance" random 500 1 --delta $on_gpu
        part random-faults 60 "$carry/vervet-conformance" random 300 1 $on_gpu --faults 61
        part lubm 120 "$carry/vervet-conformance" lubm 1 10 $on_gpu
        part lubm-cpu 120 "$carry/vervet-conformance" lubm 1 10
    }
    echo "not measured yet: times of kernels and queries, the cost rule"
    return "$failed"
}

case "${1:-}" in
prepare) prepare ;;
all) all ;;
*)
    sed -n '2,/^set/p' "$0" | sed '$d; s/^# \{0,1\}//' >&2
    exit 2
    ;;
esac
