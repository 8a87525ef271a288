# Free space. Parsed by identity.py.
stat -f -c '%a %S %n' / /boot /var /usr /tmp /var/lib/containerd
