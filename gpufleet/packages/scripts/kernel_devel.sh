# kernel_devel.sh RELEASE: the package with the headers of a kernel, whatever it is called: each says so itself.
# dnf 4 ends each line by itself, dnf 5 does not. Plugins print notes beside it.
dnf -q repoquery --whatprovides "kernel-devel-uname-r = $1" --qf '%{name}-%{version}-%{release}.%{arch}\n' 2>/dev/null |
    grep '^kernel[^ ]*$' | tail -n 1
exit 0
