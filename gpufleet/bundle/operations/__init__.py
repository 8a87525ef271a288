"""Reads hosts, and writes the files of a bundle."""
