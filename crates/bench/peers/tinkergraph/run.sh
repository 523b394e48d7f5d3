#!/usr/bin/env bash
# Starts TinkerGraph: with a folder of CSV files for `vervet-bench snb --against tinkergraph`, with `--answers` for
# `cargo xtask conformance random-gremlin --against tinkergraph`.
# The first time, Maven fetches its libraries and compiles it, into VERVET_PEERS or else the user's cache.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cache=${VERVET_PEERS:-${XDG_CACHE_HOME:-$HOME/.cache}/vervet-peers}/tinkergraph
if [ ! -e "$cache/ready" ] || [ -n "$(find "$here" -newer "$cache/ready" -type f)" ]; then
  mkdir -p "$cache"
  mvn -q -B -f "$here/pom.xml" -Dbuild.folder="$cache/target" compile \
      dependency:copy-dependencies -DoutputDirectory="$cache/libraries" -DincludeScope=runtime >&2
  touch "$cache/ready"
fi
if [ "$1" = --answers ]; then program=(Answers); else program=(Peer "$1"); fi
exec java -Xmx"${VERVET_PEER_HEAP:-4g}" -XX:+UseSerialGC -cp "$cache/target/classes:$cache/libraries/*" "${program[@]}"
