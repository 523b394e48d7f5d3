#!/usr/bin/env bash
# Runs one Cassandra server in the foreground: cassandra.sh FOLDER batch|periodic. FOLDER gets its data; the ports are those of
# cassandra.yaml, on the loopback address. The first time, Maven fetches its libraries, into VERVET_PEERS or else the user's cache.
#   batch:    the commit log is synced before a write is acknowledged
#   periodic: the default, it is synced every ten seconds
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
folder=$(mkdir -p "$1" && cd "$1" && pwd)
libraries=${VERVET_PEERS:-${XDG_CACHE_HOME:-$HOME/.cache}/vervet-peers}/cassandra
if [ ! -e "$libraries/ready" ]; then
  mvn -q -B -f "$here/pom.xml" dependency:copy-dependencies -DoutputDirectory="$libraries" -DincludeScope=runtime >&2
  touch "$libraries/ready"
fi
case $2 in
  batch) log='commitlog_sync: batch' ;;
  periodic) log='commitlog_sync: periodic
commitlog_sync_period: 10000ms' ;;
  *) echo "batch or periodic, not $2" >&2; exit 2 ;;
esac
{
  cat "$here/cassandra.yaml"
  echo "data_file_directories: [$folder/data]"
  echo "commitlog_directory: $folder/commitlog"
  echo "saved_caches_directory: $folder/saved_caches"
  echo "hints_directory: $folder/hints"
  echo "cdc_raw_directory: $folder/cdc_raw"
  echo "$log"
} > "$folder/cassandra.yaml"
# As in the server options for Java 17 of Cassandra.
opens=()
for package in java.base/{java.io,java.lang,java.lang.module,java.lang.reflect,java.net,java.nio,java.util,java.util.concurrent} \
    java.base/{java.util.concurrent.atomic,jdk.internal.loader,jdk.internal.math,jdk.internal.misc,jdk.internal.module} \
    java.base/{jdk.internal.ref,jdk.internal.reflect,jdk.internal.util.jar,jdk.internal.vm,sun.nio.ch} \
    java.rmi/{sun.rmi.registry,sun.rmi.server,sun.rmi.transport,sun.rmi.transport.tcp} \
    java.management/{com.sun.jmx.mbeanserver,sun.management} jdk.management/com.sun.management.internal; do
  opens+=("--add-opens=$package=ALL-UNNAMED" "--add-exports=$package=ALL-UNNAMED")
done
echo $$ > "$folder/pid"
exec java -Xms"${VERVET_CASSANDRA_HEAP:-2g}" -Xmx"${VERVET_CASSANDRA_HEAP:-2g}" -XX:+UseG1GC "${opens[@]}" \
    -Djdk.attach.allowAttachSelf=true -javaagent:"$libraries/jamm-0.4.0.jar" \
    -Dcassandra.config="file://$folder/cassandra.yaml" -Dcassandra.storagedir="$folder" -Dcassandra-foreground=yes \
    -Dcassandra.ring_delay_ms=100 -Dcassandra.skip_wait_for_gossip_to_settle=0 \
    -Dlogback.configurationFile="$here/logback.xml" -cp "$libraries/*" org.apache.cassandra.service.CassandraDaemon
