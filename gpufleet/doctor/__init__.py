"""Judges hosts and clusters: a verdict, its cause, and the next command. Pure."""
