#!/usr/bin/env bash
# Starts JanusGraph, embedded in a program, on the Cassandra server that cassandra/cassandra.sh runs:
#   run.sh FOLDER                             for `vervet-bench snb --against tinkergraph --peer-script`: FOLDER has CSV files
#   run.sh Commits CLIENTS SECONDS [WARM-UP]  small commits
#   run.sh Acid SECONDS [lock] [TESTS]        the ACID tests
# The first time, Maven fetches its libraries and javac compiles it, into VERVET_PEERS or else the user's cache.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cache=${VERVET_PEERS:-${XDG_CACHE_HOME:-$HOME/.cache}/vervet-peers}/janusgraph
sources=("$here"/src/*.java "$here/../tinkergraph/src/Network.java")
if [ ! -e "$cache/ready" ] || [ -n "$(find "$here/pom.xml" "${sources[@]}" -newer "$cache/ready" -type f)" ]; then
  rm -rf "$cache/libraries" "$cache/classes"
  mkdir -p "$cache/classes"
  mvn -q -B -f "$here/pom.xml" dependency:copy-dependencies -DoutputDirectory="$cache/libraries" -DincludeScope=runtime >&2
  javac -nowarn -d "$cache/classes" -cp "$cache/libraries/*" "${sources[@]}" >&2
  touch "$cache/ready"
fi
case $1 in Commits | Acid) program=("$@") ;; *) program=(Snb "$1") ;; esac
exec java -Xmx"${VERVET_PEER_HEAP:-4g}" -XX:+UseSerialGC -cp "$cache/classes:$cache/libraries/*" "${program[@]}"
