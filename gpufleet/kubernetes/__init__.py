"""Kubernetes on hosts: kubeadm, its packages, the network between pods."""
