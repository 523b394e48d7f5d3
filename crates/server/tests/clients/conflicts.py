"""Retries transactions that conflict, as docs/guides/conflicts.md shows: gremlinpython, and SPARQL over HTTP.

Usage: conflicts.py 127.0.0.1:7878, a server without users and with an empty database.
"""

import sys
import threading

from gremlin_python.driver.protocol import GremlinServerError

# ANCHOR: gremlinpython
import random
import time

from gremlin_python.driver.driver_remote_connection import DriverRemoteConnection
from gremlin_python.process.anonymous_traversal import traversal


def transact(g, work, attempts=10):
    """Runs `work` in a transaction until its commit succeeds; returns its result."""
    for attempt in range(1, attempts + 1):
        tx = g.tx()
        try:
            result = work(tx.begin())
            tx.commit().all().result()  # commit() alone does not raise
            return result
        except Exception as error:
            if tx.is_open():
                tx.rollback().all().result()
            if getattr(error, "status_code", None) != 596 or attempt == attempts:
                raise
            time.sleep(random.uniform(0, 0.002 * 2**attempt))


# ANCHOR_END: gremlinpython

# ANCHOR: http
import json
import random
import time
import urllib.error
import urllib.parse
import urllib.request


def update(address, text, attempts=10):
    """Sends an update; waits and sends it again if the server is busy or has given up on conflicts."""
    body = urllib.parse.urlencode({"update": text}).encode()
    for attempt in range(1, attempts + 1):
        try:
            request = urllib.request.Request(f"{address}/update", body, {"Accept": "application/json"})
            urllib.request.urlopen(request).close()
            return
        except urllib.error.HTTPError as error:
            kind = json.load(error)["error"]["kind"]
            if kind not in ("conflict", "unavailable") or attempt == attempts:
                raise
            time.sleep(float(error.headers.get("Retry-After", 0)) + random.uniform(0, 0.002 * 2**attempt))


# ANCHOR_END: http

THREADS, ROUNDS = 4, 10
url = f"ws://{sys.argv[1]}/gremlin"
setup = DriverRemoteConnection(url, "g")
source = traversal().with_(setup)
source.add_v("counter").property("name", "visits").property("count", 0).iterate()


def increment(g):
    count = g.V().has("name", "visits").values("count").next()
    g.V().has("name", "visits").property("count", count + 1).iterate()
    return count + 1


# The obvious code does not notice that its commit was refused.
first, second = source.tx(), source.tx()
increment(first.begin())
increment(second.begin())
first.commit().all().result()
unread = second.commit()
try:
    unread.all().result()
    raise AssertionError("the second commit was accepted")
except GremlinServerError as error:
    assert error.status_code == 596, error
assert source.V().has("name", "visits").values("count").next() == 1

failures = []


def client():
    try:
        connection = DriverRemoteConnection(url, "g")
        g = traversal().with_(connection)
        for _ in range(ROUNDS):
            transact(g, increment, attempts=100)
            update(f"http://{sys.argv[1]}", UPDATE)
        connection.close()
    except BaseException as error:
        failures.append(error)
        raise


UPDATE = """PREFIX key: <urn:vervet:key:>
DELETE { ?c key:count ?n } INSERT { ?c key:count ?next }
WHERE { ?c key:name "visits" ; key:count ?n BIND(?n + 1 AS ?next) }"""

threads = [threading.Thread(target=client) for _ in range(THREADS)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert not failures, failures
total = source.V().has("name", "visits").values("count").next()
assert total == 1 + 2 * THREADS * ROUNDS, total
# An error that no retry can mend is raised at once.
try:
    transact(source, lambda g: g.V().fail("no").iterate())
    raise AssertionError("fail() passed")
except GremlinServerError as error:
    assert error.status_code == 595, error
try:
    transact(source, lambda g: [g.add_v("lost").iterate(), 1 / 0])
    raise AssertionError("a division by zero passed")
except ZeroDivisionError:
    assert source.V().has_label("lost").count().next() == 0
try:
    update(f"http://{sys.argv[1]}", "INSERT DATA { oops }")
    raise AssertionError("a mistake passed")
except urllib.error.HTTPError as error:
    assert error.code == 400, error
setup.close()
print("conflicts.py: ok")
