"""Findings of Kubernetes on hosts, by subject."""
