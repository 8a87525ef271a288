# finish.sh: let the package manager finish an interrupted transaction. What cannot be finished, the
# next transaction replaces, or reports why not.
has dpkg || exit 0
spare_containers
dpkg --configure -a --force-confdef --force-confold 2>&1
exit 0
