#!/usr/bin/env bash
# `run.sh SOURCE DATA [WORK]`: builds Wukong from the tree SOURCE, loads the LUBM file DATA (N-Triples, .zst) into several servers of it on this
# machine, runs Q1 to Q7 over them and over `vervet-bench cluster-sheet` in turns, and prints a table of medians. WORK keeps the builds, the
# converted data, the logs and `raw.tsv`, one line for each measurement. See README.md for the packages. Needs a release build of vervet-bench.
set -euo pipefail
if [ $# -lt 2 ]; then
  sed -n '2,4s/^# //p' "$0" >&2
  exit 2
fi
here=$(cd "$(dirname "$0")" && pwd)
program=${VERVET_BENCH:-$here/../../../../target/release/vervet-bench}
source=$1 data=$2 work=${3:-$(mktemp -d "${TMPDIR:-/tmp}/wukong-XXXXXX")}
read -ra servers <<< "${SERVERS:-2 4}"
turns=${TURNS:-3}
queries=$source/scripts/sparql_query/lubm/basic
# A cluster that is not ready, or a query without an answer, by then has failed.
load_seconds=600
mkdir -p "$work"
work=$(cd "$work" && pwd)

build() {
  rm -rf "$work/tree"
  cp -r "$source" "$work/tree"
  "$here/patch.sh" "$work/tree"
  local flags
  read -ra flags <<< "-O2 -std=c++11 -w -fopenmp -DUSE_JEMALLOC -DVERSATILE -Icore -Iutils -Irdma_lib $(mpic++ --showme:compile)"
  local libraries
  read -ra libraries <<< "$(mpic++ --showme:link) -lboost_mpi -lboost_serialization -lboost_program_options -lzmq -lrt -ltbb -lhwloc -ljemalloc"
  (
    cd "$work/tree"
    nice g++ "${flags[@]}" -DWAITS core/wukong.cpp -o "$work/wukong-waits" "${libraries[@]}"
    nice g++ "${flags[@]}" core/wukong.cpp -o "$work/wukong-polls" "${libraries[@]}"
    nice g++ -O2 -std=c++11 datagen/generate_data.cpp -o "$work/generate_data"
  )
}

convert() {
  rm -rf "$work/nt" "$work/id"
  mkdir "$work/nt"
  zstd -dc "$data" | split -l 1400000 --additional-suffix=.nt - "$work/nt/part-"
  nice "$work/generate_data" "$work/nt" "$work/id" >&2
  rm -r "$work/nt"
}

declare -A console process
# `start BUILD N`: N servers of the build `waits` or `polls`, each at its own loopback address. The console reads from a pipe.
start() {
  local name=$1-$2 base=$((20000 + 1000 * $2))
  local log=$work/$name.log
  seq -f '127.0.0.%g' "$2" > "$work/$name.hosts"
  # Statistics for the planner need RDMA if there are several servers. One server writes them, the others read them.
  cat > "$work/$name.config" <<CONFIG
global_num_proxies 1
global_num_engines 1
global_data_port_base $base
global_ctrl_port_base $((base + 500))
global_mt_threshold 1
global_enable_workstealing 0
global_stealing_pattern 0
global_enable_planner 1
global_generate_statistics $(($2 == 1))
global_enable_vattr 0
global_silent 1
global_input_folder $work/id/
global_memstore_size_gb 1
global_est_load_factor 55
global_rdma_buf_size_mb 0
global_rdma_rbf_size_mb 0
global_use_rdma 0
global_rdma_threshold 300
global_enable_caching 0
CONFIG
  rm -f "$work/$name.pipe"
  mkfifo "$work/$name.pipe"
  mpirun --allow-run-as-root --oversubscribe --bind-to none --mca btl self,vader --mca oob_tcp_if_include lo -np "$2" \
    "$work/wukong-$1" "$work/$name.config" "$work/$name.hosts" < "$work/$name.pipe" > "$log" 2>&1 &
  process[$name]=$!
  exec {console[$name]}> "$work/$name.pipe"
  await "$name" 'wukong>' 1
}

# `await NAME TEXT COUNT`: until the log has that many lines with the text.
await() {
  local begun=$SECONDS
  until [ "$(grep -ac "$2" "$work/$1.log")" -ge "$3" ]; do
    if grep -aq 'Failed to run the command' "$work/$1.log" || ! kill -0 "${process[$1]}" 2>/dev/null ||
      [ $((SECONDS - begun)) -gt "$load_seconds" ]; then
      echo "run.sh: the servers of $1 have failed, see $work/$1.log" >&2
      exit 1
    fi
    sleep 0.1
  done
}

say() { echo "$2" >&"${console[$1]}"; }

stop() {
  local name=$1
  say "$name" quit || true
  for ((tenth = 0; tenth < 50; tenth++)); do kill -0 "${process[$name]}" 2>/dev/null || break; sleep 0.1; done
  kill "${process[$name]}" 2>/dev/null || true
  wait "${process[$name]}" 2>/dev/null || true
  exec {console[$name]}>&-
  unset "process[$name]" "console[$name]"
}
trap 'for name in "${!process[@]}"; do stop "$name"; done' EXIT
trap '' PIPE

# Processor time of all threads of all servers, in ns.
processor_ns() {
  local child
  for child in $(pgrep -P "${process[$1]}"); do cat /proc/"$child"/task/*/schedstat; done | awk '{ sum += $1 } END { printf "%.0f\n", sum }'
}

# `measure NAME TURN N QUERY REPEATS [OPTION]`: one line of raw.tsv: system, turn, servers, query, rows, p50 ms, mean ms, CPU ms of a query.
measure() {
  local log=$work/$1.log
  local before answered
  answered=$(grep -ac '(average) latency' "$log" || true)
  before=$(processor_ns "$1")
  say "$1" "sparql -f $queries/lubm_$4 -n $5${6:+ $6}"
  await "$1" '(average) latency' $((answered + 1))
  local cpu=$(($(processor_ns "$1") - before))
  tr -d '\033' < "$log" | awk -v OFS='\t' -v name="${1%-*}" -v turn="$2" -v servers="$3" -v query="$4" -v cpu="$cpu" -v repeats="$5" '
    /\(last\) result size:/ { rows = $NF } /median latency:/ { p50 = $NF } /\(average\) latency:/ { mean = $(NF - 1) }
    { gsub(/\[0m/, "") }
    END { print name, turn, servers, query, rows + 0, p50 / 1e3, mean / 1e3, cpu / repeats / 1e6 }' >> "$work/raw.tsv"
}

# `measure_all NAME TURN N LIGHT HEAVY`: light queries are repeated LIGHT times, heavy ones HEAVY times.
measure_all() {
  local query
  # For a constant that another server owns, the planner reads its type by RDMA. The light queries therefore use the plans that Wukong brings.
  say "$1" 'config -s global_enable_planner=0'
  for query in q4 q5 q6; do measure "$1" "$2" "$3" "$query" "$4" "-p $queries/osdi16_plan/lubm_$query.fmt"; done
  say "$1" 'config -s global_enable_planner=1'
  for query in q1 q2 q3 q7; do measure "$1" "$2" "$3" "$query" "$5"; done
}

[ -x "$work/wukong-polls" ] || build
[ -f "$work/id/str_index" ] || convert
: > "$work/raw.tsv"
start waits 1
say waits-1 "store-stat -f $work/id/statfile"
[ -f "$work/id/statfile" ] || await waits-1 'store statistics to file' 1
for n in "${servers[@]}"; do start waits "$n"; done
for n in 1 "${servers[@]}"; do
  before=$(processor_ns "waits-$n")
  sleep 5
  idle=$(($(processor_ns "waits-$n") - before))
  awk -v n="$n" -v ns=$idle 'BEGIN { printf "%d servers of Wukong without work: %.1f ms of processor time a second\n", n, ns / 5e6 }'
done
joined=$(IFS=, && echo "1,${servers[*]}")
for ((turn = 1; turn <= turns; turn++)); do
  for n in 1 "${servers[@]}"; do measure_all "waits-$n" "$turn" "$n" 1000 40; done
  "$program" cluster-sheet --data "$data" --servers "$joined" --only q1,q2,q3,q4,q5,q6,q7 --seconds 1 > "$work/sheet-$turn.md"
  awk -F ' *[|] *' -v OFS='\t' -v turn="$turn" '$2 ~ /^q[1-7]$/ && $4 ~ /^[0-9]+$/ {
    gsub(",", "", $3); if ($5 != "equal") exit 1; print "vervet", turn, $4, $2, $3, $6, "", $7 }' "$work/sheet-$turn.md" >> "$work/raw.tsv"
done
for n in 1 "${servers[@]}"; do stop "waits-$n"; done
# Servers that poll leave no processor to others, so each cluster of them runs alone.
for n in "${servers[@]}"; do
  start polls "$n"
  for ((turn = 1; turn <= turns; turn++)); do measure_all "polls-$n" "$turn" "$n" 200 5; done
  stop "polls-$n"
done

sort -t $'\t' -k4,4 -k3,3n "$work/raw.tsv" | awk -F '\t' '
  function median(list, count, values, at, other, swap) {
    count = split(list, values, " ")
    if (!count) return ""
    for (at = 1; at <= count; at++) for (other = at + 1; other <= count; other++)
      if (values[other] + 0 < values[at] + 0) { swap = values[at]; values[at] = values[other]; values[other] = swap }
    return sprintf("%.3g", count % 2 ? values[(count + 1) / 2] : (values[count / 2] + values[count / 2 + 1]) / 2)
  }
  { key = $4 SUBSEP $3; if (!(key in seen)) { seen[key] = 1; keys[++n] = key }
    rows[$1, key] = $5; p50[$1, key] = p50[$1, key] " " $6; cpu[$1, key] = cpu[$1, key] " " $8
    one_p50[$1, key, $2] = $6; one_cpu[$1, key, $2] = $8; if ($2 > turns) turns = $2 }
  END {
    print "| query | rows | servers | Wukong p50 ms | CPU ms | polling p50 ms | Vervet p50 ms | CPU ms | Wukong / Vervet p50 | CPU |"
    print "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
    for (at = 1; at <= n; at++) {
      key = keys[at]; split(key, part, SUBSEP); ratio_p50 = ratio_cpu = ""
      for (turn = 1; turn <= turns; turn++) {
        ratio_p50 = ratio_p50 " " one_p50["waits", key, turn] / one_p50["vervet", key, turn]
        ratio_cpu = ratio_cpu " " one_cpu["waits", key, turn] / one_cpu["vervet", key, turn]
      }
      count = rows["waits", key] == rows["vervet", key] ? rows["vervet", key] : rows["waits", key] " and " rows["vervet", key]
      printf "| %s | %s | %s | %s | %s | %s | %s | %s | %s | %s |\n", part[1], count, part[2], median(p50["waits", key]), median(cpu["waits", key]),
        median(p50["polls", key]), median(p50["vervet", key]), median(cpu["vervet", key]), median(ratio_p50), median(ratio_cpu)
    }
  }'
