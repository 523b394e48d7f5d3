"""Talks to a running server as Python programs do: SPARQLWrapper, and rdflib's SPARQLStore and SPARQLUpdateStore.

Usage: clients.py http://127.0.0.1:7878, on the data of `people` in tests/server/common.rs.
"""

import sys

import rdflib
from rdflib.plugins.stores.sparqlstore import SPARQLStore, SPARQLUpdateStore
from SPARQLWrapper import CSV, JSON, POST, RDFXML, TSV, TURTLE, XML, SPARQLWrapper
from SPARQLWrapper.SPARQLExceptions import QueryBadFormed

address = sys.argv[1]
names = "SELECT ?n { ?p <http://example.org/name> ?n } ORDER BY ?n"

# SPARQLWrapper: each format, GET and POST, updates, errors.
endpoint = SPARQLWrapper(f"{address}/query", f"{address}/update")
endpoint.setQuery(names)
endpoint.setReturnFormat(JSON)
bindings = endpoint.queryAndConvert()["results"]["bindings"]
assert [row["n"]["value"] for row in bindings] == ["Ann", "Bob"], bindings
endpoint.setMethod(POST)
assert len(endpoint.queryAndConvert()["results"]["bindings"]) == 2
endpoint.setReturnFormat(XML)
assert "<literal>Ann</literal>" in endpoint.queryAndConvert().toxml()
endpoint.setReturnFormat(CSV)
assert endpoint.queryAndConvert() == b"n\r\nAnn\r\nBob\r\n"
endpoint.setReturnFormat(TSV)
assert endpoint.queryAndConvert() == b'?n\n"Ann"\n"Bob"@en\n'
endpoint.setQuery("ASK { ?s a <http://example.org/Person> }")
endpoint.setReturnFormat(JSON)
assert endpoint.queryAndConvert()["boolean"] is True
endpoint.setQuery("CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o }")
endpoint.setReturnFormat(TURTLE)
assert len(rdflib.Graph().parse(data=endpoint.queryAndConvert(), format="turtle")) == 5
endpoint.setReturnFormat(RDFXML)
assert len(endpoint.queryAndConvert()) == 5
endpoint.setQuery("INSERT DATA { <urn:a> <urn:b> 1 }")
endpoint.query()
endpoint.setQuery("SELECT * { ?x fof:name ?n }")
endpoint.setReturnFormat(JSON)
try:
    endpoint.query()
    raise AssertionError("a wrong query went through")
except QueryBadFormed as error:
    assert "foaf" in str(error), error
print("SPARQLWrapper: ok")

# rdflib: the remote graph through the interface of a local one.
graph = rdflib.Graph(SPARQLStore(f"{address}/query"))
ann = rdflib.URIRef("http://example.org/ann")
name = rdflib.URIRef("http://example.org/name")
assert graph.value(ann, name) == rdflib.Literal("Ann")
assert (ann, name, None) in graph
assert len(list(graph.triples((None, name, None)))) == 2
assert [str(row.n) for row in graph.query(names)] == ["Ann", "Bob"]
for method in ["GET", "POST", "POST_FORM"]:
    store = SPARQLUpdateStore(f"{address}/query", f"{address}/update", method=method)
    work = rdflib.Graph(store, identifier=rdflib.URIRef("http://example.org/work"))
    new = rdflib.Dataset(store, default_union=False).graph(rdflib.URIRef("urn:new"))
    assert (len(work), len(new)) == (2, 0), (len(work), len(new))
    for there in [work, new]:
        key = rdflib.URIRef(f"urn:{method}")
        there.add((key, name, rdflib.Literal("Zoe", lang="en")))
        assert there.value(key, name) == rdflib.Literal("Zoe", lang="en")
        there.remove((key, None, None))
        assert there.value(key, name) is None
print("SPARQLStore: ok")
