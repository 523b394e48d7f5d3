"""The types of the package: the stubs of the native module match it, and the package is typed throughout."""

import importlib.util
import os
import pathlib
import subprocess
import sys

import pytest

import vervet

needs_mypy = pytest.mark.skipif(importlib.util.find_spec("mypy") is None, reason="mypy is not installed")
PYTHON = pathlib.Path(__file__).resolve().parent.parent


def run(tmp_path, *arguments):
    folder = str(pathlib.Path(vervet.__file__).parent.parent)
    command = [sys.executable, "-m", *arguments]
    environment = {**os.environ, "MYPYPATH": folder, "MYPY_CACHE_DIR": str(tmp_path)}
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@needs_mypy
def test_stubs(tmp_path):
    run(tmp_path, "mypy.stubtest", "vervet._vervet", "--ignore-disjoint-bases")


@needs_mypy
def test_types(tmp_path):
    options = ["--strict", "--ignore-missing-imports", "--follow-imports=silent"]
    run(tmp_path, "mypy", *options, "-p", "vervet")


def test_the_package_is_typed():
    assert (pathlib.Path(vervet.__file__).parent / "py.typed").exists()
    for name in vervet.__all__:
        assert getattr(vervet, name).__doc__, f"{name} has no documentation"
