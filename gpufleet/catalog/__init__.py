"""Compares the catalog with the sources of its facts, and writes what it lacks as a patch."""
