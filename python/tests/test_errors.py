"""Errors: one class for each kind, message, hint, position."""

import os

import pytest

import vervet


def test_a_mistake_in_a_query(people):
    with pytest.raises(vervet.QueryError) as caught:
        people.query("SELECT ?x\n{ ?x key:name ?name FILTR (?name = 'Ann') }")
    error = caught.value
    assert error.line == 2 and error.column is not None
    assert "^" in error.message and "FILTR" in str(error)
    line = error.message.splitlines()[-2]
    assert line[error.message.splitlines()[-1].index("^") :].startswith("FILTR")
    assert isinstance(error, vervet.VervetError)


def test_a_mistake_in_a_script_and_an_update(people):
    with pytest.raises(vervet.QueryError) as caught:
        people.gremlin("g.V().outt('knows')")
    assert "^" in caught.value.message and caught.value.hint and "out" in caught.value.hint
    assert str(caught.value).endswith(f"hint: {caught.value.hint}")
    with pytest.raises(vervet.QueryError):
        people.update("INSERT DATA { ?x <urn:p> 5 }")


def test_a_malformed_file(empty, tmp_path):
    file = tmp_path / "bad.ttl"
    file.write_text("<urn:a> <urn:b> <urn:c> .\n<urn:a> <urn:b .\n")
    with pytest.raises(vervet.InputError, match="bad.ttl:2"):
        empty.load(file)
    assert empty.info()["statements"] == 0, "a load is all or nothing"
    with pytest.raises(vervet.IoError, match="missing.ttl"):
        empty.load(tmp_path / "missing.ttl")
    with pytest.raises(ValueError, match="format"):
        empty.load(file, format="nonsense")


def test_constraints(tmp_path):
    with vervet.open() as db:
        with pytest.raises(vervet.InputError):
            db.gremlin("g.addV('a').property(T.id, 1).addV('b').property(T.id, 1)")
        assert db.gremlin("g.V().count()").values() == [0]


def test_open(tmp_path):
    with pytest.raises(vervet.InputError):
        vervet.open(tmp_path / "none", create=False)
    with pytest.raises(vervet.InputError):
        vervet.open(tmp_path / "none", read_only=True)
    with pytest.raises(ValueError):
        vervet.open(durability="sometimes")
    with pytest.raises(ValueError):
        vervet.open(threads=0)


def test_damage(tmp_path):
    path = tmp_path / "db"
    with vervet.open(path) as db:
        db.load_text("<urn:a> <urn:b> <urn:c> .", "nt")
    manifests = [file for file in path.iterdir() if "manifest" in file.name.lower()]
    assert manifests
    for file in manifests:
        file.write_bytes(b"x" * os.path.getsize(file))
    with pytest.raises(vervet.CorruptError) as caught:
        vervet.open(path)
    assert "backup" in caught.value.hint


def test_closed(empty):
    result = empty.query("SELECT ('x' AS ?y) {}")
    empty.close()
    empty.close()
    assert empty.closed and "closed" in repr(empty)
    for call in (
        lambda: empty.query("ASK {}"),
        lambda: empty.gremlin("g.V()"),
        lambda: empty.update("CLEAR ALL"),
        lambda: empty.load_text("", "nt"),
        lambda: empty.transaction(),
        lambda: empty.info(),
        lambda: empty.explain("ASK {}"),
    ):
        with pytest.raises(vervet.UnavailableError, match="closed"):
            call()
    assert result.rows() == [("x",)], "results stay readable"


def test_read_only(tmp_path):
    path = tmp_path / "db"
    with vervet.open(path) as db:
        db.load_text("<urn:a> <urn:b> <urn:c> .", "nt")
    with vervet.open(path, read_only=True) as db:
        assert len(db.query("SELECT * { ?s ?p ?o }")) == 1
        assert db.gremlin("g.V().count()").values() == [2]
        for call in (
            lambda: db.gremlin("g.addV()"),
            lambda: db.update("CLEAR ALL"),
            lambda: db.load_text("", "nt"),
            lambda: db.transaction(),
        ):
            with pytest.raises(vervet.UnavailableError, match="read only"):
                call()
        with vervet.open(path) as writer:
            writer.update("INSERT DATA { <urn:a> <urn:b> <urn:d> }")
        assert len(db.query("SELECT * { ?s ?p ?o }")) == 1, "what was committed when it opened"


def test_unsupported(empty):
    with pytest.raises(vervet.VervetError) as caught:
        empty.update("LOAD <file:///etc/hostname>")
    assert "LOAD" in caught.value.message
