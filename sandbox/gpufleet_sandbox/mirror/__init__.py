"""A signed local mirror with the layout of NVIDIA's: driver and toolkit packages, and archives.

`build(cache, progress)` writes the tree; `serve.py`, a standalone script, serves it.
"""

from gpufleet_sandbox.mirror.builder import SERVER, build

__all__ = ["SERVER", "build"]
