# activate.sh UNIT VERB KIND SOCKET NAME MESSAGE SPARE [PATH BACKUP]...: reload or restart UNIT, a runtime
# of the KIND docker, containerd (which listens at SOCKET) or crio. Afterwards it must
# report to work as before, and to have the runtime NAME ("": none). Otherwise each PATH is restored from
# BACKUP (no BACKUP: removed), and UNIT is started with that. With SPARE, running docker containers are an
# error with that text: each PATH is restored and UNIT is not restarted.
unit=$1 verb=$2 kind=$3 socket=$4 name=$5 message=$6 spare=$7; shift 7

put_back() { # PATH BACKUP...
    while [ $# -gt 1 ]; do
        target=$(readlink -f "$1")
        if [ -e "$2" ]; then cp -p "$2" "$target"; else rm -f "$target"; fi
        shift 2
    done
}

works() { # what answers now, a word for each part
    case $kind in
        docker) timeout -k 10 30 docker info >/dev/null 2>&1 && echo docker-info ;;
        containerd) # the plugins that a kubelet talks to: TYPE ID PLATFORMS STATUS
            [ -n "$socket" ] && has ctr && ctr -a "$socket" plugins ls 2>/dev/null |
                awk '($1 ~ /cri/ || $2 == "cri") && $NF == "ok" { print $1 "/" $2 }' ;;
    esac
}
knows() { # whether a docker that answers serves the runtime NAME; the others have printed it before
    [ "$kind" = docker ] && [ -n "$name" ] || return 0
    format='{{range $name, $entry := .Runtimes}}{{println $name}}{{end}}'
    names=$(timeout -k 10 30 docker info --format "$format" 2>/dev/null) || return 0
    printf '%s\n' "$names" | grep -qxF "$name"
}
missing() { # what worked before and does not now, or what should be new and is not
    systemctl is-active -q "$unit" || echo "$unit"
    now=$(works)
    for part in $before; do
        printf '%s\n' "$now" | grep -qxF "$part" || echo "$part"
    done
    knows || echo "runtime $name"
}

if [ -n "$spare" ]; then
    containers=$(docker_containers)
    if [ -n "$containers" ]; then put_back "$@"; fail "$spare" "$containers"; fi
fi
# docker keeps containers by a live-restore that it has read: one that came after its start is read by a reload
needs_docker() {
    case $kind in
        docker) true ;;
        containerd) systemctl show docker.service -p Requires -p BindsTo 2>/dev/null | grep -q 'containerd\.service' ;;
        *) false ;;
    esac
}
live() { timeout -k 10 30 docker info --format '{{.LiveRestoreEnabled}}' 2>/dev/null; }
if [ "$verb" = restart ] && needs_docker && grep -qs '"live-restore"[[:space:]]*:[[:space:]]*true' /etc/docker/daemon.json &&
    [ "$(live)" = false ] && systemctl reload docker.service 2>/dev/null; then
    tries=0
    while [ "$(live)" = false ] && [ $tries -lt 50 ]; do tries=$((tries + 1)); sleep 0.2; done
fi
before=$(works)
systemctl reset-failed "$unit" 2>/dev/null
systemctl "$verb" "$unit"
tries=0
# a reload takes effect with a delay
while lost=$(missing); [ -n "$lost" ] && [ "$verb" = reload ] && [ $tries -lt 50 ]; do
    tries=$((tries + 1))
    sleep 0.2
done
[ -n "$lost" ] || exit 0
why=$(journalctl -u "$unit" -n 8 --no-pager -o cat 2>&1)
if [ $# -gt 0 ]; then
    put_back "$@"
    systemctl reset-failed "$unit" 2>/dev/null
    systemctl restart "$unit"
fi
name=''
rest=$(missing)
fail "$message" "$why" "not as before: $(printf '%s\n' "$lost" | tr '\n' ' ')" \
    "$unit is now: $(systemctl is-active "$unit")${rest:+; still missing: $(printf '%s\n' "$rest" | tr '\n' ' ')}"
