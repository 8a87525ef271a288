"""GPU nodes and GPU clusters, provisioned, upgraded and verified with pyinfra."""

__version__ = "0.1.0"
