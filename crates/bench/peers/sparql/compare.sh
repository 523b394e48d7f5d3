#!/usr/bin/env bash
# `compare.sh ENGINES BENCHMARKS [OPTION…]`, such as `compare.sh jena,virtuoso sp2bench,watdiv --timeout 5`: starts the engines with
# the data of each benchmark, one benchmark after the other, and runs `vervet-bench outside` against Oxigraph and them. Options are
# those of `vervet-bench outside`; `--scale` and `--seed` also apply to the data. Needs `cargo build --release -p vervet-bench`.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
program=${VERVET_BENCH:-$here/../../../../target/release/vervet-bench}
IFS=, read -ra engines <<< "$1"
IFS=, read -ra benchmarks <<< "$2"
shift 2
# An engine that has not loaded its data by then has failed.
load_seconds=600
data_options=()
for ((at = 1; at < $#; at++)); do
  case ${!at} in --scale | --seed) next=$((at + 1)) && data_options+=("${!at}" "${!next}") ;; esac
done
data=$(mktemp -d "${TMPDIR:-/tmp}/vervet-outside-XXXXXX")
started=()
stop() {
  for process in "${started[@]}"; do kill "$process" 2>/dev/null && wait "$process" 2>/dev/null || true; done
  started=()
}
trap 'stop; rm -rf "$data"' EXIT
for benchmark in "${benchmarks[@]}"; do
  "$program" generate outside --only "$benchmark" --output "$data/$benchmark" "${data_options[@]}" >&2
  for file in "$data/$benchmark"/*.nt; do
    against=oxigraph port=7300
    # A line may occur twice.
    statements=$(LC_ALL=C sort -u "$file" | wc -l)
    for engine in "${engines[@]}"; do
      port=$((port + 10)) begun=$SECONDS
      "$here/run.sh" "$engine" "$file" "$port" &
      started+=($!)
      url="http://127.0.0.1:$port/sparql"
      case $engine in virtuoso) url+="?default-graph-uri=urn:graph" ;; vervet) url="http://127.0.0.1:$port/query" ;; esac
      count=(--silent --header "Accept: text/tab-separated-values" --data-urlencode "query=SELECT (COUNT(*) AS ?n) { ?s ?p ?o }")
      until loaded=$(curl "${count[@]}" "$url" | sed -n 's/[^0-9]*\([0-9]*\).*/\1/; 2p') && [ "$loaded" = "$statements" ]; do
        kill -0 $! || exit 1
        if [ $((SECONDS - begun)) -gt "$load_seconds" ]; then
          echo "compare.sh: $engine has ${loaded:-none} of $statements statements of $file after $load_seconds s" >&2
          exit 1
        fi
        sleep 0.5
      done
      against+=",$engine=$url#$!"
    done
    name=()
    if [ "$benchmark" = gmark ]; then name=(--data "$(basename "$file" .nt | sed s/gmark-//)"); fi
    "$program" outside --only "$benchmark" "${name[@]}" --against "$against" "$@"
    stop
  done
done
