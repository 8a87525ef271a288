"""NVIDIA's driver: which one, its packages, its kernel modules."""
