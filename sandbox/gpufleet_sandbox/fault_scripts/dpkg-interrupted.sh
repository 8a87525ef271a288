# As after a power cut: a journal file of dpkg, and a package that is unpacked only.
on() {
    mkdir -p /var/lib/dpkg/updates
    dpkg-query -s psmisc | sed 's/^Status:.*/Status: install ok unpacked/' > /var/lib/dpkg/updates/0000
}
off() { dpkg --configure -a > /dev/null; }
