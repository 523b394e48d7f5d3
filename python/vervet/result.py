"""Results: rows that are decoded in batches, Arrow streams, data frames, tables."""

from __future__ import annotations

import html
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ._vervet import IRI, BlankNode, Literal, Rows
from .files import WRITE_HINT, local_path
from .picture import Picture

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

__all__ = ["Result", "GremlinResult"]

_BATCH_ROWS = 1024
"""Rows decoded at a time by an iteration."""
_LIST_ROWS = 8192
"""Rows decoded at a time for a list. Other threads run between two batches."""
_SHOWN_ROWS = 20
"""Rows of a table as text or HTML."""
_DRAWN_ROWS = 200
"""Rows whose vertices and edges are drawn."""
_SHOWN_COLUMNS = 60
"""Characters of a cell of a table as text."""


class Result:
    """The rows of a SPARQL query.

    A cell is ``None`` if it is unbound; a Python value if it is a number, a truth value, a plain text, a
    date or a time; else a term: `IRI`, `BlankNode`, `Literal`, `Triple`. With ``terms=True`` it is always a
    term. A result holds the snapshot that the query read: later changes do not change it.

    >>> import vervet
    >>> db = vervet.open()
    >>> _ = db.update('INSERT DATA { <urn:ann> key:name "Ann" ; key:age 34 . <urn:bob> key:name "Bob" }')
    >>> result = db.query("SELECT ?who ?name ?age { ?who key:name ?name OPTIONAL { ?who key:age ?age } } ORDER BY ?name")
    >>> result.columns, len(result)
    (('who', 'name', 'age'), 2)
    >>> result.rows()
    [(IRI('urn:ann'), 'Ann', 34), (IRI('urn:bob'), 'Bob', None)]
    >>> result.dicts()[0]
    {'who': IRI('urn:ann'), 'name': 'Ann', 'age': 34}
    >>> print(result)
    who     | name | age
    --------+------+----
    urn:ann | Ann  | 34
    urn:bob | Bob  |
    """

    __slots__ = ("_rows",)

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns. The graph of a `CONSTRUCT` has ``subject``, ``predicate``, ``object``."""
        return self._rows.columns

    @property
    def count(self) -> int:
        """The number of rows, also beyond what `len` can return."""
        return self._rows.count

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[Any]:
        """The rows as tuples."""
        rows = self._rows
        start = 0
        while batch := rows.rows(start, _BATCH_ROWS):
            yield from batch
            start += _BATCH_ROWS

    def rows(self, *, terms: bool = False) -> list[tuple[Any, ...]]:
        """All rows as tuples."""
        rows = self._rows
        every: list[tuple[Any, ...]] = []
        for start in range(0, len(self), _LIST_ROWS):
            every += rows.rows(start, _LIST_ROWS, terms)
        return every

    def dicts(self, *, terms: bool = False) -> list[dict[str, Any]]:
        """All rows as dictionaries."""
        columns = self.columns
        return [dict(zip(columns, row)) for row in self.rows(terms=terms)]

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The rows as a stream of Arrow record batches, for any library that reads one.

        A column has the type of its values: ``int64``, ``decimal128`` (decimals, and integers among them),
        ``float64`` (also other numbers among floats), ``bool``, ``date32``, ``timestamp[us]``, with the time
        zone UTC if all values have a time zone. A column of other or mixed values is ``large_string``:
        lexical forms and IRIs.
        """
        return self._rows.__arrow_c_stream__(requested_schema)

    def arrow(self) -> pyarrow.Table:
        """The rows as a table of pyarrow."""
        import pyarrow

        return pyarrow.table(self)

    def pl(self) -> polars.DataFrame:
        """The rows as a data frame of polars."""
        import polars

        return polars.DataFrame(self)

    def df(self) -> pandas.DataFrame:
        """The rows as a data frame of pandas; by pyarrow if it is installed, else by Python values.

        Decimals are ``float64``: pandas would have them as objects.
        """
        import pandas

        try:
            import pyarrow
        except ImportError:
            return pandas.DataFrame.from_records(Result.rows(self), columns=list(self.columns))
        table = self.arrow()
        fields = [
            pyarrow.field(field.name, pyarrow.float64()) if pyarrow.types.is_decimal(field.type) else field
            for field in table.schema
        ]
        return table.cast(pyarrow.schema(fields)).to_pandas()

    def __repr__(self) -> str:
        columns = ", ".join(self.columns)
        return f"<{type(self).__name__}: {self.count} row{'' if self.count == 1 else 's'} of ({columns})>"

    def _shown(self) -> tuple[list[list[str]], str]:
        """The first rows as texts, and a line about the others."""
        rows = self._rows.rows(0, _SHOWN_ROWS)
        more = self.count - len(rows)
        note = f"… {more} more row{'' if more == 1 else 's'}" if more else ""
        return [[_text(cell) for cell in row] for row in rows], note

    def __str__(self) -> str:
        rows, note = self._shown()
        rows = [[_one_line(cell) for cell in row] for row in rows]
        table = [list(self.columns), *rows]
        widths = [max(map(len, column)) for column in zip(*table)]
        lines = [" | ".join(map(str.ljust, row, widths)).rstrip() for row in table]
        lines.insert(1, "-+-".join("-" * width for width in widths))
        return "\n".join(lines + [note] * bool(note))

    def _repr_html_(self) -> str:
        rows, note = self._shown()
        head = "".join(f"<th>{html.escape(name)}</th>" for name in self.columns)
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
        )
        table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        table += f"<p>{html.escape(note)}</p>" if note else ""
        picture = self._picture().svg()
        return table if picture is None else f"<div>{picture}</div>{table}"

    def _picture(self) -> Picture:
        """The vertices and edges of the first rows."""
        picture = Picture()
        if self._rows.is_graph:
            picture.add_triples(self._rows.rows(0, _DRAWN_ROWS, True))
        return picture

    def write_parquet(self, path: str | os.PathLike[str]) -> int:
        """Writes the rows into a Parquet file, with the types of `__arrow_c_stream__` and compressed by zstd;
        returns their number. The file appears when it is complete.

        It is a local file. A stream goes elsewhere by pyarrow: ``pyarrow.parquet.ParquetWriter(path, schema,
        filesystem=…)``.
        """
        return self._rows.write_parquet(local_path(path, "a Parquet file of a result", WRITE_HINT))


class GremlinResult(Result):
    """The results of a traversal. Iteration gives the values themselves, rather than rows.

    Rows have one column, ``value``; if all results are maps with texts as keys, as those of ``project``, the
    keys are the columns.

    >>> import vervet
    >>> db = vervet.open()
    >>> _ = db.gremlin("g.addV('person').property('name', 'Ann').property('age', 34)")
    >>> list(db.gremlin("g.V().values('name')"))
    ['Ann']
    >>> ann = db.gremlin("g.V()").values()[0]
    >>> ann.label, ann["age"]
    ('person', 34)
    >>> db.gremlin("g.V().project('who', 'age').by('name').by('age')").rows()
    [('Ann', 34)]
    """

    __slots__ = ()

    def __iter__(self) -> Iterator[Any]:
        """The results."""
        rows = self._rows
        start = 0
        while batch := rows.values(start, _BATCH_ROWS):
            yield from batch
            start += _BATCH_ROWS

    def values(self) -> list[Any]:
        """All results."""
        rows = self._rows
        every: list[Any] = []
        for start in range(0, len(self), _LIST_ROWS):
            every += rows.values(start, _LIST_ROWS)
        return every

    def _picture(self) -> Picture:
        picture = Picture()
        for value in self._rows.values(0, _DRAWN_ROWS):
            picture.add_value(value)
        return picture

    def counted(self) -> list[tuple[Any, int]]:
        """The results, each with its number of consecutive occurrences. A traversal may have more results
        than a list can hold; this one is short all the same."""
        return self._rows.counted()

    def rows(self, *, terms: bool = False) -> list[tuple[Any, ...]]:
        """All rows as tuples."""
        if terms:
            raise TypeError("the results of a traversal are not terms")
        return super().rows()


def _text(cell: object) -> str:
    """A cell of a table."""
    if cell is None:
        return ""
    if isinstance(cell, Literal) and cell.language:
        return f"{cell.lexical}@{cell.language}"
    if isinstance(cell, (str, IRI, BlankNode, Literal)):
        return str(cell)
    if isinstance(cell, (list, dict, set)):
        return repr(cell)
    return str(cell)


def _one_line(text: str) -> str:
    """A cell of a table as text: without line breaks, and not too long."""
    text = " ".join(text.splitlines())
    return text if len(text) <= _SHOWN_COLUMNS else text[: _SHOWN_COLUMNS - 1] + "…"
