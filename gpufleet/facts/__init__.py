"""Facts of a host: one command, and the types that its output is parsed into."""
