"""containerd on hosts where another role needs it."""
