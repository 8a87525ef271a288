"""Runtimes that a configuration names but does not define: it would be broken. Pure."""

from __future__ import annotations

from gpufleet.toolkit.config.containerd import BUILT_IN, OLD_DEFAULT
from gpufleet.toolkit.config.edits import Data, lookup
from gpufleet.toolkit.config.layers import PLACES

References = dict[str, str]  # name of a runtime -> the setting that uses it
# dockerd knows runc, and a shim by its name or path, without an entry
# (docs.docker.com/engine/daemon/alternative-runtimes).
_SHIM_MARKS = (".", "/")
# One of them is built into CRI-O, by its version (crio.conf(5), default_runtime).
_CRIO_BUILT_IN = ("runc", "crun")


def undefined(runtime: str, table: Data, fills_maps: bool) -> References:
    """The undefined names in one runtime's whole configuration, each with the setting.

    `fills_maps`: containerd keeps its built-in runc when a file names another one (2.0 and newer).
    """
    places = PLACES[runtime]
    default = str(lookup(table, places.default) or "")
    runtimes = lookup(table, places.runtimes) or {}
    if lookup(table, OLD_DEFAULT) and not fills_maps:
        return {}
    built_in = {
        "docker": default in ("", BUILT_IN) or any(mark in default for mark in _SHIM_MARKS),
        "containerd": default in ("", BUILT_IN) and (fills_maps or not runtimes),
        "crio": default in ("", *_CRIO_BUILT_IN),
    }[runtime]
    name = default or BUILT_IN
    return {} if built_in or name in runtimes else {name: places.default[-1]}
