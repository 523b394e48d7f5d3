"""Talks to a running server as programs with gremlinpython do.

Usage: gremlin_client.py 127.0.0.1:7878 127.0.0.1:7879, an empty server and one with the users of tests/server/users.rs.
Each check runs with GraphBinary and with GraphSON 3.
"""

import datetime
import sys
import uuid

from gremlin_python.driver import serializer
from gremlin_python.driver.client import Client
from gremlin_python.driver.driver_remote_connection import DriverRemoteConnection
from gremlin_python.driver.protocol import GremlinServerError
from gremlin_python.driver.request import RequestMessage
from gremlin_python.process.anonymous_traversal import traversal
from gremlin_python.process.graph_traversal import __
from gremlin_python.process.traversal import Order, P, T
from gremlin_python.statics import bigdecimal, bigint, long

empty, guarded = (f"ws://{address}/gremlin" for address in sys.argv[1:3])
# aiohttp requires a trailing slash.
http = f"http://{sys.argv[1]}/gremlin/"
checks = 0


def check(condition, what):
    global checks
    assert condition, what
    checks += 1


def refused(code, work):
    """Runs `work`, which must fail with this code; returns the error."""
    try:
        result = work()
        raise AssertionError(f"expected {code}, got {result}")
    except GremlinServerError as error:
        check(error.status_code == code, error)
        return error


def walk(g, kind):
    """Writes a graph with bytecode and reads it back."""
    g.V().drop().iterate()
    marko = g.add_v("person").property(T.id, 1).property("name", "marko").property("age", 29).next()
    check((marko.id, marko.label) == (1, "person"), marko)
    g.add_v("person").property(T.id, 2).property("name", "vadas").property("age", 27).iterate()
    g.add_v("software").property(T.id, "lop").property("name", "lop").iterate()
    edge = g.V(1).add_e("knows").to(__.V(2)).property("weight", 0.5).next()
    check((edge.label, edge.outV.id, edge.inV.id) == ("knows", 1, 2), edge)
    g.V(1).add_e("created").to(__.V("lop")).iterate()
    check(g.V().has("age", P.gt(20)).order().by("age", Order.desc).values("name").to_list() == ["marko", "vadas"], kind)
    check(g.V(1).out().values("name").to_set() == {"vadas", "lop"}, kind)
    check(g.V(1).repeat(__.out()).until(__.has("name", "lop")).path().by("name").next().objects == ["marko", "lop"], kind)
    check(g.V().group_count().by(T.label).next() == {"person": 2, "software": 1}, kind)
    check(g.V(1).has_next() and not g.V(99).has_next(), kind)
    found = g.V(1).element_map().next()
    check((found[T.id], found[T.label], found["name"]) == (1, "person", "marko"), found)
    properties = {p.key: p.value for p in g.V(1).next().properties}
    check(properties == {"name": "marko", "age": 29}, properties)
    bare = g.with_("materializeProperties", "tokens").V(1).next()
    check(not bare.properties, bare)
    project = g.V(1).project("n", "out").by("name").by(__.out().count()).next()
    check(project == {"n": "marko", "out": 2}, project)
    check(len(g.V(1).inject(1).repeat(__.identity()).emit().limit(1000).to_list()) == 1000, kind)
    check(g.merge_v({T.id: 5, T.label: "person", "name": "eve"}).values("name").next() == "eve", kind)
    check(g.V().both().both().both().both().count().next() == g.V().both().both().both().both().barrier().to_list().__len__(), kind)
    # Schema queries of tools.
    check(g.V().label().dedup().order().to_list() == ["person", "software"], kind)
    check(g.E().label().group_count().next() == {"knows": 1, "created": 1}, kind)
    check(g.V().properties().key().dedup().order().to_list() == ["age", "name"], kind)


def values(g):
    """Values of each type survive a round trip."""
    now = datetime.datetime(2026, 11, 22, 12, 30, 15, tzinfo=datetime.timezone.utc)
    some = [
        "text", "ünïcode 🦀", True, 1, -7, long(1 << 40), 0.25, float("inf"),
        uuid.UUID("41d2e28a-20a4-4ab0-b379-d810dede3786"), [1, "a", [2]], {"a": 1, "b": [1, 2]}, now,
        bigdecimal("12.5"), bigint(1 << 70),
    ]
    for value in some:
        back = g.add_v("v").property("value", value).values("value").next()
        check(back == value, (value, back))
    check(g.inject({1, 2}).next() == {1, 2}, "a set")


def texts(client, g):
    """Scripts, bindings, batches, errors."""
    check(client.submit("g.V(x).values('name')", {"x": 1}).all().result() == ["marko"], "bindings")
    result = client.submit("g.inject(1).repeat(identity()).emit().limit(300)")
    sizes = [len(batch) for batch in result]
    check(sizes == [64, 64, 64, 64, 44], sizes)
    options = {"batchSize": 100, "evaluationTimeout": 10_000}
    check([len(b) for b in client.submit("g.inject(1).repeat(identity()).emit().limit(300)", request_options=options)] == [100, 100, 100], "batches")
    check(client.submit("g.V().hasLabel('none')").all().result() == [], "nothing")
    check(client.submit("g.V().label().groupCount()").all().result() == [{"person": 3, "software": 1}], "groups")
    error = refused(597, lambda: client.submit("g.V().oout()").all().result())
    check("did you mean" in str(error) and error.status_attributes["exceptions"] == ["vervet.query"], error)
    refused(595, lambda: g.V().fail("not today").to_list())
    refused(598, lambda: client.submit("g.inject(1).repeat(identity())", request_options={"evaluationTimeout": 100}).all().result())
    refused(598, lambda: g.with_("evaluationTimeout", 100).inject(1).repeat(__.identity()).to_list())
    refused(500, lambda: g.add_v().property(T.id, 1).to_list())
    refused(499, lambda: client.submit(RequestMessage("", "eval", {})).all().result())
    check(client.submit("g.V(1).count()").all().result() == [1], "it goes on")


def transactions(address, g, make):
    """Sessions of the driver."""
    before = g.V().count().next()
    tx = g.tx()
    gtx = tx.begin()
    gtx.add_v("tx").iterate()
    check(gtx.V().count().next() == before + 1, "it sees its own")
    check(g.V().count().next() == before, "others do not")
    tx.commit()
    check(g.V().count().next() == before + 1, "others do behind the commit")
    tx = g.tx()
    gtx = tx.begin()
    gtx.add_v("tx").iterate()
    tx.rollback()
    check(g.V().count().next() == before + 1, "it is rolled back")
    # Two conflicting transactions.
    first, second = g.tx(), g.tx()
    for gtx in [first.begin(), second.begin()]:
        age = gtx.V(1).values("age").next()
        gtx.V(1).property("age", age + 1).iterate()
    first.commit()
    error = refused(596, lambda: second.commit().all().result())
    check(error.status_attributes["exceptions"] == ["vervet.conflict"], error)
    check(g.V(1).values("age").next() == age + 1, "one of them counts")
    # Scripts in a session.
    client = Client(address, "g", session=str(uuid.uuid4()), message_serializer=make())
    client.submit("g.addV('tx')").all().result()
    client.submit("g.tx().commit()").all().result()
    client.submit("g.addV('tx')").all().result()
    client.submit("g.tx().rollback()").all().result()
    client.close()
    check(g.V().has_label("tx").count().next() == 2, "texts of sessions")


def users(make):
    remote = DriverRemoteConnection(guarded, "g", username="root", password="root", message_serializer=make())
    g = traversal().with_(remote)
    g.add_v("guarded").iterate()
    check(g.V().has_label("guarded").count().next() >= 1, "root may")
    remote.close()
    remote = DriverRemoteConnection(guarded, "g", username="reader", password="let me in", message_serializer=make())
    g = traversal().with_(remote)
    check(g.V().count().next() >= 1, "a reader may read")
    refused(403, lambda: g.add_v().iterate())
    remote.close()
    remote = DriverRemoteConnection(guarded, "g", username="reader", password="wrong", message_serializer=make())
    refused(401, lambda: traversal().with_(remote).V().to_list())
    remote.close()


for make in [
    serializer.GraphBinarySerializersV1,
    serializer.GraphSONSerializersV3d0,
]:
    before = checks
    kind = make.__name__
    remote = DriverRemoteConnection(empty, "g", message_serializer=make())
    client = Client(empty, "g", message_serializer=make())
    g = traversal().with_(remote)
    walk(g, kind)
    texts(client, g)
    values(g)
    transactions(empty, g, make)
    users(make)
    client.close()
    remote.close()
    client = Client(http, "g", message_serializer=make())
    check(client.submit("g.V(1).values('name')").all().result() == ["marko"], "a text over HTTP")
    client.close()
    print(f"{kind}: {checks - before} checks")
print("gremlinpython: ok")
