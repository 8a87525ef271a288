"""Distributions, repositories, keys and transactions of the package managers."""
