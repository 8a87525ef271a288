"""Takes nodes of a cluster out of service, evicts their pods, and returns them."""
