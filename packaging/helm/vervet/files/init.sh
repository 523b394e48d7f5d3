#!/bin/sh
# Makes the directories of the servers of a new cluster and stores them as the secret RELEASE-servers, for which the pods wait; and
# the key of the authority as RELEASE-authority.
#
# The key `first-start` of the secret allows an empty volume to start with an empty log. It is removed once all servers are ready:
# from then on an empty volume is a lost one, whose server rejoins (prepare.sh). A run that was interrupted goes on with the next one.
set -eu
API=${API:-https://kubernetes.default.svc}
ACCOUNT=${ACCOUNT:-/var/run/secrets/kubernetes.io/serviceaccount}
WORK=${WORK:-/tmp}
secrets="$API/api/v1/namespaces/$NAMESPACE/secrets"

# Prints the status of a request; the body of the response is in WORK/response.
request() {
    method=$1 url=$2
    shift 2
    curl -sS -o "$WORK/response" -w '%{http_code}' --cacert "$ACCOUNT/ca.crt" -X "$method" "$url" \
        -H "Authorization: Bearer $(cat "$ACCOUNT/token")" "$@"
}

fail() {
    echo "$1: $(cat "$WORK/response")" >&2
    exit 1
}

# Stores the files as a new secret.
store() {
    name=$1 separator=
    shift
    {
        printf '{"apiVersion":"v1","kind":"Secret","metadata":{"name":"%s"},"type":"Opaque","data":{' "$name"
        for file in "$@"; do
            printf '%s"%s":"%s"' "$separator" "$(basename "$file")" "$(base64 < "$file" | tr -d '\n')"
            separator=,
        done
        printf '}}'
    } > "$WORK/secret.json"
    status=$(request POST "$secrets" -H 'Content-Type: application/json' --data-binary "@$WORK/secret.json")
    rm "$WORK/secret.json"
    case $status in
    201) ;;
    409) fail "the secret $name is left from another cluster, or an attempt that was interrupted: move it away" ;;
    *) fail "could not store the secret $name" ;;
    esac
}

case $(request GET "$secrets/$RELEASE-servers") in
200) echo "the secret $RELEASE-servers exists" ;;
404)
    rm -rf "$WORK/cluster"
    : > "$WORK/empty.nt"
    vervet cluster init "$WORK/cluster" --data "$WORK/empty.nt" --servers "$SERVERS" --replicas "$SERVERS" --voters "$SERVERS" \
        --host 127.0.0.1 --port 7900
    ordinal=0
    edits="-e s/^server.=.*/&\nbind=\"0.0.0.0:7900\"/"
    for _ in "$WORK"/cluster/?/; do
        host="$RELEASE-$ordinal.$RELEASE-servers"
        edits="$edits -e s/^address.=.*:$((7900 + ordinal))\"/address=\"$host:7900\"/"
        edits="$edits -e s/^http.=.*:$((7878 + ordinal))\"/http=\"$SCHEME:\/\/$host:7878\"/"
        ordinal=$((ordinal + 1))
    done
    : > "$WORK/first-start"
    set -- "$WORK/first-start"
    for directory in "$WORK"/cluster/?/; do
        # Without blanks in it, on purpose.
        sed -i $edits "$directory/cluster.toml"
        archive="$WORK/$(basename "$directory").tar.gz"
        tar -czf "$archive" -C "$directory" .
        set -- "$@" "$archive"
    done
    # The authority first: the other secret says that all is done.
    store "$RELEASE-authority" "$WORK/cluster/authority-key.pem"
    store "$RELEASE-servers" "$@"
    ;;
*) fail "could not read the secret $RELEASE-servers" ;;
esac

ordinal=0
while [ "$ordinal" -lt "$SERVERS" ]; do
    until curl -sfk -o /dev/null "$SCHEME://$RELEASE-$ordinal.$RELEASE-servers:7878/ready"; do
        echo "waiting for server $ordinal"
        sleep 5
    done
    ordinal=$((ordinal + 1))
done
case $(request PATCH "$secrets/$RELEASE-servers" -H 'Content-Type: application/merge-patch+json' \
    --data-binary '{"data":{"first-start":null}}') in
200) echo "all servers are ready" ;;
*) fail "could not change the secret $RELEASE-servers" ;;
esac
