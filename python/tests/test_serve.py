"""The server of an open database: the console, SPARQL, Gremlin, its life, and clients of others."""

import importlib.util
import json
import socket
import subprocess
import sys
import textwrap
import time
import urllib.error
import urllib.parse
import urllib.request

import pytest

import vervet


def fetch(url, data=None, **headers):
    data = None if data is None else data.encode()
    request = urllib.request.Request(url, data=data, headers=headers)
    with urllib.request.urlopen(request, timeout=30) as answer:
        return answer.status, answer.headers, answer.read().decode()


def ask(server, query):
    url = server.url + "query?" + urllib.parse.urlencode({"query": query})
    return json.loads(fetch(url, Accept="application/sparql-results+json")[2])


def test_console_and_queries(people):
    with people.serve(port=0) as server:
        assert server.running and server.url == f"http://127.0.0.1:{server.port}/"
        status, headers, page = fetch(server.url)
        assert status == 200 and "text/html" in headers["Content-Type"] and "<html" in page.lower()
        rows = ask(server, "SELECT ?name { ?who <urn:vervet:key:age> 34 ; <urn:vervet:key:name> ?name }")
        assert [row["name"]["value"] for row in rows["results"]["bindings"]] == ["Ann"]
        text = json.dumps({"gremlin": "g.V().values('name').order()"})
        assert "Cem" in fetch(server.url + "gremlin", text)[2]
        assert server.url in server._repr_html_() and server.url in repr(server)
    assert not server.running
    assert "stopped" in repr(server) and "stopped" in server._repr_html_()
    with pytest.raises(urllib.error.URLError):
        fetch(server.url)


def test_clients_and_process_see_each_other(empty):
    with empty.serve(port=0) as server:
        update = urllib.parse.urlencode({"update": "INSERT DATA { <urn:a> <urn:b> 1 }"})
        assert fetch(server.url + "update", update)[0] in (200, 204)
        assert empty.query("SELECT ?n { <urn:a> <urn:b> ?n }").rows() == [(1,)]
        empty.update("INSERT DATA { <urn:a> <urn:b> 2 }")
        assert len(ask(server, "SELECT ?n { <urn:a> <urn:b> ?n }")["results"]["bindings"]) == 2


def test_read_only(empty):
    with empty.serve(port=0, read_only=True) as server:
        update = urllib.parse.urlencode({"update": "INSERT DATA { <urn:a> <urn:b> 1 }"})
        with pytest.raises(urllib.error.HTTPError) as caught:
            fetch(server.url + "update", update)
        assert caught.value.code == 403
    empty.update("INSERT DATA { <urn:a> <urn:b> 1 }")


def test_a_database_that_is_read_only(tmp_path):
    with vervet.open(tmp_path / "db") as db:
        db.update("INSERT DATA { <urn:a> <urn:b> 1 }")
    with vervet.open(tmp_path / "db", read_only=True) as db, db.serve(port=0) as server:
        assert ask(server, "ASK { <urn:a> <urn:b> 1 }")["boolean"]
        with pytest.raises(urllib.error.HTTPError):
            fetch(server.url + "update", urllib.parse.urlencode({"update": "CLEAR ALL"}))


def test_ports():
    with vervet.open() as db, socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(vervet.IoError) as caught:
            db.serve(taken.getsockname()[1])
        assert "port" in caught.value.hint
        # Without a port there is always a free one.
        with db.serve() as one, db.serve() as other:
            assert one.port != other.port
            assert ask(one, "ASK {}") == ask(other, "ASK {}")


def test_other_machines_need_consent(empty):
    with pytest.raises(vervet.InputError) as caught:
        empty.serve(port=0, host="0.0.0.0")
    assert "allow_plain_http" in caught.value.hint
    with empty.serve(port=0, host="0.0.0.0", allow_plain_http=True) as server:
        assert server.port


def test_closing_the_database_stops_it():
    db = vervet.open()
    server = db.serve(port=0)
    db.close()
    assert not server.running
    with pytest.raises(vervet.UnavailableError):
        db.serve(port=0)


def test_a_server_keeps_its_database():
    server = vervet.open().serve(port=0)
    assert ask(server, "ASK {}")["boolean"]
    server.stop()
    server.stop()


def test_wait_ends_by_ctrl_c_and_the_process_ends(tmp_path):
    """A script that serves ends by Ctrl-C; one that does not wait ends although it serves."""
    script = tmp_path / "serve.py"
    script.write_text(
        textwrap.dedent(
            """
            import signal, sys, threading, vervet
            # A parent, such as a shell that runs the tests in the background, may have it ignored.
            signal.signal(signal.SIGINT, signal.default_int_handler)
            server = vervet.open().serve(port=0)
            if sys.argv[1] == "wait":
                threading.Timer(0.5, lambda: signal.raise_signal(signal.SIGINT)).start()
                server.wait()
                assert not server.running
            print("end")
            """
        )
    )
    for how in ["wait", "end"]:
        done = subprocess.run([sys.executable, script, how], capture_output=True, text=True, timeout=60, check=False)
        assert done.stdout == "end\n" and done.returncode == 0, done.stderr


def test_fork_does_not_touch_the_server(empty):
    multiprocessing = pytest.importorskip("multiprocessing")
    if "fork" not in multiprocessing.get_all_start_methods():
        pytest.skip("there is no fork")
    with empty.serve(port=0) as server:
        context = multiprocessing.get_context("fork")
        child = context.Process(target=in_child, args=(server,))
        child.start()
        child.join(30)
        assert child.exitcode == 0
        assert server.running and ask(server, "ASK {}")["boolean"]


def in_child(server):
    assert not server.running
    with pytest.raises(vervet.UnavailableError):
        server.stop()


@pytest.mark.skipif(importlib.util.find_spec("SPARQLWrapper") is None, reason="SPARQLWrapper is not installed")
def test_sparqlwrapper(people):
    from SPARQLWrapper import JSON, POST, SPARQLWrapper

    with people.serve(port=0) as server:
        client = SPARQLWrapper(server.url + "query", server.url + "update")
        client.setReturnFormat(JSON)
        client.setQuery("SELECT ?name { ?who <urn:vervet:key:name> ?name } ORDER BY ?name")
        names = [row["name"]["value"] for row in client.queryAndConvert()["results"]["bindings"]]
        assert names == ["Ann", "Bob", "Cem"]
        client.setMethod(POST)
        client.setQuery('INSERT DATA { <urn:d> <urn:vervet:key:name> "Dan" }')
        client.query()
    assert people.query("ASK { ?who key:name 'Dan' }")


@pytest.mark.skipif(importlib.util.find_spec("gremlin_python") is None, reason="gremlinpython is not installed")
def test_gremlinpython(people):
    from gremlin_python.driver.driver_remote_connection import DriverRemoteConnection
    from gremlin_python.process.anonymous_traversal import traversal

    with people.serve(port=0) as server:
        connection = DriverRemoteConnection(f"ws://127.0.0.1:{server.port}/gremlin", "g")
        try:
            g = traversal().with_remote(connection)
            assert sorted(g.V().values("name").to_list()) == ["Ann", "Bob", "Cem"]
            g.add_v("person").property("name", "Dan").iterate()
        finally:
            connection.close()
        deadline = time.monotonic() + 5
        while not people.query("ASK { ?who key:name 'Dan' }") and time.monotonic() < deadline:
            time.sleep(0.05)
    assert people.query("ASK { ?who key:name 'Dan' }")
