"""Collects logs, versions and files of hosts and clusters in one archive, before a repair."""
