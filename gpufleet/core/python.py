"""Commands that start another Python of the same installation, and the place of an error in a
user's Python file.

Unlike with `python -m` and `python -c`, modules in the working directory cannot shadow others.
"""

from __future__ import annotations

import re
import sys
import sysconfig
import traceback
from pathlib import Path

_FOLDER = str(Path(__file__).parents[2])  # the folder of this package, even if it is not installed
_OURS = "import sys; "  # sys is built in: no file can shadow it
_BEFORE_311 = "del sys.path[0]; "  # the working directory
_LIBRARIES = tuple(sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib"))
_FRAME = re.compile(r'\s*File "([^"]+)", line (\d+)')
_MODULE = "import runpy; runpy.run_module({name!r}, run_name='__main__', alter_sys=True)"


def python_module(name: str) -> list[str]:
    """The command that runs a module, like `python -m NAME`."""
    if sys.version_info >= (3, 11):
        return [sys.executable, "-P", "-m", name]
    return [sys.executable, "-c", _OURS + _BEFORE_311 + _MODULE.format(name=name)]


def python_code(code: str) -> list[str]:
    """The command that runs one line of code. The code may import this package."""
    ours = f"sys.path.append({_FOLDER!r}); {code}"
    if sys.version_info >= (3, 11):
        return [sys.executable, "-P", "-c", _OURS + ours]
    return [sys.executable, "-c", _OURS + _BEFORE_311 + ours]


def error_place(error: BaseException | str) -> str:
    """` (FILE, line N)` of the last frame in a user's file, or "" without one.

    `error`: an exception, or a printed traceback, of which only file names and numbers are read.
    """
    if isinstance(error, str):
        frames = [(found[1], found[2]) for found in map(_FRAME.match, error.splitlines()) if found]
    else:
        stack = traceback.extract_tb(error.__traceback__)
        frames = [(frame.filename, str(frame.lineno)) for frame in stack]
    others = ("<", str(Path(__file__).parents[1]), *_LIBRARIES)
    own = [frame for frame in frames if not frame[0].startswith(others)]
    return f" ({own[-1][0]}, line {own[-1][1]})" if own else ""
