"""The way to one host: questions, scripts, files, its lock, its reboot, what goes wrong."""
