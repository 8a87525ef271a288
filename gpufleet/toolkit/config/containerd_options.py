"""The options of a containerd runtime. containerd ignores the case of their names. Pure.

containerd writes the options as TOML, names in order, and reads them into a struct
(https://github.com/pelletier/go-toml, v2, 2026-11): the last of several spellings wins.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from gpufleet.formats.edits import Data, lookup_path

BINARY_NAME_OPTION = "BinaryName"
DRIVER = "SystemdCgroup"


def options_of(runtime: Data) -> Data:
    """The options of a runtime, or {}."""
    options = lookup_path(runtime, ("options",))
    return options if isinstance(options, dict) else {}


def option_spellings(runtime: Data, name: str) -> tuple[str, ...]:
    """The spellings of an option in a runtime. The last one wins."""
    return tuple(sorted(key for key in options_of(runtime) if key.lower() == name.lower()))


def read_option(runtime: Data, name: str) -> Any:
    """The value of an option, or None if it is not set."""
    keys = option_spellings(runtime, name)
    return options_of(runtime)[keys[-1]] if keys else None


def with_option(runtime: Data, name: str, value: Any) -> Data:
    """The runtime with an option under this very name, in place of all its spellings."""
    others = {k: v for k, v in options_of(runtime).items() if k.lower() != name.lower()}
    return {**runtime, "options": {**others, name: value}}


def respell_options(runtime: Data, names: Iterable[str]) -> Data:
    """The runtime with its options under these names, to compare it with another one."""
    for name in names:
        if option_spellings(runtime, name):
            runtime = with_option(runtime, name, read_option(runtime, name))
    return runtime
