# An imitation of CentOS 7.9 with docker: real rpm and dnf (as yum), hidden apt and dpkg.
ln -s dnf /usr/bin/yum
rm -f /etc/os-release /usr/lib/os-release /etc/debian_version
cat > /usr/lib/os-release << 'END'
NAME="CentOS Linux"
VERSION="7 (Core)"
ID="centos"
ID_LIKE="rhel fedora"
VERSION_ID="7"
PRETTY_NAME="CentOS Linux 7 (Core)"
CPE_NAME="cpe:/o:centos:centos:7"
CENTOS_MANTISBT_PROJECT="CentOS-7"
CENTOS_MANTISBT_PROJECT_VERSION="7"
REDHAT_SUPPORT_PRODUCT="centos"
REDHAT_SUPPORT_PRODUCT_VERSION="7"
END
ln -s ../usr/lib/os-release /etc/os-release
echo "CentOS Linux release 7.9.2009 (Core)" > /etc/centos-release
ln -s centos-release /etc/redhat-release
ln -s centos-release /etc/system-release

# Unlike yum, Debian's dnf has a local repository, and skips unavailable repositories: disable both.
mkdir -p /etc/dnf/plugins /etc/yum.repos.d
printf '[main]\nenabled=0\n' > /etc/dnf/plugins/local.conf
find /usr/lib/python3/dist-packages/dnf-plugins -name '*.py' ! -name versionlock.py -delete # each costs every call
cat > /etc/dnf/dnf.conf << 'END'
[main]
gpgcheck=1
installonly_limit=3
clean_requirements_on_remove=False
best=True
skip_if_unavailable=False
END
rm -f /etc/yum.conf
ln -s dnf/dnf.conf /etc/yum.conf

# The base packages of an EL 7 in rpm's database; the files are Debian's.
base=$(mktemp -d)
package() { # name, version-release, additional lines of the spec
    printf 'Name: %s\nVersion: %s\nRelease: %s\nSummary: base of the sandbox host\nLicense: none\n%s\n%%description\nNone.\n%%files\n' \
        "$1" "${2%%-*}" "${2#*-}" "${3:-}" > "$base/$1.spec"
    rpmbuild --quiet -bb --define "_rpmdir $base" --define "_topdir $base" --target x86_64 "$base/$1.spec" > /dev/null
}
package centos-release 7-9.2009.2.el7 'Provides: redhat-release = 7.9
Provides: system-release = 7.9
Provides: system-release(releasever) = 7'
package bash 4.2.46-35.el7_9 'Provides: /bin/sh
Provides: /bin/bash'
package coreutils 8.22-24.el7_9.2
package glibc 2.17-326.el7_9
package systemd 219-78.el7_9.9
package kmod 20-28.el7
package dracut 033-572.el7
package kernel 3.10.0-1160.119.1.el7 'Provides: kernel-uname-r = 3.10.0-1160.119.1.el7.x86_64'
package gcc 4.8.5-44.el7
package make 3.82-24.el7
package docker-ce 20.10.24-3.el7
package containerd.io 1.6.20-3.1.el7
rpm -i --justdb --nodeps --force-debian "$base"/x86_64/*.rpm
rm -rf "$base"

# dracut instead of initramfs-tools.
ln -s /usr/lib/sim/dracut /usr/sbin/dracut
ln -s /usr/lib/sim/lsinitrd /usr/bin/lsinitrd
/usr/lib/sim/install-kernel 3.10.0-1160.119.1.el7.x86_64

# Do not hide unmkinitramfs: the simulated boot reads the image with it.
mkdir /usr/lib/hidden
for tool in /usr/bin/apt /usr/bin/apt-* /usr/bin/dpkg /usr/bin/dpkg-* /usr/sbin/dpkg-* /usr/bin/dselect \
    /usr/sbin/update-initramfs /usr/sbin/mkinitramfs /usr/bin/lsinitramfs /etc/debian_version; do
    if [ -e "$tool" ]; then mv "$tool" /usr/lib/hidden/; fi
done
rm -rf /etc/apt /etc/initramfs-tools
