"""Vertices, edges, properties and paths: immutable, hashable, picklable.

Elements are equal if they are of the same class and their ids are equal.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

__all__ = ["Vertex", "Edge", "VertexProperty", "Property", "Path", "T", "Direction"]


class T(enum.Enum):
    """Keys of maps that are not properties: ``row[T.id]`` of ``elementMap()``."""

    id = "id"
    label = "label"
    key = "key"
    value = "value"


class Direction(enum.Enum):
    """Keys of the ends of an edge in a map: ``row[Direction.OUT]`` of ``elementMap()``."""

    OUT = "OUT"
    IN = "IN"
    BOTH = "BOTH"


class _Immutable:
    __slots__ = ()

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable")

    def _set(self, **values: object) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)


class Vertex(_Immutable):
    """A vertex, as it was when the result was made.

    >>> ann = Vertex(1, "person", {"name": ["Ann"]})
    >>> ann.id, ann.label, ann["name"], ann.properties["name"]
    (1, 'person', 'Ann', ('Ann',))
    >>> ann
    Vertex(1, 'person', {'name': ['Ann']})
    """

    __slots__ = ("id", "label", "properties")
    __match_args__ = ("id", "label")

    id: Any
    """The external id: a number, a text or a UUID."""
    label: str
    """The label; several are separated by ``::``."""
    properties: Mapping[str, tuple[Any, ...]]
    """For each key, all values."""

    def __init__(
        self, id: Any, label: str = "", properties: Mapping[str, Iterable[Any]] | None = None
    ) -> None:
        values = {key: tuple(values) for key, values in (properties or {}).items()}
        self._set(id=id, label=label, properties=MappingProxyType(values))

    def __getitem__(self, key: str) -> Any:
        """The first value of a property."""
        return self.properties[key][0]

    def get(self, key: str, default: Any = None) -> Any:
        """The first value of a property, or ``default``."""
        values = self.properties.get(key)
        return values[0] if values else default

    def __eq__(self, other: object) -> bool:
        return self.id == other.id if isinstance(other, Vertex) else NotImplemented

    def __hash__(self) -> int:
        return hash((Vertex, self.id))

    def __repr__(self) -> str:
        properties = {key: list(values) for key, values in self.properties.items()}
        return f"Vertex({self.id!r}, {self.label!r}, {properties!r})"

    def __str__(self) -> str:
        return f"v[{self.id}]"

    def __reduce__(self) -> tuple[Any, ...]:
        return Vertex, (self.id, self.label, dict(self.properties))


class Edge(_Immutable):
    """An edge, as it was when the result was made. Its ends have no properties.

    >>> Edge(7, "knows", Vertex(1, "person"), Vertex(2, "person"), {"since": 2019})["since"]
    2019
    """

    __slots__ = ("id", "label", "source", "target", "properties")
    __match_args__ = ("source", "label", "target")

    id: Any
    """The external id."""
    label: str
    """The label."""
    source: Vertex
    """The vertex from which it goes out."""
    target: Vertex
    """The vertex into which it comes."""
    properties: Mapping[str, Any]
    """For each key, its value."""

    def __init__(
        self,
        id: Any,
        label: str,
        source: Vertex,
        target: Vertex,
        properties: Mapping[str, Any] | None = None,
    ) -> None:
        values = MappingProxyType(dict(properties or {}))
        self._set(id=id, label=label, source=source, target=target, properties=values)

    def __getitem__(self, key: str) -> Any:
        """The value of a property."""
        return self.properties[key]

    def get(self, key: str, default: Any = None) -> Any:
        """The value of a property, or ``default``."""
        return self.properties.get(key, default)

    def __eq__(self, other: object) -> bool:
        return self.id == other.id if isinstance(other, Edge) else NotImplemented

    def __hash__(self) -> int:
        return hash((Edge, self.id))

    def __repr__(self) -> str:
        ends = f"{self.source!r}, {self.target!r}"
        return f"Edge({self.id!r}, {self.label!r}, {ends}, {dict(self.properties)!r})"

    def __str__(self) -> str:
        return f"e[{self.id}][{self.source.id}-{self.label}->{self.target.id}]"

    def __reduce__(self) -> tuple[Any, ...]:
        return Edge, (self.id, self.label, self.source, self.target, dict(self.properties))


class VertexProperty(_Immutable):
    """A property of a vertex with an id of its own, the result of ``properties()``."""

    __slots__ = ("id", "key", "value", "properties")
    __match_args__ = ("key", "value")

    id: Any
    """The external id."""
    key: str
    """The key."""
    value: Any
    """The value."""
    properties: Mapping[str, Any]
    """Properties of the property."""

    def __init__(
        self, id: Any, key: str, value: Any, properties: Mapping[str, Any] | None = None
    ) -> None:
        self._set(id=id, key=key, value=value, properties=MappingProxyType(dict(properties or {})))

    def __eq__(self, other: object) -> bool:
        return self.id == other.id if isinstance(other, VertexProperty) else NotImplemented

    def __hash__(self) -> int:
        return hash((VertexProperty, self.id))

    def __repr__(self) -> str:
        return f"VertexProperty({self.id!r}, {self.key!r}, {self.value!r}, {dict(self.properties)!r})"

    def __str__(self) -> str:
        return f"vp[{self.key}->{self.value}]"

    def __reduce__(self) -> tuple[Any, ...]:
        return VertexProperty, (self.id, self.key, self.value, dict(self.properties))


class Property(_Immutable):
    """A property of an edge or of a property: a key and a value."""

    __slots__ = ("key", "value")
    __match_args__ = ("key", "value")

    key: str
    """The key."""
    value: Any
    """The value."""

    def __init__(self, key: str, value: Any) -> None:
        self._set(key=key, value=value)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Property):
            return NotImplemented
        return self.key == other.key and self.value == other.value

    def __hash__(self) -> int:
        return hash((Property, self.key))

    def __repr__(self) -> str:
        return f"Property({self.key!r}, {self.value!r})"

    def __str__(self) -> str:
        return f"p[{self.key}->{self.value}]"

    def __reduce__(self) -> tuple[Any, ...]:
        return Property, (self.key, self.value)


class Path(_Immutable):
    """The objects of a path, and the labels (``as``) of its steps.

    >>> path = Path(["Ann", "Bob"], [["a"], []])
    >>> path[0], path["a"], len(path), list(path)
    ('Ann', 'Ann', 2, ['Ann', 'Bob'])
    """

    __slots__ = ("objects", "labels")
    __match_args__ = ("objects", "labels")

    objects: tuple[Any, ...]
    """The objects, in order."""
    labels: tuple[tuple[str, ...], ...]
    """The labels of each object."""

    def __init__(self, objects: Iterable[Any], labels: Sequence[Iterable[str]] = ()) -> None:
        objects = tuple(objects)
        all_labels = [tuple(names) for names in labels]
        all_labels += [()] * (len(objects) - len(all_labels))
        self._set(objects=objects, labels=tuple(all_labels))

    def __getitem__(self, position: int | str) -> Any:
        """The object at a position, or the last one with a label."""
        if isinstance(position, str):
            for value, labels in zip(reversed(self.objects), reversed(self.labels)):
                if position in labels:
                    return value
            raise KeyError(position)
        return self.objects[position]

    def __len__(self) -> int:
        return len(self.objects)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.objects)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Path):
            return NotImplemented
        return self.objects == other.objects and self.labels == other.labels

    def __hash__(self) -> int:
        return hash((Path, len(self.objects), self.labels))

    def __repr__(self) -> str:
        labels = f", {[list(names) for names in self.labels]!r}" if any(self.labels) else ""
        return f"Path({list(self.objects)!r}{labels})"

    def __str__(self) -> str:
        return "[" + ", ".join(map(str, self.objects)) + "]"

    def __reduce__(self) -> tuple[Any, ...]:
        return Path, (self.objects, self.labels)
