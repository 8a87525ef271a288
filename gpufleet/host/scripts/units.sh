# Shared by the scripts that enable units or change their files: no other lets systemd read its units again. When it
# does, containers lose GPUs that their runtime gave them without its knowledge:
# https://github.com/NVIDIA/nvidia-container-toolkit/issues/48 (2023-02-07)

# spare_containers: while containers have GPUs, package scripts that run later do not reach systemd: their systemctl
# changes files alone: https://systemd.io/ENVIRONMENT (SYSTEMD_OFFLINE; read 2026-11-27)
spare_containers() {
    [ -n "$(gpu_containers)" ] || return 0
    SYSTEMD_OFFLINE=1
    export SYSTEMD_OFFLINE
}

# enable_units, disable_units [--now] UNIT...: at the next boot; --no-reload is older than any systemd here
enable_units() { systemctl -q --no-reload enable "$@"; }
disable_units() { systemctl -q --no-reload disable "$@"; }

# is_stale UNIT: whether systemd has not read its files as they are. NeedDaemonReload overlooks the first drop-in of a
# loaded unit, whose folder was not there when systemd read its units.
is_stale() {
    [ "$(systemctl show -p NeedDaemonReload "$1")" != NeedDaemonReload=yes ] || return 0
    case $1 in *.*) folder=/etc/systemd/system/$1.d ;; *) folder=/etc/systemd/system/$1.service.d ;; esac
    known=$(systemctl show -p DropInPaths "$1")
    for path in "$folder"/*.conf; do
        [ -s "$path" ] || continue # an empty one masks another
        case " ${known#DropInPaths=} " in *" $path "*) ;; *) return 0 ;; esac
    done
    return 1
}

# read_units UNIT...: let systemd read units whose files were changed since it read them. While containers have GPUs
# it does not: then a line `reload waits UNIT` for each, and status 1.
read_units() {
    waits=0
    for unit; do
        is_stale "$unit" || continue
        if [ -z "$(gpu_containers)" ]; then systemctl daemon-reload; return; fi
        printf 'reload waits %s\n' "$unit"
        waits=1
    done
    return $waits
}
