#!/bin/sh
# Puts the directory of this server on its volume, if it is empty. Where the cluster has started before, the server has lost its log:
# it takes the data of another server and another place among the voters, which needs a majority of the others.
set -eu
DATA=${DATA:-/data}
SECRET=${SECRET:-/servers}
[ ! -e "$DATA/server/cluster.toml" ] || exit 0
# vervet-0 is server a.
name=$(printf abcdefg | cut -c $((${POD_NAME##*-} + 1)))
rm -rf "$DATA/partial"
mkdir -m 700 "$DATA/partial"
tar -xzf "$SECRET/$name.tar.gz" -C "$DATA/partial"
if [ ! -e "$SECRET/first-start" ]; then
    rm -rf "$DATA"/partial/data "$DATA"/partial/voter-*
    vervet cluster rejoin "$DATA/partial"
fi
mv "$DATA/partial" "$DATA/server"
sync
