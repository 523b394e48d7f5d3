"""Transactions: commit, rollback, conflicts, durability, processes."""

import subprocess
import sys
import threading

import pytest

import vervet

COUNT = "SELECT (COUNT(*) AS ?n) { ?s ?p ?o }"


def count(reader):
    return reader.query(COUNT).rows()[0][0]


def test_commit(people):
    with people.transaction() as tx:
        assert tx.is_open
        assert tx.update("INSERT DATA { <urn:a> <urn:b> 1, 2 }") == vervet.UpdateReport(inserted=2, removed=0)
        tx.gremlin("g.V(1).property('city', 'Graz')")
        assert (count(tx), count(people)) == (17, 14)
        assert tx.query("ASK { ?x key:city 'Graz' }") is True
    assert count(people) == 17 and not tx.is_open


def test_rollback_on_an_exception(people):
    with pytest.raises(ZeroDivisionError):
        with people.transaction() as tx:
            tx.update("CLEAR ALL")
            assert count(tx) == 0
            1 / 0
    assert count(people) == 14 and not tx.is_open
    with pytest.raises(vervet.InputError, match="has ended"):
        tx.query("ASK {}")


def test_explicit_ends(people):
    with people.transaction() as tx:
        tx.update("CLEAR ALL")
        tx.rollback()
    assert count(people) == 14
    tx = people.transaction()
    tx.update("CLEAR ALL")
    tx.commit()
    assert count(people) == 0
    with pytest.raises(vervet.InputError):
        tx.commit()


def test_a_dropped_transaction_has_no_effect(people):
    tx = people.transaction()
    tx.update("CLEAR ALL")
    del tx
    assert count(people) == 14


def test_a_snapshot(people):
    with people.transaction() as tx:
        people.update("INSERT DATA { <urn:a> <urn:b> <urn:c> }")
        assert (count(tx), count(people)) == (14, 15)
        tx.rollback()


def test_a_failed_update_leaves_the_transaction_as_it_was(people):
    with people.transaction() as tx:
        tx.update("INSERT DATA { <urn:a> <urn:b> 1 }")
        with pytest.raises(vervet.QueryError):
            tx.update("INSERT DATA { <urn:a> <urn:b> 2 } ; CREATE GRAPH <urn:g> ; INSERT DATA { GRAPH <urn:g> { <urn:a> <urn:b> 3 } } ; CREATE GRAPH <urn:g>")
        assert count(tx) == 15
    assert count(people) == 15


def test_conflicts(people):
    one, other = people.transaction(), people.transaction()
    for tx in (one, other):
        tx.query("SELECT ?age { <urn:vervet:vertex:1> key:age ?age }").rows()
        tx.gremlin("g.V(1).property('age', 35)")
    one.commit()
    with pytest.raises(vervet.ConflictError):
        other.commit()


def test_transact_counts_right(people):
    """Threads add to one number: as often as they were told, whatever conflicts."""
    people.update("INSERT DATA { <urn:counter> <urn:value> 0 }")

    def add(tx):
        value = tx.query("SELECT ?v { <urn:counter> <urn:value> ?v }").rows()[0][0]
        tx.update("DELETE { <urn:counter> <urn:value> ?old } INSERT { <urn:counter> <urn:value> ?new } WHERE {}", old=value, new=value + 1)
        return value + 1

    def work():
        for _ in range(25):
            people.transact(add)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert people.query("SELECT ?v { <urn:counter> <urn:value> ?v }").rows() == [(100,)]


def test_transact_passes_errors_on(people):
    calls = []

    def work(tx):
        calls.append(tx)
        tx.update("CLEAR ALL")
        raise KeyError("mine")

    with pytest.raises(KeyError):
        people.transact(work)
    assert len(calls) == 1 and count(people) == 14


def test_isolation(people):
    with people.transaction(isolation="snapshot") as tx:
        assert count(tx) == 14
    with pytest.raises(ValueError):
        people.transaction(isolation="none")


def test_files(tmp_path):
    path = tmp_path / "db"
    with vervet.open(path) as db:
        db.update("INSERT DATA { <urn:a> <urn:b> 1 }")
        tx = db.transaction()
        tx.update("INSERT DATA { <urn:a> <urn:b> 2 }")
        del tx
        assert db.info()["durability"] == "sync" and db.info()["file_bytes"] > 0
        assert db.backup(tmp_path / "copy") == 1
    for name in ("db", "copy"):
        with vervet.open(str(tmp_path / name), create=False) as db:
            assert db.query("SELECT ?o { ?s ?p ?o }").rows() == [(1,)]


def test_another_process_that_writes(tmp_path):
    """A killed process loses no commit, and a second writer is refused while the first one lives."""
    path = str(tmp_path / "db")
    script = (
        "import sys, vervet\n"
        "db = vervet.open(sys.argv[1])\n"
        "db.update('INSERT DATA { <urn:a> <urn:b> 1 }')\n"
        "tx = db.transaction()\n"
        "tx.update('INSERT DATA { <urn:a> <urn:b> 2 }')\n"
        "print('ready', flush=True)\n"
        "sys.stdin.read()\n"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", script, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert child.stdout.readline() == "ready\n"
        with vervet.open(path) as db:
            assert db.query("SELECT ?o { ?s ?p ?o }").rows() == [(1,)]
            with pytest.raises(vervet.UnavailableError, match=str(child.pid)):
                db.update("INSERT DATA { <urn:a> <urn:b> 3 }")
    finally:
        child.kill()
        child.communicate()
    with vervet.open(path) as db:
        assert db.query("SELECT ?o { ?s ?p ?o }").rows() == [(1,)]
        db.update("INSERT DATA { <urn:a> <urn:b> 3 }")
