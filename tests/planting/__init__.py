"""Plant secrets in tests, and search for them in outputs, files and processes."""
