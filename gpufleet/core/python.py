"""Commands that start another Python of the same installation.

Unlike with `python -m` and `python -c`, modules in the working directory cannot shadow others.
"""

from __future__ import annotations

import sys
from pathlib import Path

_FOLDER = str(Path(__file__).parents[2])  # the folder of this package, even if it is not installed
_OURS = "import sys; "  # sys is built in: no file can shadow it
_BEFORE_311 = "del sys.path[0]; "  # the working directory
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
