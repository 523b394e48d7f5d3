#!/bin/sh
# Measures the GPU engine on a machine with a GPU, within ten minutes (docs/gpu.md).
#
#   gpu/measure.sh prepare   on a machine with Rust and a C++ compiler: programs and kernels into target/carry
#   gpu/measure.sh all       on a machine with a GPU and target/carry: runs them, each part with its own time
#                            limit, and prints a line for each. Reports and logs go to $OUT, else to target/gpu;
#                            gpu.md there is made for docs/benchmarks/gpu.md
#   gpu/measure.sh rehearse  the same as all on the simulated device, with little data: shows that the script
#                            works. Its times mean nothing.
#
# PROFILE: the profile of the programs, `release` if unset. UNIVERSITIES: of LUBM, 2560 if unset. EDGES: of the
# graph whose degrees follow a power law, 10000000 if unset. VERVET_TEST_DATA: the folder with the data of LUBM.
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
    cargo build --profile "$profile" -p vervet-conformance -p vervet-bench
    features=vervet-device/simulated,vervet-device/cuda
    tests=$(cargo test -p vervet-device --features "$features" --test kernels --no-run 2>&1 |
        sed -n 's/.*Executable.*(\(.*\))$/\1/p')
    programs=${CARGO_TARGET_DIR:-target}/$folder
    strip -o "$carry/kernels" "$tests"
    strip -o "$carry/vervet-conformance" "$programs/vervet-conformance"
    strip -o "$carry/vervet-bench" "$programs/vervet-bench"
    du -sh "$carry"
}

# part NAME SECONDS COMMAND...: runs a command under a time limit, with a log. The last line of the log says
# what it found.
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
    line="$name: $verdict in $(($(date +%s) - start)) s: $(grep . "$out/$name.log" | tail -n 1)"
    echo "$line"
    echo "* $line" >>"$out/parts.md"
    grep '^device:' "$out/$name.log" || true
}

# report MACHINE: one page of what was measured.
report() {
    {
        echo "# Heavy queries on a GPU"
        echo
        echo "$(date -u +%Y-%m-%d), $(git rev-parse --short HEAD 2>/dev/null || echo "unknown commit"), $1."
        echo "Command: \`gpu/measure.sh $2\`."
        echo
        echo "Wukong+G and Wukong: the paper's table 3 (USENIX ATC 2018), LUBM-2560, an NVIDIA K40m and 10 threads of"
        echo "an Intel Xeon E5-2650 v3. The data here are those of our generator."
        echo
        # Two parts at most; either may have run out of time.
        cat "$out"/tables-*.md 2>/dev/null || echo "No table was measured."
        echo
        echo "## Checks"
        echo
        cat "$out/parts.md"
        echo
        echo "## Not measured yet"
        echo
        echo "Times of device kernels beside CUB; light queries beside heavy ones; several queries at a time; changes;"
        echo "the switches of the paper's table 5; peers; the constants of the cost rule (crates/driver-gpu/src/cost.rs)."
    } >"$out/gpu.md"
    echo "report: $out/gpu.md"
}

begin() {
    out=${OUT:-target/gpu}
    failed=0
    mkdir -p "$out"
    rm -f "$out"/tables-*.md "$out/parts.md"
}

all() {
    begin
    if ! nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader; then
        echo "there is no GPU, or no driver" >&2
        exit 1
    fi
    capability=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -n 1 | tr -d .)
    kernels=$carry/kernels_sm_$capability.cubin
    if [ ! -f "$kernels" ]; then kernels=$carry/kernels_compute_80.ptx; fi
    echo "kernels: $kernels"
    machine="$(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader | head -n 1), $(nproc) threads"
    universities=${UNIVERSITIES:-2560}
    # At most 30 + 40 + 20 + 20 + 120 + 300 = 530 seconds.
    part kernels 30 env VERVET_KERNELS="$kernels" "$carry/kernels"
    on_gpu="--device cuda --kernels $kernels"
    # Options are words of their own.
    # shellcheck disable=SC2086
    {
        part random 40 "$carry/vervet-conformance" random 500 1 $on_gpu
        part random-delta 20 "$carry/vervet-conformance" random 300 1 --delta $on_gpu
        part random-faults 20 "$carry/vervet-conformance" random 100 1 $on_gpu --faults 61
    }
    bench="$carry/vervet-bench gpu --device gpu --kernels $kernels"
    # shellcheck disable=SC2086
    {
        part power-law 120 $bench --universities 0 --edges "${EDGES:-10000000}" --milliseconds 500 \
            --output "$out/tables-power-law.md"
        part lubm 300 $bench --universities "$universities" --edges 0 --milliseconds 500 --output "$out/tables-lubm.md"
        # Loading was too slow: less data is better than none.
        if [ ! -f "$out/tables-lubm.md" ]; then
            part lubm-small 60 $bench --universities $((universities / 16 + 1)) --edges 0 --milliseconds 300 \
                --output "$out/tables-lubm.md"
        fi
    }
    report "$machine" all
    return "$failed"
}

rehearse() {
    begin
    programs=${CARGO_TARGET_DIR:-target}/debug
    cargo build --quiet -p vervet-conformance -p vervet-bench
    part random 60 "$programs/vervet-conformance" random 20 1 --device simulated
    part power-law 120 "$programs/vervet-bench" gpu --device simulated --universities 0 --edges 200 --milliseconds 0 \
        --output "$out/tables-power-law.md"
    part lubm 300 "$programs/vervet-bench" gpu --device simulated --universities 1 --edges 0 --milliseconds 0 \
        --without-sweep --output "$out/tables-lubm.md"
    report "simulated device, $(nproc) threads: times mean nothing" rehearse
    return "$failed"
}

case "${1:-}" in
prepare) prepare ;;
all) all ;;
rehearse) rehearse ;;
*)
    sed -n '2,/^set/p' "$0" | sed '$d; s/^# \{0,1\}//' >&2
    exit 2
    ;;
esac
