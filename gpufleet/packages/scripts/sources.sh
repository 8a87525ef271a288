# refusals TEXT: errors and warnings of apt about package lists, whose exit status is 0 even without a repository. Not
# those about a repository that apt reads: where its key is, how weak its signature is, that it is in two files.
# Sources (read 2026-11-29): https://wiki.debian.org/Teams/Apt/Sha1Removal, https://github.com/owntracks/recorder/issues/551
refusals() {
    printf '%s\n' "$1" | grep -E '^(E:|W:|Err:)' |
        grep -v -E '^W:.*(stored in legacy trusted.gpg|within a year|uses weak (digest )?algorithm|configured multiple times)'
}
# unreadable: why apt cannot read its sources, all of them together; "" if it can
unreadable() { apt-get indextargets --format '$(SITE)' 2>&1 >/dev/null | grep '^E:' | sort -u; }
