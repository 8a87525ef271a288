# An imitation of Ubuntu 22.04 with docker.
purge rpm dnf dnf-plugins-core
rm -f /etc/os-release /usr/lib/os-release
cat > /usr/lib/os-release << 'END'
PRETTY_NAME="Ubuntu 22.04.5 LTS"
NAME="Ubuntu"
VERSION_ID="22.04"
VERSION="22.04.5 LTS (Jammy Jellyfish)"
VERSION_CODENAME=jammy
ID=ubuntu
ID_LIKE=debian
UBUNTU_CODENAME=jammy
END
ln -s ../usr/lib/os-release /etc/os-release
printf 'DISTRIB_ID=Ubuntu\nDISTRIB_RELEASE=22.04\nDISTRIB_CODENAME=jammy\nDISTRIB_DESCRIPTION="Ubuntu 22.04.5 LTS"\n' > /etc/lsb-release
echo bookworm/sid > /etc/debian_version
/usr/lib/sim/install-kernel 5.15.0-122-generic
