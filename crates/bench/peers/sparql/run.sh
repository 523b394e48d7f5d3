#!/usr/bin/env bash
# `run.sh jena|virtuoso|vervet FILE PORT`: a SPARQL endpoint with the statements of an N-Triples file at http://127.0.0.1:PORT/sparql,
# for `vervet-bench outside --against NAME=URL#PROCESS`. It becomes the process of the engine. The first time, Maven fetches Jena and
# javac compiles src/Jena.java, into VERVET_PEERS or else the user's cache. Virtuoso is Debian's package virtuoso-opensource-7-bin;
# Vervet is built beforehand (`cargo build --release -p vervet-cli`).
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cache=${VERVET_PEERS:-${XDG_CACHE_HOME:-$HOME/.cache}/vervet-peers}/sparql
engine=$1 file=$(realpath "$2") port=$3
case $engine in
  jena)
    if [ ! -e "$cache/ready" ] || [ -n "$(find "$here" -newer "$cache/ready" -type f)" ]; then
      mkdir -p "$cache/classes"
      mvn -q -B -f "$here/pom.xml" dependency:copy-dependencies -DoutputDirectory="$cache/libraries" -DincludeScope=runtime >&2
      javac -nowarn -d "$cache/classes" -cp "$cache/libraries/*" "$here/src/Jena.java" >&2
      cp "$here/src/log4j2.properties" "$cache/classes"
      touch "$cache/ready"
    fi
    exec java -Xmx"${VERVET_PEER_HEAP:-4g}" -XX:+UseSerialGC -cp "$cache/classes:$cache/libraries/*" Jena "$file" "$port"
    ;;
  virtuoso)
    folder=$(mktemp -d "${TMPDIR:-/tmp}/vervet-virtuoso-XXXXXX")
    # The peer's port of its own protocol is the next one. All threads of one query: one, as for the others.
    cat > "$folder/virtuoso.ini" <<INI
[Database]
DatabaseFile = $folder/virtuoso.db
ErrorLogFile = $folder/virtuoso.log
LockFile = $folder/virtuoso.lck
TransactionFile = $folder/virtuoso.trx
xa_persistent_file = $folder/virtuoso.pxa
[TempDatabase]
DatabaseFile = $folder/virtuoso-temp.db
TransactionFile = $folder/virtuoso-temp.trx
[Parameters]
ServerPort = 127.0.0.1:$((port + 1))
DirsAllowed = $(dirname "$file")
NumberOfBuffers = 170000
MaxDirtyBuffers = 130000
ThreadsPerQuery = 1
CheckpointInterval = 0
[HTTPServer]
ServerPort = 127.0.0.1:$port
ServerThreads = 4
[SPARQL]
ResultSetMaxRows = 100000000
DefaultGraph = urn:graph
INI
    # A child loads and ends; the engine itself stays in the foreground. Loading begins once its port answers. With the loader of
    # several threads (TTLP_MT) 7.2.5 loaded a part of some files and then waited.
    (
      sql() { isql-vt "$((port + 1))" dba dba "EXEC=$1" > "$folder/load.log" 2>&1; }
      until sql 'SELECT 1'; do sleep 0.2; done
      sql "log_enable(2); DB.DBA.TTLP(file_to_string_output('$file'), '', 'urn:graph', 0)"
      sql "GRANT SELECT ON SPARQL_SINV_2 TO \"SPARQL\""
      sql "CHECKPOINT"
      touch "$folder/ready"
    ) &
    cd "$folder"
    exec virtuoso-t -f -c virtuoso.ini > "$folder/out.log" 2>&1
    ;;
  vervet)
    folder=$(mktemp -d "${TMPDIR:-/tmp}/vervet-peer-XXXXXX")
    program=$here/../../../../target/release/vervet
    "$program" load "$folder/db" "$file" > "$folder/load.log" 2>&1
    exec "$program" serve "$folder/db" --bind "127.0.0.1:$port" > "$folder/out.log" 2>&1
    ;;
  *)
    echo "run.sh: $engine is none of jena, virtuoso, vervet" >&2
    exit 2
    ;;
esac
