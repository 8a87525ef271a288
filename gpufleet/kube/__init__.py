"""Access to a Kubernetes cluster: its facts, its objects, and a lock for one run at a time."""
