"""The progress of loads: a line in a terminal, a bar in a notebook, or a function of the caller."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TextIO

__all__ = ["LoadProgress"]

_SHOWN_AFTER = 0.5
"""Seconds until a bar appears: most loads end before."""
_EVERY = 0.2
"""Seconds between two changes of a bar."""
_READ_SHARE = 0.6
"""Share of the time of a load until all is read: a third to a half is for building."""
_WIDTH = 24
"""Characters of a bar in a terminal."""


@dataclass(frozen=True)
class LoadProgress:
    """How far a load is."""

    bytes: int
    """Bytes read."""
    bytes_total: int | None
    """Bytes of all sources, if known."""
    statements: int
    """Statements read."""
    built: float
    """The share of the graph that is built after everything is read, from 0 to 1."""

    @property
    def fraction(self) -> float | None:
        """The share of the whole load that is done, from 0 to 1; ``None`` if it is not known."""
        if self.built:
            return _READ_SHARE + (1 - _READ_SHARE) * self.built
        return _READ_SHARE * min(self.bytes / self.bytes_total, 1) if self.bytes_total else None

    def __str__(self) -> str:
        if self.built:
            return f"{self.statements:,} statements, {self.built:.0%} built"
        total = f" of {_size(self.bytes_total)}" if self.bytes_total else ""
        return f"{_size(self.bytes)}{total} read, {self.statements:,} statements"


def _size(number: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if number < 1000 or unit == "GB":
            break
        number /= 1000
    return f"{number:.0f} {unit}" if unit == "B" else f"{number:.1f} {unit}"


class Display:
    """Where progress is shown. A context manager: at its end nothing of it remains."""

    def __init__(self) -> None:
        self._begun = time.monotonic()
        self._last = 0.0

    def __call__(self, read: int, total: int | None, statements: int, built: int, to_build: int) -> None:
        now = time.monotonic()
        if now - self._begun >= _SHOWN_AFTER and now - self._last >= _EVERY:
            self._last = now
            self.show(LoadProgress(read, total, statements, min(built / to_build, 1.0) if to_build else 0.0))

    def show(self, progress: LoadProgress) -> None:
        """Shows it."""

    def clear(self) -> None:
        """Removes what was shown."""

    def __enter__(self) -> Display:
        return self

    def __exit__(self, *_: object) -> None:
        if self._last:
            self.clear()


class Terminal(Display):
    """A line on standard error."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__()
        self._stream = stream
        self._length = 0

    def show(self, progress: LoadProgress) -> None:
        """Replaces the line."""
        line = str(progress)
        fraction = progress.fraction
        if fraction is not None:
            done = round(fraction * _WIDTH)
            line = f"{'█' * done}{'░' * (_WIDTH - done)} {fraction:4.0%}  {line}"
        self._stream.write("\r" + line.ljust(self._length))
        self._stream.flush()
        self._length = len(line)

    def clear(self) -> None:
        """Removes the line."""
        self._stream.write("\r" + " " * self._length + "\r")
        self._stream.flush()


class Notebook(Display):
    """A bar in the output of a cell."""

    def __init__(self, display: Callable[..., Any]) -> None:
        super().__init__()
        self._display = display
        self._handle: Any = None

    def show(self, progress: LoadProgress) -> None:
        """Replaces the bar."""
        fraction = progress.fraction
        value = "" if fraction is None else f' value="{fraction:.3f}"'
        markup = f'<progress max="1"{value}></progress> {progress}'
        self._put(_Markup(str(progress), markup))

    def clear(self) -> None:
        """Removes the bar."""
        self._put(_Markup("", ""))

    def _put(self, markup: _Markup) -> None:
        if self._handle is None:
            self._handle = self._display(markup, display_id=True)
        else:
            self._handle.update(markup)


class _Markup:
    """What a notebook displays, and its text."""

    def __init__(self, text: str, markup: str) -> None:
        self._text = text
        self._markup = markup

    def __repr__(self) -> str:
        return self._text

    def _repr_html_(self) -> str:
        return self._markup


class Caller(Display):
    """A function of the caller, which is called with a `LoadProgress` every 50 ms."""

    def __init__(self, function: Callable[[LoadProgress], Any]) -> None:
        super().__init__()
        self._function = function

    def __call__(self, read: int, total: int | None, statements: int, built: int, to_build: int) -> None:
        share = min(built / to_build, 1.0) if to_build else 0.0
        self._function(LoadProgress(read, total, statements, share))


def display(progress: bool | Callable[[LoadProgress], Any] | None) -> Display | None:
    """Where to show progress; ``None``: nowhere."""
    if callable(progress):
        return Caller(progress)
    if progress is False:
        return None
    notebook = _notebook()
    if notebook is not None:
        return Notebook(notebook)
    stream = sys.stderr
    if stream is None or not (progress or stream.isatty()):
        return None
    return Terminal(stream)


def _notebook() -> Callable[..., Any] | None:
    """The function that displays in a notebook, if this is one."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if shell is None or not hasattr(shell, "kernel"):
        return None
    from IPython.display import display as show

    function: Callable[..., Any] = show
    return function
