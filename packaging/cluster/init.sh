#!/bin/sh
# Makes the directories of the servers a, b and c, once, on the volumes SERVERS/a, b and c; the keys stay in KEYS.
#
# Later runs find the directories and change nothing. A volume without its directory has lost it: the server must not start as a new
# one, since it has voted and acknowledged commits, so it takes the data of the others and another place among the voters
# (`vervet cluster rejoin`), while a majority of them runs.
set -eu
KEYS=${KEYS:-/keys}
SERVERS=${SERVERS:-/servers}
GRAPH=${GRAPH:-/graph}
names='a b c'

if [ -e "$KEYS/made" ]; then
    for name in $names; do
        [ ! -e "$SERVERS/$name/server/cluster.toml" ] || continue
        echo "server $name has lost its volume and rejoins"
        rm -rf "$SERVERS/$name/partial"
        cp -pR "$KEYS/$name" "$SERVERS/$name/partial"
        vervet cluster rejoin "$SERVERS/$name/partial"
        mv "$SERVERS/$name/partial" "$SERVERS/$name/server"
    done
    exit 0
fi

# Nothing has been made, or not all of it. No server starts before this script has succeeded, so their volumes have no log.
for name in $names; do
    for log in "$SERVERS/$name"/server/voter-*/; do
        [ ! -d "$log" ] || { echo "server $name has a log, but the volume of keys is empty: restore it" >&2; exit 1; }
    done
done
for name in $names; do
    rm -rf "$SERVERS/$name/server" "$SERVERS/$name/partial" "$KEYS/$name"
done
rm -rf "$KEYS/cluster" "$KEYS/cluster.partial"
set -- "$GRAPH"/*
if [ ! -e "$1" ]; then
    : > /tmp/empty.nt
    set -- /tmp/empty.nt
fi
vervet cluster init "$KEYS/cluster" --data "$@" --servers 3 --replicas 3 --voters 3 --host 127.0.0.1 --port 7900

# The addresses in the network of the containers; those for clients are shown only.
for name in $names; do
    sed -i \
        -e "s/^server = .*/&\nbind = \"0.0.0.0:7900\"/" \
        -e 's/^address = "127.0.0.1:7900"/address = "vervet-a:7900"/' \
        -e 's/^address = "127.0.0.1:7901"/address = "vervet-b:7900"/' \
        -e 's/^address = "127.0.0.1:7902"/address = "vervet-c:7900"/' \
        -e 's|^http = "|&http://|' \
        "$KEYS/cluster/$name/cluster.toml"
    mkdir -m 700 "$KEYS/$name"
    cp -p "$KEYS/cluster/$name/cluster.toml" "$KEYS/cluster/$name/"*.pem "$KEYS/$name/"
    cp -pR "$KEYS/cluster/$name" "$SERVERS/$name/server"
done
mv "$KEYS/cluster/authority-key.pem" "$KEYS/authority-key.pem"
rm -rf "$KEYS/cluster"
sync
: > "$KEYS/made"
