# On top of the real distribution's image: the packages of a host, from the distribution's archive.
set -eu
export DEBIAN_FRONTEND=noninteractive
apt-get -qq update
apt-get -qq -y --no-install-recommends install @PACKAGES@
# The simulated kernel was compiled outside this container: it must also run with this C library.
refused=$(LD_PRELOAD=/usr/lib/sim/simkernel.so uname -r 2>&1 > /dev/null)
if [ -n "$refused" ]; then
    echo "$refused" >&2
    exit 1
fi
