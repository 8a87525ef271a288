# As after a power failure: dpkg has a journal file, and a package is unpacked but not configured.
on() {
    mkdir -p /var/lib/dpkg/updates
    dpkg-query -s psmisc | sed 's/^Status:.*/Status: install ok unpacked/' > /var/lib/dpkg/updates/0000
}
off() { dpkg --configure -a > /dev/null; }
