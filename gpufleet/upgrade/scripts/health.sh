# health.sh SECONDS: GPUs that nvidia-smi lists within SECONDS.
printf 'gpus %s\n' "$(timeout -k 10 "$1" nvidia-smi -L 2>/dev/null | grep -c '^GPU ')"
exit 0
