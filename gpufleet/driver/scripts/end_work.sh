# end_work.sh: end the processes that use the GPUs; what does not end in 10 seconds is killed.
# The driver's own daemons and gpufleet's exporter are services: unload.sh stops those.
signal() {
    for pid; do
        printf '%s %s (%s)\n' "$verb" "$(cat "/proc/$pid/comm" 2>/dev/null)" "$pid"
        kill "-$verb" "$pid" 2>/dev/null
    done
}
verb=TERM
# process numbers have no spaces: splitting is meant
# shellcheck disable=SC2046
signal $(gpu_processes)
tries=0
while [ -n "$(gpu_processes)" ] && [ $tries -lt 20 ]; do
    tries=$((tries + 1))
    sleep 0.5
done
verb=KILL
# shellcheck disable=SC2046
signal $(gpu_processes)
exit 0
