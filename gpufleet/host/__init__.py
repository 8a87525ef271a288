"""Access to one host: questions, scripts, files, its lock, its reboot, its errors."""
