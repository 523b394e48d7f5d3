"""The examples of the documentation: docstrings, README.md, and the guides of Python where they are there."""

import doctest
import importlib
import os
import pathlib
import re

import pytest

import vervet

FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE | doctest.IGNORE_EXCEPTION_DETAIL
PYTHON = pathlib.Path(__file__).resolve().parent.parent
NEEDED = {"rdflib": "rdflib", "llama_index": "llama_index.core", "langchain": "langchain_community"}
"""Modules with the packages that they need."""
PAGES = [PYTHON / "README.md", PYTHON.parent / "docs/guides/python.md", PYTHON.parent / "docs/guides/from-python.md"]


@pytest.mark.parametrize("name", ["__init__", "database", "result", "elements", "networkx", *NEEDED])
def test_docstrings(name):
    if name in NEEDED:
        pytest.importorskip(NEEDED[name], reason=f"{NEEDED[name]} is not installed")
    module = vervet if name == "__init__" else importlib.import_module(f"vervet.{name}")
    failed, tried = doctest.testmod(module, extraglobs={"vervet": vervet}, optionflags=FLAGS)
    assert failed == 0 and tried > 0


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages(page, tmp_path, monkeypatch):
    """All blocks of a page run in one session; those after `needs` with a package that is missing do not."""
    if not page.exists():
        pytest.skip(f"{page} is not in this copy of the package")
    monkeypatch.chdir(tmp_path)
    text = page.read_text()
    blocks = re.findall(r"(?:<!-- needs ([\w ]+) -->\n)?```python\n(.*?)```", text, re.DOTALL)
    assert blocks
    parser, names, tried = doctest.DocTestParser(), {}, 0
    runner = doctest.DocTestRunner(optionflags=FLAGS)
    for needed, block in blocks:
        missing = [name for name in needed.split() if importlib.util.find_spec(name) is None]
        if missing:
            print(f"{page.name}: a block is left out: {', '.join(missing)} is not installed")
            continue
        test = parser.get_doctest(block, names, page.name, str(page), text[: text.index(block)].count("\n"))
        assert test.examples, block
        tried += len(test.examples)
        runner.run(test, clear_globs=False)
        names.update(test.globs)
    assert runner.summarize(verbose=False).failed == 0 and tried > 0
    os.chdir(PYTHON)
