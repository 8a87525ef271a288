"""Judges hosts and clusters: what is wrong, and which command comes next. Pure."""
