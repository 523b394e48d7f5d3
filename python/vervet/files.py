"""Paths of local files, and errors for what is none."""

from __future__ import annotations

import os
import re
from typing import Any

from .errors import InputError

__all__: list[str] = []

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/+(?:[^/@]*@)?([^?#]*)")
"""A URL with a scheme of at least two letters: one letter is a drive. A path object has one slash."""
_READ_HINT = (
    'read it by pyarrow: db.load(pyarrow.dataset.dataset("s3://…", format="parquet").scanner().to_reader()); '
    "see Object storage in the guide"
)
_DOWNLOAD_HINT = "download it, and load the file"
WRITE_HINT = (
    "write its stream by pyarrow: pyarrow.parquet.write_table(result.arrow(), path, filesystem=…); "
    "see Object storage in the guide"
)


def local_path(path: str | os.PathLike[str], what: str, hint: str) -> str:
    """A path of the operating system.

    :param what: what is at the path, with its article.
    :param hint: what to do about a URL.
    :raises InputError: the path is a URL, which is shown without its user and its query.
    """
    text = os.fspath(path)
    url = _URL.match(text) if isinstance(text, str) else None
    if url is not None and not os.path.lexists(f"{url[1]}:"):
        raise InputError(f"{url[1]}://{url[2]} is a URL: {what} has a path of this machine", hint)
    return text


def source_path(source: Any) -> str:
    """The path of a file to be loaded.

    :raises InputError: it is a URL.
    :raises TypeError: it is neither a path nor a table.
    """
    if not isinstance(source, (str, os.PathLike)):
        message = f"{type(source).__name__} is neither a path nor a table with __arrow_c_stream__"
        if callable(getattr(source, "scanner", None)):
            message += ": load its stream, .scanner().to_reader()"
        elif callable(getattr(source, "to_reader", None)):
            message += ": load its stream, .to_reader()"
        raise TypeError(message)
    is_download = os.fspath(source).startswith(("http:", "https:", "ftp:"))
    return local_path(source, "a file to load", _DOWNLOAD_HINT if is_download else _READ_HINT)
