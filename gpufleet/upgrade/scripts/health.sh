# health.sh FOLDER SECONDS: GPUs that nvidia-smi lists within SECONDS, Xid errors in the kernel's log ("-" where it
# cannot be read), active units that use GPUs or run containers, and the run that was at work here last, by FOLDER.
folder=$1 seconds=$2
printf 'gpus %s\n' "$(timeout -k 10 "$seconds" nvidia-smi -L 2>/dev/null | grep -c '^GPU ')"
printf 'xids %s\n' "$(xids)"
active_units
printf 'run %s\n' "$(run_of "$folder")"
printf 'state %s\n' "$(state_of "$folder")"
exit 0
