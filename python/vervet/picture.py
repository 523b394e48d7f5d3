"""Pictures of graphs as SVG, for notebooks: vertices and edges of results."""

from __future__ import annotations

import html
import math
from collections.abc import Iterable
from typing import Any

from ._vervet import IRI, BlankNode, Literal
from .elements import Edge, Path, Vertex

__all__ = ["Picture"]

_VERTICES_MAX = 60
"""Vertices of a picture; more are hardly legible."""
_EDGES_MAX = 200
"""Edges of a picture."""
_LABELED_EDGES_MAX = 40
"""Edges up to which their labels are written; beyond, they are in tooltips."""
_ROUNDS = 80
"""Rounds of the layout."""
_WIDTH, _HEIGHT = 640, 400
_RADIUS = 9
_TEXT_MAX = 24
"""Characters of a label."""
_COLORS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#56b4e9", "#8b8000", "#777777")
"""Okabe and Ito's, which colour-blind people can tell apart."""
_NAME_KEYS = ("name", "title", "label", "code")
"""Keys of properties that name a vertex."""
_RDF_TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"


class Picture:
    """Vertices and edges to be drawn."""

    def __init__(self) -> None:
        self._vertices: dict[Any, tuple[str, str]] = {}
        self._facts: dict[Any, list[str]] = {}
        self._edges: dict[tuple[Any, Any, str], None] = {}
        self._is_cut = False

    def add_value(self, value: Any) -> None:
        """Adds the vertices and edges of a result of a traversal."""
        if isinstance(value, Vertex):
            self._add_vertex(value)
        elif isinstance(value, Edge):
            self._add_vertex(value.source)
            self._add_vertex(value.target)
            self._add_edge(value.source.id, value.target.id, value.label)
        elif isinstance(value, Path):
            before = None
            for item in value.objects:
                self.add_value(item)
                if isinstance(item, Vertex):
                    if isinstance(before, Vertex):
                        self._add_edge(before.id, item.id, "")
                before = item
        elif isinstance(value, dict):
            for item in value.values():
                self.add_value(item)
        elif isinstance(value, (list, tuple, set, frozenset)):
            for item in value:
                self.add_value(item)

    def add_triples(self, triples: Iterable[tuple[Any, Any, Any]]) -> None:
        """Adds triples: those with literals and types are facts about their subjects."""
        for subject, predicate, target in triples:
            if predicate.value == _RDF_TYPE:
                self._add_node(subject, _short(target))
            elif isinstance(target, (IRI, BlankNode)):
                self._add_node(subject)
                self._add_node(target)
                self._add_edge(subject, target, _short(predicate))
            else:
                self._add_node(subject)
                text = target.lexical if isinstance(target, Literal) else str(target)
                self._add_fact(subject, f"{_short(predicate)}: {text}")

    def _add_vertex(self, vertex: Vertex) -> None:
        name = next((vertex[key] for key in _NAME_KEYS if key in vertex.properties), vertex.id)
        if vertex.id in self._vertices or self._has_space():
            if vertex.id not in self._vertices or vertex.properties:
                self._vertices[vertex.id] = (str(name), vertex.label)
            if vertex.id not in self._facts:
                for key, value in vertex.properties.items():
                    self._add_fact(vertex.id, f"{key}: {value}")

    def _add_node(self, term: Any, kind: str = "") -> None:
        if term in self._vertices or self._has_space():
            known = self._vertices.get(term, ("", ""))
            self._vertices[term] = (_short(term), kind or known[1])

    def _has_space(self) -> bool:
        if len(self._vertices) < _VERTICES_MAX:
            return True
        self._is_cut = True
        return False

    def _add_fact(self, vertex: Any, fact: str) -> None:
        self._facts.setdefault(vertex, []).append(fact)

    def _add_edge(self, source: Any, target: Any, label: str) -> None:
        if source in self._vertices and target in self._vertices:
            if len(self._edges) < _EDGES_MAX:
                self._edges[(source, target, label)] = None
            else:
                self._is_cut = True

    def svg(self) -> str | None:
        """The picture; ``None`` if there is no vertex."""
        if not self._vertices:
            return None
        places = self._layout()
        kinds = {kind: None for _, kind in self._vertices.values()}
        colors = {kind: _COLORS[number % len(_COLORS)] for number, kind in enumerate(kinds)}
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{_HEIGHT}" '
            f'viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" style="max-width:100%" '
            'font-family="sans-serif" font-size="11" fill="currentColor">',
            '<defs><marker id="vervet-arrow" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" '
            'markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z" fill="#888"/></marker></defs>',
        ]
        has_labels = len(self._edges) <= _LABELED_EDGES_MAX
        for source, target, label in self._edges:
            parts.append(_line(places[source], places[target], label, has_labels))
        for vertex, (name, kind) in self._vertices.items():
            x, y = places[vertex]
            facts = "\n".join([f"{kind or 'vertex'} {name}", *self._facts.get(vertex, [])])
            parts.append(
                f'<g><title>{html.escape(facts)}</title><circle cx="{x:.1f}" cy="{y:.1f}" r="{_RADIUS}" '
                f'fill="{colors[kind]}"/><text x="{x:.1f}" y="{y + _RADIUS + 12:.1f}" text-anchor="middle">'
                f"{html.escape(_cut(name))}</text></g>"
            )
        for number, kind in enumerate(kind for kind in kinds if kind):
            y = 14 + 15 * number
            parts.append(
                f'<circle cx="10" cy="{y}" r="5" fill="{colors[kind]}"/>'
                f'<text x="20" y="{y + 4}">{html.escape(_cut(kind))}</text>'
            )
        if self._is_cut:
            parts.append(f'<text x="6" y="{_HEIGHT - 6}">There is more than this picture shows.</text>')
        return "".join(parts) + "</svg>"

    def _layout(self) -> dict[Any, tuple[float, float]]:
        """Places of the vertices: T. Fruchterman, E. Reingold, "Graph Drawing by Force-directed Placement",
        1991, from a circle on, so that the same graph has the same picture."""
        keys = list(self._vertices)
        count = len(keys)
        number = {key: index for index, key in enumerate(keys)}
        edges = {(number[a], number[b]) for a, b, _ in self._edges if a != b}
        x = [math.cos(2 * math.pi * index / count) / 2 for index in range(count)]
        y = [math.sin(2 * math.pi * index / count) / 2 for index in range(count)]
        ideal = 1 / math.sqrt(count)
        for step in range(_ROUNDS if count > 2 else 0):
            dx, dy = [0.0] * count, [0.0] * count
            for a in range(count):
                for b in range(a):
                    u, v = x[a] - x[b], y[a] - y[b]
                    force = ideal * ideal / max(u * u + v * v, 1e-6)
                    dx[a] += u * force
                    dy[a] += v * force
                    dx[b] -= u * force
                    dy[b] -= v * force
            for a, b in edges:
                u, v = x[a] - x[b], y[a] - y[b]
                force = math.hypot(u, v) / ideal
                dx[a] -= u * force
                dy[a] -= v * force
                dx[b] += u * force
                dy[b] += v * force
            most = 0.1 * (1 - step / _ROUNDS)
            for a in range(count):
                # Gravity keeps parts without edges between them together.
                u, v = dx[a] - x[a] * 0.5, dy[a] - y[a] * 0.5
                length = max(math.hypot(u, v), 1e-9)
                x[a] += u / length * min(length, most)
                y[a] += v / length * min(length, most)
        margin = 40
        left, top = min(x), min(y)
        wide, high = max(max(x) - left, 1e-9), max(max(y) - top, 1e-9)
        return {
            key: (
                margin + (x[index] - left) / wide * (_WIDTH - 2 * margin) if count > 1 else _WIDTH / 2,
                margin + (y[index] - top) / high * (_HEIGHT - 2 * margin) if count > 2 else _HEIGHT / 2,
            )
            for key, index in number.items()
        }


def _line(source: tuple[float, float], target: tuple[float, float], label: str, has_label: bool) -> str:
    """An edge."""
    (x, y), (to_x, to_y) = source, target
    title = f"<title>{html.escape(label)}</title>" if label else ""
    if source == target:
        return (
            f'<g>{title}<circle cx="{x:.1f}" cy="{y - _RADIUS - 6:.1f}" r="8" fill="none" stroke="#888"/></g>'
        )
    length = math.hypot(to_x - x, to_y - y) or 1.0
    end_x, end_y = to_x - (to_x - x) / length * _RADIUS, to_y - (to_y - y) / length * _RADIUS
    text = ""
    if has_label and label:
        text = (
            f'<text x="{(x + to_x) / 2:.1f}" y="{(y + to_y) / 2 - 3:.1f}" text-anchor="middle" '
            f'fill="#888">{html.escape(_cut(label))}</text>'
        )
    return (
        f'<g>{title}<line x1="{x:.1f}" y1="{y:.1f}" x2="{end_x:.1f}" y2="{end_y:.1f}" stroke="#888" '
        f'marker-end="url(#vervet-arrow)"/>{text}</g>'
    )


def _short(term: Any) -> str:
    """The last part of an IRI."""
    if isinstance(term, BlankNode):
        return f"_:{term.value}"
    text = str(term)
    for separator in "#/:":
        head, _, tail = text.rpartition(separator)
        if head and tail:
            return tail
    return text


def _cut(text: str) -> str:
    return text if len(text) <= _TEXT_MAX else text[: _TEXT_MAX - 1] + "…"
