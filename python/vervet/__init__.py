"""Vervet: a graph database inside the process, with SPARQL and Gremlin over the same data.

>>> import vervet
>>> db = vervet.open()                      # in memory; vervet.open("flights.db") is a directory
>>> db.update('INSERT DATA { <urn:ann> key:name "Ann" ; key:age 34 }')
UpdateReport(inserted=2, removed=0)
>>> for name, age in db.query("SELECT ?name ?age { ?who key:name ?name ; key:age ?age }"):
...     print(name, age)
Ann 34

Threads may share a `Database`; calls release the interpreter lock, so they run in parallel.
"""

import importlib
from typing import TYPE_CHECKING

from ._vervet import IRI, BlankNode, Literal, Triple
from .database import Database, LoadReport, Transaction, UpdateReport, open
from .elements import Direction, Edge, Path, Property, T, Vertex, VertexProperty
from .errors import (
    CancelledError,
    ConflictError,
    ConstraintError,
    CorruptError,
    DeadlineError,
    InputError,
    InternalError,
    IoError,
    MemoryLimitError,
    QueryError,
    UnavailableError,
    UnsupportedError,
    VervetError,
)
from .progress import LoadProgress
from .result import GremlinResult, Result
from .server import Server

__all__ = [
    "open",
    "Database",
    "Transaction",
    "Result",
    "GremlinResult",
    "LoadReport",
    "LoadProgress",
    "Server",
    "UpdateReport",
    "IRI",
    "BlankNode",
    "Literal",
    "Triple",
    "Vertex",
    "Edge",
    "VertexProperty",
    "Property",
    "Path",
    "T",
    "Direction",
    "VervetError",
    "QueryError",
    "InputError",
    "CorruptError",
    "IoError",
    "CancelledError",
    "DeadlineError",
    "MemoryLimitError",
    "UnsupportedError",
    "ConflictError",
    "ConstraintError",
    "UnavailableError",
    "InternalError",
]


if TYPE_CHECKING:
    from . import langchain as langchain
    from . import llama_index as llama_index
    from . import networkx as networkx
    from . import rdflib as rdflib
else:

    def __getattr__(name):
        """``vervet.rdflib`` and so on without an import of their own: they need other packages."""
        if name in ("rdflib", "networkx", "llama_index", "langchain"):
            return importlib.import_module(f"vervet.{name}")
        raise AttributeError(f"module 'vervet' has no attribute {name!r}")
