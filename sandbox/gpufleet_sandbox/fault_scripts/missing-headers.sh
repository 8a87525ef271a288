# No kernel headers can be installed from the archive.
APT=/etc/apt/preferences.d/00-no-headers
on() {
    if [ -d /etc/apt/preferences.d ]; then
        printf 'Package: linux-headers-*\nPin: release *\nPin-Priority: -1\n' > $APT
    else
        grep -q '^exclude=kernel-devel' /etc/dnf/dnf.conf || echo 'exclude=kernel-devel*' >> /etc/dnf/dnf.conf
    fi
}
off() {
    if [ -d /etc/apt/preferences.d ]; then
        rm -f $APT
    else
        sed -i '/^exclude=kernel-devel/d' /etc/dnf/dnf.conf
    fi
}
