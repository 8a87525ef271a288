# The mirror's host is up, but its server is stopped.
on() { systemctl stop mirror; }
off() {
    systemctl start mirror
    curl -sfo /dev/null --retry 20 --retry-connrefused --retry-delay 1 http://localhost/
}
