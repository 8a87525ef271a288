# kubeadm_images.sh FOLDER NAME: `image NAME` for each image that the kubeadm in a package asks for, in its own version;
# `error TEXT` without an answer. The package is the file NAME somewhere below FOLDER. Nothing is installed. Only for
# packages/in_copy.sh: other processes do not see its mount.
folder=$1/kubeadm file=$(find "$1" -type f -name "$2" | head -n 1)
mkdir -p "$folder"
mount --bind "$folder" "$folder" && mount -o remount,bind,exec "$folder" # /var/tmp may be noexec
case $2 in
*.rpm) (cd "$folder" && rpm2cpio "$file" | cpio -id --quiet ./usr/bin/kubeadm) ;;
*) dpkg-deb --fsys-tarfile "$file" | tar -x -C "$folder" ./usr/bin/kubeadm ;;
esac
kubeadm=$folder/usr/bin/kubeadm
version=$("$kubeadm" version -o short 2>&1) && out=$("$kubeadm" config images list --kubernetes-version "$version" 2>&1)
if [ $? -ne 0 ] || ! printf '%s\n' "$out" | grep -q '^[a-z0-9.-]*/'; then
    printf 'error kubeadm lists no images: %s\n' "$(printf '%s\n' "${out:-$version}" | tail -n 1)"
    exit 0
fi
printf '%s\n' "$out" | sed -n 's,^[a-z0-9.-]*/,image &,p'
exit 0
