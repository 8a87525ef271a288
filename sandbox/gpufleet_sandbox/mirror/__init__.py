"""A signed local mirror laid out as NVIDIA's: driver and toolkit packages, and archives.

`build(cache, progress)` writes the tree; `serve.py`, which runs by itself, serves it.
"""

from gpufleet_sandbox.mirror.builder import SERVER, build

__all__ = ["SERVER", "build"]
