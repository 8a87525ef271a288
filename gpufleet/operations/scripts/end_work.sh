# end_work.sh: end the processes that use the GPUs; what does not end in 10 seconds is killed.
# The driver's own daemons and gpufleet's exporter are services: unload.sh stops those.
container=$(cat /run/gpufleet-dcgm-exporter.cid 2>/dev/null) || container=none
ours() { grep -qsE "/nvidia-dcgm-exporter\.service|$container" "/proc/$1/cgroup"; }
work() {
    find /proc/[0-9]*/fd -maxdepth 1 -lname '/dev/nvidia*' -printf '%h\n' 2>/dev/null | sort -u |
        while IFS=/ read -r _ _ pid _; do
            case $(cat "/proc/$pid/comm" 2>/dev/null) in
                nvidia-persiste | nv-fabricmanage | nv-hostengine | '') ;;
                *) ours "$pid" || echo "$pid" ;;
            esac
        done
}
signal() {
    for pid; do
        printf '%s %s (%s)\n' "$verb" "$(cat "/proc/$pid/comm" 2>/dev/null)" "$pid"
        kill "-$verb" "$pid" 2>/dev/null
    done
}
verb=TERM
# process numbers have no spaces: splitting is meant
# shellcheck disable=SC2046
signal $(work)
tries=0
while [ -n "$(work)" ] && [ $tries -lt 20 ]; do
    tries=$((tries + 1))
    sleep 0.5
done
verb=KILL
# shellcheck disable=SC2046
signal $(work)
exit 0
