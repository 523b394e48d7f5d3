"""Threads, the interpreter lock, Ctrl-C, cancellation, fork, asyncio. No test measures speed."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

import vervet

ROWS = 400
# Has to look at every triple of triples: hours.
ENDLESS = """SELECT (COUNT(*) AS ?n) { ?a <urn:p> ?b . ?c <urn:p> ?d . ?e <urn:p> ?f . ?g <urn:p> ?h .
    FILTER (STRLEN(CONCAT(STR(?b), STR(?d), STR(?f), STR(?h))) = 1) }"""
ENDLESS_GREMLIN = "g.inject(1).repeat(map(constant(1))).until(is(2))"
SOON = 30.0
"""Seconds within which an endless query has to end: generous, since machines may be busy."""


@pytest.fixture
def numbers(empty):
    empty.load_text("\n".join(f"<urn:s{n}> <urn:p> {n} ." for n in range(ROWS)), "ttl")
    return empty


def test_threads_share_a_database(numbers):
    """Readers beside a writer: every answer is one that was committed."""
    failures = []

    def read():
        for _ in range(50):
            rows = numbers.query("SELECT ?s ?o { ?s <urn:p> ?o }").rows()
            if len(rows) < ROWS or len(set(rows)) != len(rows):
                failures.append(len(rows))

    def write():
        for n in range(50):
            numbers.update("INSERT DATA { <urn:more> <urn:p> ?n }".replace("?n", str(ROWS + n)))

    threads = [threading.Thread(target=read) for _ in range(3)] + [threading.Thread(target=write)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert len(numbers.query("SELECT * { ?s <urn:p> ?o }")) == ROWS + 50


@pytest.mark.parametrize("call", ["query", "gremlin", "update", "transaction"])
def test_calls_release_the_interpreter_lock(numbers, call):
    """While a call runs in another thread, this thread runs, and cancels it."""
    begun, ended = threading.Event(), []

    def endless():
        begun.set()
        try:
            if call == "query":
                numbers.query(ENDLESS)
            elif call == "gremlin":
                numbers.gremlin(ENDLESS_GREMLIN)
            elif call == "update":
                numbers.update("INSERT { <urn:a> <urn:q> ?n } WHERE { { " + ENDLESS + " } }")
            else:
                with numbers.transaction() as tx:
                    tx.query(ENDLESS)
        except vervet.VervetError as error:
            ended.append(error)

    thread = threading.Thread(target=endless)
    thread.start()
    begun.wait()
    deadline = time.monotonic() + SOON
    while not numbers.cancel():
        assert time.monotonic() < deadline
        time.sleep(0.001)
    thread.join(SOON)
    assert not thread.is_alive()
    assert isinstance(ended[0], vervet.CancelledError)
    assert numbers.cancel() == 0
    assert len(numbers.query("SELECT * { ?s ?p ?o }")) == ROWS, "the database works as before"


SCRIPT = """
import os, signal, sys, threading, time
import vervet
# A parent, such as a shell that runs the tests in the background, may have it ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)
db = vervet.open()
db.load_text("\\n".join(f"<urn:s{n}> <urn:p> {n} ." for n in range(400)), "ttl")
threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    CALL
    print("no interrupt")
except KeyboardInterrupt:
    print("interrupted", len(db.query("SELECT * { ?s ?p ?o }")))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals of Unix")
@pytest.mark.parametrize(
    "call",
    [
        f"db.query('''{ENDLESS}''')",
        f"db.gremlin('{ENDLESS_GREMLIN}')",
        f"db.update('''INSERT {{ <urn:a> <urn:q> ?n }} WHERE {{ {{ {ENDLESS} }} }}''')",
        f"db.transaction().query('''{ENDLESS}''')",
        f"db.profile('''{ENDLESS}''')",
    ],
    ids=["query", "gremlin", "update", "transaction", "profile"],
)
def test_ctrl_c_ends_a_call(call):
    script = SCRIPT.replace("CALL", call)
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=SOON, check=False
    )
    assert (done.stdout, done.stderr) == ("interrupted 400\n", "")


def test_a_handler_that_returns_does_not_end_a_call(numbers):
    if not hasattr(signal, "setitimer"):
        pytest.skip("there is no setitimer")
    calls = []
    before = signal.signal(signal.SIGALRM, lambda *_: calls.append(1) or (len(calls) == 3 and numbers.cancel()))
    signal.setitimer(signal.ITIMER_REAL, 0.1, 0.1)
    try:
        with pytest.raises(vervet.CancelledError):
            numbers.query(ENDLESS)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert len(calls) >= 3, "the query went on after the first signals"


def test_a_timeout_in_the_main_thread(numbers):
    with pytest.raises(vervet.DeadlineError, match="100ms"):
        numbers.with_options(timeout=0.1).query(ENDLESS)
    with pytest.raises(vervet.DeadlineError):
        numbers.with_options(timeout=0.01).query(ENDLESS)


def test_slow_updates_run_once(numbers):
    """An update that outlasts the first attempt in the main thread is not applied twice."""
    text = """INSERT { ?s <urn:copy> ?n } WHERE { { SELECT ?s (COUNT(*) AS ?n) { ?s <urn:p> ?o . ?t <urn:p> ?u .
        FILTER (STRLEN(CONCAT(STR(?o), STR(?u))) > 0) } GROUP BY ?s } }"""
    report = numbers.update(text)
    assert report == vervet.UpdateReport(inserted=ROWS, removed=0)
    rows = numbers.query("SELECT ?n { ?s <urn:copy> ?n }").rows()
    assert rows == [(ROWS,)] * ROWS


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_fork(tmp_path):
    """A child of fork gets an error rather than a broken database, and leaves that of its parent alone."""
    script = """
import os, sys, warnings
warnings.simplefilter("ignore")
import vervet
db = vervet.open(sys.argv[1])
db.update("INSERT DATA { <urn:a> <urn:b> 1 }")
tx = db.transaction()
tx.update("INSERT DATA { <urn:a> <urn:b> 2 }")
sys.stdout.flush()
child = os.fork()
if child == 0:
    for call in (lambda: db.query("ASK {}"), lambda: tx.query("ASK {}"), tx.commit, db.close):
        try:
            call()
            print("no error", flush=True)
        except vervet.UnavailableError as error:
            print("fork" in error.message, flush=True)
    own = vervet.open()
    print(own.query("ASK {}"), flush=True)
    sys.exit(0)
assert os.waitpid(child, 0)[1] == 0
tx.commit()
print(len(db.query("SELECT * { ?s ?p ?o }")))
"""
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "db")],
        capture_output=True,
        text=True,
        timeout=2 * SOON,
        check=False,
    )
    assert (done.stdout.split(), done.stderr) == (["True"] * 5 + ["2"], "")


def test_asyncio(numbers):
    async def both():
        queries = (f"SELECT ?s {{ ?s <urn:p> {n} }}" for n in (1, 2))
        return await asyncio.gather(*(asyncio.to_thread(numbers.query, query) for query in queries))

    one, two = asyncio.run(both())
    assert (str(one.rows()[0][0]), str(two.rows()[0][0])) == ("urn:s1", "urn:s2")


def test_results_may_be_read_by_threads(numbers):
    result = numbers.query("SELECT ?o { ?s <urn:p> ?o }")
    sums = []
    threads = [threading.Thread(target=lambda: sums.append(sum(row[0] for row in result))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sums == [sum(range(ROWS))] * 4
