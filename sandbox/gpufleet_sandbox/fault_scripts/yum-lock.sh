# The lock files of yum and dnf contain the ID of a running process.
LOCKS="/var/run/yum.pid /var/cache/dnf/metadata_lock.pid /var/cache/dnf/download_lock.pid
    /var/lib/dnf/rpmdb_lock.pid"
on() {
    systemd-run -q --collect --unit=sim-lock sleep infinity
    pid=$(systemctl show -P MainPID sim-lock)
    mkdir -p /var/cache/dnf /var/lib/dnf
    for file in $LOCKS; do printf %s "$pid" > "$file"; done
}
off() {
    if systemctl -q is-active sim-lock; then systemctl stop sim-lock; fi
    rm -f $LOCKS
}
