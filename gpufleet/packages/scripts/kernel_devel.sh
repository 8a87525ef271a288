# kernel_devel.sh RELEASE: the package with the headers of a kernel, whatever it is called: each says so itself.
dnf -q repoquery --whatprovides "kernel-devel-uname-r = $1" --qf '%{name}-%{version}-%{release}.%{arch}\n' 2>/dev/null |
    tail -n 1
exit 0
