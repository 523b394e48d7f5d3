#!/usr/bin/env bash
# Starts a program of src/ for `vervet-bench wire`: `Driver`, TinkerPop's driver, or `Server FOLDER`, TinkerPop's Gremlin
# Server with a TinkerGraph of CSV files. The first time, Maven fetches its libraries and javac compiles it, into VERVET_PEERS or
# else the user's cache.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cache=${VERVET_PEERS:-${XDG_CACHE_HOME:-$HOME/.cache}/vervet-peers}/gremlin
sources=("$here"/src/*.java "$here/../tinkergraph/src/Network.java")
if [ ! -e "$cache/ready" ] || [ -n "$(find "$here" "${sources[@]}" -newer "$cache/ready" -type f)" ]; then
  mkdir -p "$cache/classes"
  mvn -q -B -f "$here/pom.xml" dependency:copy-dependencies -DoutputDirectory="$cache/libraries" -DincludeScope=runtime >&2
  javac -nowarn -d "$cache/classes" -cp "$cache/libraries/*" "${sources[@]}" >&2
  touch "$cache/ready"
fi
exec java -Xmx"${VERVET_PEER_HEAP:-4g}" -XX:+UseSerialGC -cp "$cache/classes:$cache/libraries/*" "$@"
