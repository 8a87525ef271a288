# On top of the real distribution's image: what a host needs, from the distribution's own archive.
set -eu
export DEBIAN_FRONTEND=noninteractive
apt-get -qq update
apt-get -qq -y --no-install-recommends install @PACKAGES@
# The simulated kernel was compiled on the machine below: it must run with this C library too.
refused=$(LD_PRELOAD=/usr/lib/sim/simkernel.so uname -r 2>&1 > /dev/null)
if [ -n "$refused" ]; then
    echo "$refused" >&2
    exit 1
fi
