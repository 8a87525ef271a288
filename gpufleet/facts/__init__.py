"""What a host is: one command, and the typed facts that its answer is parsed into."""
