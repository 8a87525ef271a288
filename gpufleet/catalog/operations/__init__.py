"""Reads the sources of the catalog's facts."""
