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

# read_units UNIT...: let systemd read units whose files were changed since it read them. While containers have GPUs
# it does not: then a line `reload waits UNIT` for each, and status 1.
read_units() {
    waits=0
    for unit; do
        [ "$(systemctl show -p NeedDaemonReload "$unit")" = NeedDaemonReload=yes ] || continue
        if [ -z "$(gpu_containers)" ]; then systemctl daemon-reload; return; fi
        printf 'reload waits %s\n' "$unit"
        waits=1
    done
    return $waits
}
