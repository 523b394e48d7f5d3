"""The notebooks: their cells run in order, in this process and, where nbclient and ipykernel are installed, in
Jupyter's own client."""

import ast
import importlib.util
import json
import pathlib
import re

import pytest

NOTEBOOKS = sorted((pathlib.Path(__file__).resolve().parent.parent / "notebooks").glob("*.ipynb"))
PACKAGES = ["networkx", "polars", "pyarrow", "rdflib"]


def cells(notebook):
    return ["".join(cell["source"]) for cell in json.loads(notebook.read_text())["cells"] if cell["cell_type"] == "code"]


def skip_if_missing(notebook):
    imported = set(re.findall(r"^(?:import|from) (\w+)", "\n".join(cells(notebook)), re.MULTILINE))
    missing = [name for name in PACKAGES if name in imported and importlib.util.find_spec(name) is None]
    if missing:
        pytest.skip(f"{', '.join(missing)} is not installed")


def test_there_are_three():
    assert len(NOTEBOOKS) == 3


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_committed_without_outputs(notebook):
    for cell in json.loads(notebook.read_text())["cells"]:
        assert not cell.get("outputs") and cell.get("execution_count") is None


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_cells_run(notebook):
    """As a notebook does: the value of the last expression of a cell is shown."""
    skip_if_missing(notebook)
    names = {"__name__": "__main__"}
    for number, text in enumerate(cells(notebook)):
        tree = ast.parse(text)
        shown = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        where = f"{notebook.name}, cell {number}"
        exec(compile(tree, where, "exec"), names)
        if shown:
            value = eval(compile(ast.Expression(shown.value), where, "eval"), names)
            show = getattr(value, "_repr_html_", None)
            assert show() if show else repr(value), where


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_runs_in_jupyter(notebook):
    for name in ["nbclient", "nbformat", "ipykernel"]:
        pytest.importorskip(name, reason=f"{name} is not installed")
    skip_if_missing(notebook)
    import nbclient
    import nbformat

    document = nbformat.read(notebook, as_version=4)
    nbformat.validate(document)
    nbclient.NotebookClient(document, timeout=120, kernel_name="python3").execute()
    outputs = [output for cell in document.cells if cell.cell_type == "code" for output in cell.outputs]
    assert not [output for output in outputs if output.output_type == "error"]
    tables = [output.data["text/html"] for output in outputs if "text/html" in output.get("data", {})]
    assert any("<table" in table for table in tables)
