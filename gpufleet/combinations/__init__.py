"""Versions that are known not to work together, as data, and which of them a host has. Pure."""
