# finish.sh: let the package manager finish what an earlier run left half done. What cannot be finished as
# it is, the transaction that follows replaces, or tells why not.
has dpkg || exit 0
dpkg --configure -a --force-confdef --force-confold 2>&1
exit 0
