"""containerd on hosts that other roles need it on."""
