# require_module.sh MODULE VERSION FLAVOUR BUILD MESSAGE: fail unless MODULE exists at VERSION for this kernel.
# FLAVOUR: open or proprietary
module=$1 version=$2 flavour=$3 build=$4 message=$5
kernel=$(uname -r)
have() {
    [ "$(modinfo -F version "$module" 2>/dev/null)" = "$version" ] || return
    licence=$(modinfo -F license "$module" 2>/dev/null)
    case $flavour:$licence in proprietary:NVIDIA) ;; proprietary:* | open:NVIDIA) return 1 ;; esac
}
have && exit 0
# an earlier run may have been stopped between the packages and the build
if [ "$build" = dkms ] && has dkms; then
    name=$(dkms status 2>/dev/null | sed -n "s|^\(nvidia[a-z-]*\)[/, ]*$version[,: ].*|\1|p" | head -n 1)
    # removed from DKMS, which adds its source again before it builds
    for source in /usr/src/nvidia*-"$version"/dkms.conf; do
        [ -z "$name" ] && [ -e "$source" ] || continue
        name=${source#/usr/src/}
        name=${name%-"$version"/dkms.conf}
    done
    if [ -n "$name" ]; then
        # by force: if another build was restored in its place, DKMS reports it as installed
        out=$(dkms install --force -m "$name" -v "$version" -k "$kernel" 2>&1)
        depmod "$kernel"
        have && exit 0
    fi
fi
log=$(find /var/lib/dkms/nvidia* -name make.log 2>/dev/null | head -n 1)
fail "$message" "dkms status: $(dkms status 2>&1 | tr '\n' ' ')" "headers: $(ls -d "/lib/modules/$kernel/build" 2>&1)" \
    "${out:-}" "$([ -n "$log" ] && tail -n 500 "$log")"
