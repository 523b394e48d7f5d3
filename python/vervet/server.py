"""The HTTP server of an open database: the web console, SPARQL and Gremlin endpoints."""

from __future__ import annotations

import html
import time
from types import TracebackType

from . import _vervet

__all__ = ["Server"]

_WAIT = 0.2
"""Seconds between two looks at a server that is waited for."""


class Server:
    """A running server, the result of ``Database.serve``. A ``with`` statement stops it at its end.

    The server reads and writes the open database itself, so its clients and this process see each other's
    commits. It ends with the database. Its limits are those of ``vervet serve``.
    """

    __slots__ = ("_core", "_database")

    def __init__(self, core: _vervet.Server, database: _vervet.Database) -> None:
        self._core = core
        # A database that nothing else refers to is served as long as there is its server.
        self._database = database

    @property
    def url(self) -> str:
        """The address of the console; ``/query`` and ``/update`` below it are the endpoints of SPARQL,
        ``/gremlin`` that of Gremlin."""
        host, port = self._core.address
        return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"

    @property
    def port(self) -> int:
        """The port."""
        return self._core.address[1]

    @property
    def running(self) -> bool:
        """Whether it has not ended."""
        return self._core.is_running

    def stop(self) -> None:
        """Stops it: requests under way have ten seconds to end."""
        self._core.stop()

    def wait(self) -> None:
        """Waits until it has ended. Ctrl-C stops it."""
        try:
            while self.running:
                time.sleep(_WAIT)
        except KeyboardInterrupt:
            self.stop()

    def __enter__(self) -> Server:
        return self

    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def __repr__(self) -> str:
        return f"<vervet.Server at {self.url}>" if self.running else "<stopped vervet.Server>"

    def _repr_html_(self) -> str:
        if not self.running:
            return html.escape(repr(self))
        return f'<a href="{self.url}" target="_blank">Console at {self.url}</a>'
