# remove_files.sh PATH...: remove files, and the folders of ours that they leave empty.
for path; do
    rm -f "$path" || exit 1
    case $path in
        *.service.d/gpufleet.conf) rmdir "$(dirname "$path")" 2>/dev/null; reload=yes ;;
    esac
done
[ -z "${reload:-}" ] || systemctl daemon-reload
exit 0
