"""A Kubernetes cluster: the way to it, its facts, its objects, one run at a time."""
