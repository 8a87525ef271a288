"""Reads evidence from hosts and clusters."""
