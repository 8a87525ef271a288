"""One run of pyinfra: its command line, its report, its exit status."""
