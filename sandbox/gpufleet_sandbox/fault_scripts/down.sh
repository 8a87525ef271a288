# The mirror's machine answers, its server does not run.
on() { systemctl stop mirror; }
off() {
    systemctl start mirror
    curl -sfo /dev/null --retry 20 --retry-connrefused --retry-delay 1 http://localhost/
}
