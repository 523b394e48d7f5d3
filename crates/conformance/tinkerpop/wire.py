"""Submits texts of Gremlin through gremlinpython, for `cargo xtask conformance tinkerpop --wire`.

A line on stdin is {"port", "format", "gremlin", "bindings"}, the last as GraphSON 3, or {"close": port}. A line on stdout is
{"results": GraphSON 3 as a text}, {"error": {"code", "message", "exceptions"}} as the server said it, or {"driver": "…"}: what the
driver itself could not do.

Results are written by the driver's own writer of GraphSON 3. Added to it: paths, tuples and properties of vertices without their
vertex, which it cannot write; floats as doubles, which they are in Python. Bags, which the driver reads as lists, are
marked, as their order says nothing.
"""

import json
import logging
import sys

from gremlin_python.driver import serializer
from gremlin_python.driver.client import Client
from gremlin_python.driver.protocol import GremlinServerError
from gremlin_python.process.traversal import Merge
from gremlin_python.structure.graph import Path, VertexProperty
from gremlin_python.structure.io import graphbinaryV1, graphsonV3d0
from gremlin_python.structure.io.util import SymbolUtil

logging.disable(logging.CRITICAL)


class Bag(list):
    """A list that was a bag."""


class JsonBag:
    @classmethod
    def objectify(cls, value, reader):
        return Bag(graphsonV3d0.BulkSetIO.objectify(value, reader))


class BinaryBag:
    @classmethod
    def objectify(cls, buffer, reader, nullable=True):
        return Bag(graphbinaryV1.BulkSetDeserializer.objectify(buffer, reader, nullable))


class MergeIn:
    @classmethod
    def objectify(cls, value, reader):
        return Merge[SymbolUtil.to_snake_case(value)]


def typed(name, value):
    return {"@type": f"g:{name}", "@value": value}


class BagOut:
    @classmethod
    def dictify(cls, bag, writer):
        return typed("BulkSet", [part for item in bag for part in (writer.to_dict(item), typed("Int64", 1))])


class PathOut:
    @classmethod
    def dictify(cls, path, writer):
        return typed("Path", {"labels": writer.to_dict(path.labels), "objects": writer.to_dict(path.objects)})


class PropertyOut:
    @classmethod
    def dictify(cls, own, writer):
        parts = {"id": writer.to_dict(own.id), "label": own.label, "value": writer.to_dict(own.value)}
        return typed("VertexProperty", parts)


class DoubleOut:
    @classmethod
    def dictify(cls, number, writer):
        value = graphsonV3d0.FloatIO.dictify(number, writer)
        return typed("Double", value["@value"])


writer = graphsonV3d0.GraphSONWriter({
    Bag: BagOut, Path: PathOut, VertexProperty: PropertyOut, float: DoubleOut, tuple: graphsonV3d0.ListIO,
})
reader = graphsonV3d0.GraphSONReader({"g:Merge": MergeIn})
clients = {}


def client(port, kind):
    if port not in clients:
        if kind == "graphson":
            own = serializer.GraphSONSerializersV3d0()
            own._graphson_reader = graphsonV3d0.GraphSONReader({"g:BulkSet": JsonBag})
        else:
            bags = {graphbinaryV1.DataType.bulkset: BinaryBag}
            own = serializer.GraphBinarySerializersV1(reader=graphbinaryV1.GraphBinaryReader(bags))
        clients[port] = Client(f"ws://127.0.0.1:{port}/gremlin", "g", message_serializer=own, pool_size=1, max_workers=1)
    return clients[port]


def close(port):
    if port in clients:
        try:
            clients.pop(port).close()
        except Exception:
            # It was broken already.
            pass


def outgoing(value, kind):
    """A binding as the driver is to send it: with GraphSON it writes plain JSON, so what that cannot hold is typed before."""
    if kind == "graphson":
        try:
            json.dumps(value)
        except TypeError:
            return graphsonV3d0.GraphSONWriter().to_dict(value)
    return value


def answer(request):
    port = request["port"]
    try:
        bindings = {
            name: outgoing(reader.to_object(value), request["format"]) for name, value in request["bindings"].items()
        }
        results = client(port, request["format"]).submit(request["gremlin"], bindings).all().result()
        return {"results": writer.write_object(list(results))}
    except GremlinServerError as error:
        exceptions = (error.status_attributes or {}).get("exceptions", [])
        return {"error": {"code": error.status_code, "message": error.status_message, "exceptions": list(exceptions)}}
    except Exception as error:
        close(port)
        return {"driver": f"{type(error).__name__}: {error}"}


for line in sys.stdin:
    request = json.loads(line)
    if "close" in request:
        close(request["close"])
        continue
    print(json.dumps(answer(request)), flush=True)
for port in list(clients):
    close(port)
