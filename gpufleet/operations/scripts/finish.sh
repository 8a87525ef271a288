# finish.sh: let the package manager finish what an earlier run left half done.
if has dpkg; then
    dpkg --configure -a --force-confdef --force-confold
    apt-get -y -q -o Dpkg::Options::=--force-confdef -o Dpkg::Options::=--force-confold --fix-broken install
    exit
fi
exit 0
