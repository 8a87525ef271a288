# What the checks read from the container runtimes, in one run of POSIX sh. Nothing is changed.
# $1 $2 $3: configuration files of docker, containerd, CRI-O; empty where a runtime is not managed.
seconds() { # UNIT: when it became active, in seconds since 1970
    date -d "$(systemctl show -p ActiveEnterTimestamp "$1" | cut -d= -f2)" +%s
}

running() { # UNIT COMMAND...: clients of a runtime that is down wait for it in vain
    unit=$1; shift
    if systemctl -q is-active "$unit"; then limit "$@"; else echo "$unit is not active"; return 1; fi
}

docker_sections() {
    section docker-config cat "$1"
    section docker-validate limit dockerd --validate --config-file "$1"
    section docker-info docker_info
    section docker-images running docker.service docker image ls --format '{{.Repository}}:{{.Tag}}'
}

docker_info() { running docker.service docker info --format '{{json .}}' 2>/dev/null; }

containerd_sections() {
    section containerd-config cat "$1"
    section containerd-dump containerd_dump "$1"
    section containerd-written containerd_written "$1"
    section containerd-started seconds "$containerd_unit"
    section containerd-plugins containerd_plugins "$1"
    section containerd-images running "$containerd_unit" ctr images ls -q
}

containerd_dump() { # only a refusal is worth standard error
    limit containerd --config "$1" config dump 2>/dev/null || limit containerd --config "$1" config dump
}

containerd_plugins() { # TYPE ID PLATFORMS STATUS of each, from the running daemon
    address=$(containerd_dump "$1" | awk '/^ *\[/ { server = /\[grpc\]|server\.v1\.grpc.\]/ }
        server && $1 == "address" { gsub(/["\047]/, "", $3); print $3; exit }')
    case "$containerd_unit" in k3s* | rke2*) address=/run/k3s/containerd/containerd.sock ;; esac
    running "$containerd_unit" ctr ${address:+-a "$address"} plugins ls
}

containerd_written() { # newest of the file and its drop-ins
    stat -c %Y "$1" "${1%/*}"/conf.d/*.toml "${1%/*}"/config.d/*.toml 2>/dev/null | sort -n | tail -n 1
}

crio_sections() {
    section crio-config cat "$1"
    section crio-validate limit crio config
    status='crio status' # before CRI-O 1.27 a program of its own (cri-o/cri-o#6557)
    if command -v crio-status >/dev/null; then status=crio-status; fi
    section crio-status running crio.service $status config
}

find_units() { # k3s and RKE2 run containerd themselves
    containerd_unit=containerd.service
    case "$1" in
    */k3s/*) PATH=$PATH:/var/lib/rancher/k3s/data/current/bin; containerd_unit=k3s.service; systemctl -q is-active k3s-agent && containerd_unit=k3s-agent.service ;;
    */rke2/*) PATH=$PATH:/var/lib/rancher/rke2/bin; containerd_unit=rke2-agent.service; systemctl -q is-active rke2-server && containerd_unit=rke2-server.service ;;
    esac
}

find_units "$2"
section runtime-services unit_states \
    docker.service "$containerd_unit" crio.service
section containerd-unit echo "$containerd_unit"
if [ -n "$1" ]; then docker_sections "$1"; fi
if [ -n "$2" ]; then containerd_sections "$2"; fi
if [ -n "$3" ]; then crio_sections "$3"; fi
