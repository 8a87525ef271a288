"""One run of pyinfra: its command line, its connections, its report, its exit status."""
