"""Terms and elements as values: immutable, hashable, picklable."""

import copy
import datetime
import pickle

import pytest

from vervet import IRI, BlankNode, Direction, Edge, Literal, Path, Property, QueryError, T, Triple, Vertex, VertexProperty

ANN, BOB = Vertex(1, "person", {"name": ["Ann", "Anna"]}), Vertex("b", "person")
OBJECTS = [
    IRI("http://example.org/a"), BlankNode("b0"), Literal("text"), Literal(5), Literal("chat", language="fr"),
    Literal("سلام", language="ar--rtl"), Literal("x", datatype=IRI("urn:my")), Literal(datetime.date(2024, 1, 2)),
    Triple(IRI("urn:s"), IRI("urn:p"), Literal("o")), Triple(BlankNode("s"), IRI("urn:p"), Triple(IRI("urn:s"), IRI("urn:p"), 5)),
    ANN, BOB, Edge(7, "knows", ANN, BOB, {"since": 2019}), VertexProperty(3, "name", "Ann", {"from": 1990}),
    Property("since", 2019), Path([ANN, "x", 5], [["a", "b"], [], ["c"]]), T.id, Direction.OUT,
]  # fmt: skip


@pytest.mark.parametrize("object", OBJECTS, ids=repr)
def test_objects_are_values(object):
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        again = pickle.loads(pickle.dumps(object, protocol))
        assert again == object and hash(again) == hash(object)
        assert repr(again) == repr(object), "nothing is lost"
    assert copy.deepcopy(object) == object
    assert {object: 1}[pickle.loads(pickle.dumps(object))] == 1
    with pytest.raises((AttributeError, TypeError)):
        object.value = 1
    with pytest.raises((AttributeError, TypeError)):
        del object.id
    assert [other for other in OBJECTS if other == object] == [object]


@pytest.mark.parametrize("object", OBJECTS[:-2], ids=repr)
def test_repr_is_source(object):
    assert eval(repr(object)) == object


def test_literals():
    assert Literal(5) == Literal("5", datatype="http://www.w3.org/2001/XMLSchema#integer")
    assert Literal(5) != Literal("05", datatype="http://www.w3.org/2001/XMLSchema#integer"), "terms, not values"
    assert Literal("a") != Literal("a", language="en") != Literal("a", language="de")
    assert Literal("a").n3() == '"a"' and Literal("a", language="EN").n3() == '"a"@en'
    assert Literal("a", language="ar--rtl").n3() == '"a"@ar--rtl'
    assert str(Literal(2.5)) == "2.5" and Literal(2.5).value == 2.5
    midnight = datetime.datetime(2024, 1, 2, tzinfo=datetime.timezone.utc)
    assert Literal(midnight).lexical == "2024-01-02T00:00:00Z" and Literal(midnight).value == midnight
    with pytest.raises(ValueError):
        Literal("a", datatype="urn:x", language="en")
    with pytest.raises(ValueError):
        Literal("a", language="not a language")
    with pytest.raises(TypeError):
        Literal(5, datatype="urn:x")


def test_invalid_terms():
    for text in ("", "no scheme", "http://a b", "urn:<x>"):
        with pytest.raises(ValueError):
            IRI(text)
    with pytest.raises(ValueError):
        BlankNode("a b")
    with pytest.raises(TypeError):
        Triple("a text", IRI("urn:p"), 5)
    with pytest.raises(TypeError):
        Triple(IRI("urn:s"), BlankNode("p"), 5)


def test_iris_have_an_order():
    assert sorted([IRI("urn:b"), IRI("urn:a")]) == [IRI("urn:a"), IRI("urn:b")]


def test_elements():
    assert ANN["name"] == "Ann" and ANN.properties["name"] == ("Ann", "Anna")
    assert ANN.get("age") is None and BOB.get("age", 5) == 5
    with pytest.raises(KeyError):
        BOB["name"]
    with pytest.raises(TypeError):
        ANN.properties["name"] = ()
    assert Vertex(1, "robot") == ANN, "the id decides"
    assert Vertex(1) != Edge(1, "knows", ANN, BOB) and Vertex(1) != 1
    match ANN:
        case Vertex(1, label):
            assert label == "person"
        case _:
            pytest.fail("no match")
    path = Path(["a", "b", "c"], [["x"], ["y"], ["x"]])
    assert (path[0], path["x"], path["y"], path[-1], list(path), len(path)) == ("a", "c", "b", "c", ["a", "b", "c"], 3)
    with pytest.raises(KeyError):
        path["z"]


def test_errors_are_picklable():
    error = QueryError("a message", "a hint", 1, 5)
    again = pickle.loads(pickle.dumps(error))
    assert (again.message, again.hint, again.line, again.column) == ("a message", "a hint", 1, 5)
