"""Secrets that tests plant, and where they are looked for: outputs, files and processes."""
