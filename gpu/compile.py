"""Compiles the device kernels with NVRTC, which needs neither a GPU nor a driver.

    compile.py check          compiles for all architectures; fails on warnings, stack frames and spills
    compile.py build FOLDER   the same, and writes a cubin for each architecture and PTX for later ones

NVRTC is taken from the folder VERVET_NVRTC, or from the wheel of a pinned version, which pip downloads once into
target/nvrtc. Exit status 3: there is no NVRTC.
"""

import ctypes
import os
import pathlib
import re
import subprocess
import sys
import zipfile

VERSION = "12.9.86"
ARCHITECTURES = ["sm_80", "sm_90", "sm_100", "sm_120"]
# Any later architecture, from drivers that know this version of PTX on.
PTX_ARCHITECTURE = "compute_80"
PTX_VERSION_MAX = (8, 8)

ROOT = pathlib.Path(__file__).resolve().parent.parent
KERNELS = ROOT / "crates/device/kernels"


def source(name, seen):
    """The text of a file with its includes in place, each once."""
    lines = []
    for line in (KERNELS / name).read_text().splitlines():
        include = re.match(r'#include "(.*)"', line)
        if include is None:
            if line != "#pragma once":
                lines.append(line)
        elif include[1] != "simulated.hpp" and include[1] not in seen:
            seen.add(include[1])
            lines.append(source(include[1], seen))
    return "\n".join(lines)


def library_folder(chosen):
    """A folder with libnvrtc.so.12, or None."""
    if chosen:
        return pathlib.Path(chosen)
    cache = ROOT / "target/nvrtc"
    found = list(cache.glob("**/libnvrtc.so.12"))
    if not found:
        cache.mkdir(parents=True, exist_ok=True)
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--retries", "1", "--timeout", "15"]
        pip += ["--no-deps", "--dest", str(cache)]
        if subprocess.run([*pip, f"nvidia-cuda-nvrtc-cu12=={VERSION}"], check=False).returncode != 0:
            return None
        for wheel in cache.glob("*.whl"):
            with zipfile.ZipFile(wheel) as files:
                files.extractall(cache)
        found = list(cache.glob("**/libnvrtc.so.12"))
    return found[0].parent if found else None


class Nvrtc:
    """The few functions of NVRTC that are needed."""

    def __init__(self, folder):
        # Found by name when the compiler starts.
        for builtins in folder.glob("libnvrtc-builtins.so.*"):
            ctypes.CDLL(str(builtins), mode=ctypes.RTLD_GLOBAL)
        self.library = ctypes.CDLL(str(folder / "libnvrtc.so.12"))

    def bytes_of(self, program, kind):
        size = ctypes.c_size_t()
        getattr(self.library, f"nvrtcGet{kind}Size")(program, ctypes.byref(size))
        buffer = ctypes.create_string_buffer(size.value)
        getattr(self.library, f"nvrtcGet{kind}")(program, buffer)
        return buffer.raw

    def compile(self, text, architecture, kind):
        """The compiled bytes (None if it failed), and the log."""
        program = ctypes.c_void_p()
        create = self.library.nvrtcCreateProgram
        if create(ctypes.byref(program), text.encode(), b"kernels.cu", 0, None, None) != 0:
            return None, "could not create a program"
        options = [f"--gpu-architecture={architecture}", "--std=c++17", "--ptxas-options=-v"]
        words = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
        result = self.library.nvrtcCompileProgram(program, len(options), words)
        log = self.bytes_of(program, "ProgramLog").rstrip(b"\0").decode()
        code = self.bytes_of(program, kind) if result == 0 else None
        self.library.nvrtcDestroyProgram(ctypes.byref(program))
        return code, log


def complaints(log):
    """What a log has that kernels must not have."""
    found = [line for line in log.splitlines() if "warning" in line or "error" in line]
    for line in log.splitlines():
        for count, what in re.findall(r"(\d+) bytes (stack frame|spill stores|spill loads)", line):
            if int(count) > 0:
                found.append(f"{count} bytes of {what}")
    return found


def main(arguments):
    if arguments[:1] not in (["check"], ["build"]) or len(arguments) != (1 if arguments[0] == "check" else 2):
        sys.exit(__doc__)
    folder = library_folder(os.environ.get("VERVET_NVRTC"))
    if folder is None or not (folder / "libnvrtc.so.12").is_file():
        print(f"skipped: there is no NVRTC {VERSION}; set VERVET_NVRTC to a folder with libnvrtc.so.12")
        sys.exit(3)
    target = pathlib.Path(arguments[1]) if len(arguments) == 2 else None
    if target is not None:
        target.mkdir(parents=True, exist_ok=True)
    nvrtc, text, failed = Nvrtc(folder), source("kernels.cu", {"kernels.cu"}), False
    for architecture in [*ARCHITECTURES, PTX_ARCHITECTURE]:
        kind = "PTX" if architecture == PTX_ARCHITECTURE else "CUBIN"
        code, log = nvrtc.compile(text, architecture, kind)
        found = complaints(log) if code is not None else [log]
        if kind == "PTX" and code is not None:
            version = re.search(rb"\.version (\d+)\.(\d+)", code)
            if version is None or (int(version[1]), int(version[2])) > PTX_VERSION_MAX:
                found.append(f"PTX of version {version and version[0].decode()}")
        registers = re.findall(r"entry function '(\w+)'.*?Used (\d+) registers", log, re.DOTALL)
        used = ", ".join(f"{name} {count} registers" for name, count in registers)
        print(f"{architecture}: {len(code or b'')} bytes {used}")
        for line in found:
            failed = True
            print(f"    {line}")
        if target is not None and code is not None:
            (target / f"kernels_{architecture}.{kind.lower()}").write_bytes(code)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main(sys.argv[1:])
