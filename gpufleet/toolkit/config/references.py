"""Runtimes that a configuration names but does not define: it would be broken. Pure.

Each function takes one runtime's whole configuration, all files together, and returns the
undefined names, each with the setting that uses it.
"""

from __future__ import annotations

from gpufleet.toolkit.config.containerd import BUILT_IN, cri_table
from gpufleet.toolkit.config.docker import flag_values
from gpufleet.toolkit.config.edits import Data, lookup

References = dict[str, str]  # name of a runtime -> the setting that uses it
# dockerd knows runc, and a shim by its name or path, without an entry
# (docs.docker.com/engine/daemon/alternative-runtimes).
_SHIM_MARKS = (".", "/")
# One of them is built into CRI-O, by its version (crio.conf(5), default_runtime).
_CRIO_BUILT_IN = ("runc", "crun")


def containerd(data: Data, fills_maps: bool) -> References:
    """Of the CRI plugin, as `runtimes.containerd.effective` gives it.

    `fills_maps`: runc stays built in when a file names another runtime (containerd 2.0 and newer).
    """
    table = cri_table(data)
    runtimes = lookup(table, ("containerd", "runtimes"), {})
    default = str(lookup(table, ("containerd", "default_runtime_name")) or BUILT_IN)
    built_in = default == BUILT_IN and (fills_maps or not runtimes)
    return {} if built_in or default in runtimes else {default: "default_runtime_name"}


def docker(data: Data, exec_start: str) -> References:
    """Of a daemon.json and dockerd's command line."""
    flags = flag_values(exec_start, "--default-runtime")
    default = str(data.get("default-runtime") or (flags[-1] if flags else BUILT_IN))
    added = [value.partition("=")[0] for value in flag_values(exec_start, "--add-runtime")]
    names = (BUILT_IN, *(lookup(data, ("runtimes",)) or {}), *added)
    shim = any(mark in default for mark in _SHIM_MARKS)
    return {} if shim or default in names else {default: "default-runtime"}


def crio(data: Data) -> References:
    """Of crio.conf and its drop-ins, as `runtimes.crio.effective` gives them."""
    default = str(lookup(data, ("crio", "runtime", "default_runtime")) or "")
    runtimes = lookup(data, ("crio", "runtime", "runtimes"), {})
    known = not default or default in _CRIO_BUILT_IN or default in runtimes
    return {} if known else {default: "default_runtime"}
