# Every image: settings of a container that is a quiet host with SSH access.
set -eu

# Units that would access the real kernel or devices, or run at random times.
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

# The SSH user of hosts without root login; has full sudo rights.
useradd --create-home --shell /bin/bash admin
printf 'admin ALL=(ALL) NOPASSWD: ALL\n' > /etc/sudoers.d/admin
chmod 440 /etc/sudoers.d/admin

# docker on cgroup v1: containers get a private cgroup namespace. No iptables: nothing else runs on the
# host, and each start would call it a hundred times.
if [ -x /usr/sbin/dockerd ]; then
    mkdir -p /etc/systemd/system/docker.service.d
    cat > /etc/systemd/system/docker.service.d/cgroup.conf << 'END'
[Service]
ExecStart=
ExecStart=/usr/sbin/dockerd --default-cgroupns-mode=private --iptables=false --ip6tables=false -H fd://
END
fi

# A container may not lower the OOM score of its processes below its own.
if [ -f /etc/containerd/config.toml ]; then
    sed -i 's|^\( *\)\[plugins."io.containerd.grpc.v1.cri"\]$|&\n\1  restrict_oom_score_adj = true|' /etc/containerd/config.toml
fi

# The initramfs contains nouveau if the kernel has it, as with a splash screen. It omits what only a real
# boot needs: a container does not boot from it, and each rebuild takes a second.
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

purge() { # remove packages of the base that an image does not have
    DEBIAN_FRONTEND=noninteractive apt-get -qq -y purge "$@" > /tmp/purge.log 2>&1 || {
        cat /tmp/purge.log
        return 1
    }
}
