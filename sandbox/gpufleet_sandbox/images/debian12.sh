# Debian 12 with docker and containerd, like the base.
purge rpm dnf dnf-plugins-core
/usr/lib/sim/install-kernel 6.1.0-99-amd64
