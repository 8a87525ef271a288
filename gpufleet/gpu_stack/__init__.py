"""The GPU stack of a cluster: its releases in order, and NVIDIA's GPU Operator."""
