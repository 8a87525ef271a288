# require_module.sh MODULE VERSION BUILD MESSAGE: fail unless MODULE exists at VERSION for this kernel.
module=$1 version=$2 build=$3 message=$4
kernel=$(uname -r)
have() { [ "$(modinfo -F version "$module" 2>/dev/null)" = "$version" ]; }
have && exit 0
# an earlier run may have been stopped between the packages and the build
if [ "$build" = dkms ] && has dkms; then
    name=$(dkms status 2>/dev/null | sed -n "s|^\(nvidia[a-z-]*\)[/, ]*$version[,: ].*|\1|p" | head -n 1)
    if [ -n "$name" ]; then
        # by force: if another build was restored in its place, DKMS reports it as installed
        out=$(dkms install --force -m "$name" -v "$version" -k "$kernel" 2>&1)
        depmod "$kernel"
        have && exit 0
    fi
fi
log=$(find /var/lib/dkms/nvidia* -name make.log 2>/dev/null | head -n 1)
fail "$message" "dkms status: $(dkms status 2>&1 | tr '\n' ' ')" "headers: $(ls -d "/lib/modules/$kernel/build" 2>&1)" \
    "${out:-}" "$([ -n "$log" ] && tail -n 5 "$log")"
