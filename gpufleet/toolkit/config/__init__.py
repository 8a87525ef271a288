"""Configuration files of container runtimes: pure functions from text to text."""
