"""What people see: progress of loads, tables and pictures in notebooks."""

import io
import sys
import types
import xml.etree.ElementTree

import pytest

import vervet
from vervet import progress

TEXT = "".join(f"<urn:s{number}> <urn:p> {number} .\n" for number in range(400_000))


def test_a_function_sees_the_progress(empty, tmp_path):
    file = tmp_path / "numbers.ttl"
    file.write_text(TEXT)
    seen = []
    report = empty.load(file, progress=seen.append)
    assert report.added == 400_000
    assert seen, "a load of this size takes longer than 50 ms"
    assert all(isinstance(step, vervet.LoadProgress) for step in seen)
    fractions = [step.fraction for step in seen if step.fraction is not None]
    assert fractions == sorted(fractions) and all(0 <= fraction <= 1 for fraction in fractions)
    assert seen[-1].bytes_total in (None, len(TEXT))


def test_an_exception_of_the_function_ends_the_load(empty, tmp_path):
    file = tmp_path / "numbers.ttl"
    file.write_text(TEXT)

    def stop(step):
        raise ValueError("enough")

    with pytest.raises(ValueError, match="enough"):
        empty.load(file, progress=stop)
    assert len(empty.query("SELECT * { ?s ?p ?o } LIMIT 1")) == 0


def test_terminal():
    stream = io.StringIO()
    bar = progress.Terminal(stream)
    with bar:
        bar(1, 10, 0, 0, 0)
        assert stream.getvalue() == "", "short loads show nothing"
        bar._begun -= 10
        bar(500_000, 1_000_000, 1234, 0, 0)
        assert "30%" in stream.getvalue() and "1,234 statements" in stream.getvalue()
        bar._last -= 10
        bar(1_000_000, 1_000_000, 2468, 1, 2)
        assert "80%" in stream.getvalue() and "50% built" in stream.getvalue()
    assert stream.getvalue().endswith(" \r")


def test_notebook():
    shown = []

    class Handle:
        def update(self, markup):
            shown.append(markup._repr_html_())

    def display(markup, display_id):
        assert display_id
        shown.append(markup._repr_html_())
        return Handle()

    bar = progress.Notebook(display)
    with bar:
        bar._begun -= 10
        bar(1, None, 5, 0, 0)
        bar._last -= 10
        bar(1, 2, 5, 0, 0)
    assert "<progress" in shown[0] and "value" not in shown[0]
    assert 'value="0.300"' in shown[1] and shown[2] == ""


def test_where_it_is_shown(monkeypatch):
    terminal = io.StringIO()
    terminal.isatty = lambda: True
    monkeypatch.setattr(sys, "stderr", terminal)
    assert isinstance(progress.display(None), progress.Terminal)
    assert progress.display(False) is None
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    assert progress.display(None) is None
    assert isinstance(progress.display(True), progress.Terminal)
    assert isinstance(progress.display(print), progress.Caller)
    notebook = types.ModuleType("IPython")
    notebook.get_ipython = lambda: types.SimpleNamespace(kernel=True)
    notebook.display = types.ModuleType("IPython.display")
    notebook.display.display = print
    monkeypatch.setitem(sys.modules, "IPython", notebook)
    monkeypatch.setitem(sys.modules, "IPython.display", notebook.display)
    assert isinstance(progress.display(None), progress.Notebook)


def picture(result):
    """The SVG of a result in a notebook, as XML, so that it is well-formed."""
    markup = result._repr_html_()
    start, end = markup.find("<svg"), markup.find("</svg>")
    return None if start < 0 else xml.etree.ElementTree.fromstring(markup[start : end + 6])


def texts(svg):
    return {element.text for element in svg.iter("{http://www.w3.org/2000/svg}text")}


def test_vertices_and_edges_are_drawn(people):
    svg = picture(people.gremlin("g.E()"))
    assert {"knows", "person"} <= texts(svg)
    assert len(svg.findall("{http://www.w3.org/2000/svg}g")) == 2 + 3
    assert {"Ann", "Bob", "Cem"} <= texts(picture(people.gremlin("g.V()")))
    assert {"Ann", "Cem"} <= texts(picture(people.gremlin("g.V().has('name', 'Ann').out().out().path()")))
    assert "Bob" in texts(picture(people.gremlin("g.V().project('a', 'b').by('age').by(__.out().fold())")))


def test_graphs_are_drawn(people):
    svg = picture(people.query("CONSTRUCT WHERE { ?a key:knows ?b ; key:name ?name ; a ?type }"))
    assert {"knows", "person"} <= texts(svg)
    titles = [element.text for element in svg.iter("{http://www.w3.org/2000/svg}title")]
    assert any("name: Ann" in title for title in titles)


def test_other_results_have_no_picture(people):
    assert picture(people.query("SELECT ?subject ?predicate ?object { ?subject ?predicate ?object }")) is None
    assert picture(people.gremlin("g.V().values('name')")) is None
    assert picture(people.query("CONSTRUCT { ?a key:x ?b } { ?a key:missing ?b }")) is None
    assert "<table>" in people.query("SELECT ?n { ?a key:name ?n }")._repr_html_()


def test_pictures_have_a_limit_and_escape_texts(empty):
    empty.gremlin("g.addV('<b>&').property('name', '<script>').as('a').addE('<e>').from('a').to('a')")
    assert {"<script>", "<b>&"} <= texts(picture(empty.gremlin("g.V()")))
    assert "<e>" in {title.text for title in picture(empty.gremlin("g.E()")).iter("{http://www.w3.org/2000/svg}title")}
    lines = "".join(f"<urn:a> <urn:p> <urn:b{number}> .\n" for number in range(500))
    empty.load_text(lines, "nt")
    svg = picture(empty.query("CONSTRUCT WHERE { ?a <urn:p> ?b }"))
    assert any("more than this picture" in (text or "") for text in texts(svg))
    assert len(svg.findall("{http://www.w3.org/2000/svg}g")) <= 60 + 200
