"""Bundles: everything that the hosts and clusters of an inventory need, as files in a folder."""
