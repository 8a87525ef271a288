# The host that serves the package mirror: Python, without the packages of a GPU host.
purge docker.io containerd rpm dnf dnf-plugins-core dkms
