"""Reads clusters, and writes the files of a repository."""
