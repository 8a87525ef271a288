# Every image: what a container needs to be a quiet host that is reached by SSH.
set -eu

# Units that would reach through to the real kernel or devices, or do things at random times.
for unit in systemd-udevd.service systemd-udevd-control.socket systemd-udevd-kernel.socket \
    systemd-udev-trigger.service systemd-sysctl.service systemd-random-seed.service \
    systemd-binfmt.service console-getty.service getty.target \
    apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer \
    e2scrub_reap.service fstrim.timer motd-news.timer proc-sys-fs-binfmt_misc.automount; do
    ln -sf /dev/null "/etc/systemd/system/$unit"
done

mkdir -p /etc/ssh/sshd_config.d
cat > /etc/ssh/sshd_config.d/sandbox.conf << 'END'
HostKey /etc/sim/ssh_host_ed25519_key
AuthorizedKeysFile /etc/sim/authorized_keys
StrictModes no
PermitRootLogin prohibit-password
PasswordAuthentication no
UseDNS no
LogLevel VERBOSE
MaxSessions 100
MaxStartups 200:30:400
END
rm -f /etc/ssh/ssh_host_*

# Who logs in where root does not, and may do everything by sudo.
useradd --create-home --shell /bin/bash admin
printf 'admin ALL=(ALL) NOPASSWD: ALL\n' > /etc/sudoers.d/admin
chmod 440 /etc/sudoers.d/admin

# docker on a machine with the old control groups: its containers get their own view of them. They are
# alone on their host: a hundred calls of iptables at each start would be for nothing.
if [ -x /usr/sbin/dockerd ]; then
    mkdir -p /etc/systemd/system/docker.service.d
    cat > /etc/systemd/system/docker.service.d/cgroup.conf << 'END'
[Service]
ExecStart=
ExecStart=/usr/sbin/dockerd --default-cgroupns-mode=private --iptables=false --ip6tables=false -H fd://
END
fi

# The initramfs takes nouveau along where the kernel has it, as one with a splash screen does. What only
# a real boot needs is left out: a container does not boot from it, and each rebuild costs a second.
sed -i 's/^COMPRESS=.*/COMPRESS=gzip/' /etc/initramfs-tools/initramfs.conf
printf 'MODULES=list\nBUSYBOX=n\nCOMPRESSLEVEL=1\n' > /etc/initramfs-tools/conf.d/sandbox
find /usr/share/initramfs-tools/hooks /usr/share/initramfs-tools/scripts/*/ -type f ! -name kmod -delete
cat > /usr/share/initramfs-tools/hooks/display << 'END'
#!/bin/sh
if [ "$1" = prereqs ]; then exit 0; fi
. /usr/share/initramfs-tools/hook-functions
if modinfo -k "$version" nouveau > /dev/null 2>&1; then manual_add_modules nouveau; fi
END
chmod +x /usr/share/initramfs-tools/hooks/display
ln -sf /usr/lib/sim/mokutil /usr/bin/mokutil

rm -f /etc/apt/sources.list /etc/apt/sources.list.d/* /etc/apt/apt.conf.d/99mmdebstrap
rm -rf /var/lib/apt/lists/* /etc/machine-id
: > /etc/machine-id

purge() { # packages of this distribution that an image does not have
    DEBIAN_FRONTEND=noninteractive apt-get -qq -y purge "$@" > /tmp/purge.log 2>&1 || {
        cat /tmp/purge.log
        return 1
    }
}
