# An imitation of Ubuntu 24.04 with containerd and without docker.
purge rpm dnf dnf-plugins-core docker.io
rm -rf /etc/docker /etc/systemd/system/docker.service.d
rm -f /etc/os-release /usr/lib/os-release
cat > /usr/lib/os-release << 'END'
PRETTY_NAME="Ubuntu 24.04.1 LTS"
NAME="Ubuntu"
VERSION_ID="24.04"
VERSION="24.04.1 LTS (Noble Numbat)"
VERSION_CODENAME=noble
ID=ubuntu
ID_LIKE=debian
UBUNTU_CODENAME=noble
END
ln -s ../usr/lib/os-release /etc/os-release
printf 'DISTRIB_ID=Ubuntu\nDISTRIB_RELEASE=24.04\nDISTRIB_CODENAME=noble\nDISTRIB_DESCRIPTION="Ubuntu 24.04.1 LTS"\n' > /etc/lsb-release
echo trixie/sid > /etc/debian_version
/usr/lib/sim/install-kernel 6.8.0-45-generic
