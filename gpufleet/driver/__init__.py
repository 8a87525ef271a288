"""NVIDIA's driver: choice, packages, kernel modules."""
