"""NVIDIA's container toolkit, the container runtimes and CDI."""
