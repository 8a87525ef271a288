"""k3s in place of kubeadm: what a host gets and what stops it. Pure, and on paper alone."""
