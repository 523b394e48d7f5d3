"""Errors of the database: one class for each kind of error, by what the caller can do about it."""

from __future__ import annotations

__all__ = [
    "VervetError",
    "QueryError",
    "InputError",
    "CorruptError",
    "IoError",
    "CancelledError",
    "DeadlineError",
    "MemoryLimitError",
    "UnsupportedError",
    "ConflictError",
    "ConstraintError",
    "UnavailableError",
    "InternalError",
]


class VervetError(Exception):
    """An error of the database.

    ``str(error)`` is the message and the hint. The message of an error in a text ends with the line of the
    text, and carets below the mistake.
    """

    message: str
    """What is wrong, and where."""
    hint: str | None
    """What to do about it."""
    line: int | None
    """Line of the mistake, from 1, if it is in a text."""
    column: int | None
    """Column of the mistake, in characters, from 1."""

    def __init__(
        self,
        message: str,
        hint: str | None = None,
        line: int | None = None,
        column: int | None = None,
    ) -> None:
        super().__init__(message, hint, line, column)
        self.message = message
        self.hint = hint
        self.line = line
        self.column = column

    def __str__(self) -> str:
        return self.message if self.hint is None else f"{self.message}\nhint: {self.hint}"


class QueryError(VervetError):
    """Correct the query."""


class InputError(VervetError):
    """Correct the input file or the argument."""


class CorruptError(VervetError):
    """Stored data is damaged: restore a backup, or load again."""


class IoError(VervetError):
    """The operating system refused a file operation."""


class CancelledError(VervetError):
    """The call was cancelled by ``Database.cancel``."""


class DeadlineError(VervetError):
    """The timeout has passed: raise it, or ask for less."""


class MemoryLimitError(VervetError):
    """The memory limit has been reached: raise it, or ask for less."""


class UnsupportedError(VervetError):
    """Valid, but not supported by Vervet."""


class ConflictError(VervetError):
    """The transaction conflicts with another one: run it again (``Database.transact`` does)."""


class ConstraintError(VervetError):
    """The transaction would violate a constraint: correct its data."""


class UnavailableError(VervetError):
    """The database is closed, read only, or owned by another process."""


class InternalError(VervetError):
    """A defect of Vervet: please report it."""
