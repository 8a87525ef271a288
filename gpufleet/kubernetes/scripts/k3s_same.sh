# k3s_same.sh MESSAGE VERSION: fail where the program of a node is another version of k3s: it is not replaced.
has k3s || exit 0
said=$(k3s --version 2>&1)
case "$said" in "k3s version $2 "* | "k3s version $2") ;; *) fail "$1" "$said" ;; esac
