#!/bin/sh
# Imitation of nvidia-container-cli (the sandbox cannot build libnvidia-container, a C library): it
# reports its version and the host's devices, but cannot configure a container.
case "${1:-}" in
-V | --version) printf 'cli-version: @VERSION@\nlib-version: @VERSION@\n' ;;
list)
	for file in /dev/nvidiactl /dev/nvidia-uvm /dev/nvidia[0-9]* /usr/bin/nvidia-smi; do
		if [ -e "$file" ]; then echo "$file"; fi
	done
	;;
info)
	if [ ! -r /sys/module/nvidia/version ]; then
		echo "nvidia-container-cli: initialization error: nvml error: driver not loaded" >&2
		exit 1
	fi
	echo "NVRM version:   $(cat /sys/module/nvidia/version)"
	;;
*)
	echo "nvidia-container-cli: $*: this imitation cannot configure containers; use CDI mode" >&2
	exit 1
	;;
esac
