# The host that serves the package mirror: Python, nothing of a GPU host.
purge docker.io containerd rpm dnf dnf-plugins-core dkms
