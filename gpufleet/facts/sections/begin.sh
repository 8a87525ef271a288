# Begins the command that prints what a host is. script.py joins to it the files of SECTIONS, in
# that order, as one function; each prints the section of its name, which the Python module beside
# it reads. A section may use what those before it have set; the first line of each file names that.
#
# Runs as `sh -c` on hosts without Python: POSIX sh, the coreutils, grep, awk and sed of EL 7.
# A process costs about a millisecond, so one process serves many items and the shell's own
# globs and `read` do the rest. Comment lines and leading blanks are removed before it is sent.
# Six variables are set before: `mark` begins the line above every section and is the whole of the
# last line; `configs` names further files to print, one per line; `ports` are TCP ports in
# hexadecimal, separated by |, whose listeners are reported; `words` are dpkg=WORD and rpm=WORD, the
# words in ID and ID_LIKE of /etc/os-release that say how packages are kept; `mls` and `kos` are regular
# expressions of the packages that usually have the driver's library and its modules.
# Every section is printed, empty or not: a missing one means that the output was cut off. What
# stands outside of them, for example what a user's .bashrc prints, is not read.
#
# The output goes through tr because pyinfra refuses a line that is not UTF-8; the content of
# files is in base64, so no byte of it is lost. tr also makes one line of it, in which a record
# separator (octal 36) ends each of these: pyinfra takes as long for an empty line as for a long one.

LC_ALL=C
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin
export LC_ALL PATH
exec 2>/dev/null
nl='
'
blank=$IFS

section() { printf '\n%s%s\n' "$mark" "$1"; }
# say WORD...: one line. echo would not do: dash's makes a line break of \n in a process's name.
say() { printf '%s\n' "$*"; }
have() { command -v "$1" >/dev/null; }

# The functions use variables that nothing else does: sh has no local ones.

# line FILE: the first line of a file, in $line; empty where there is none.
line() {
    line=
    IFS= read -r line <"$1"
}

# group FILE: the control group that systemd keeps, in $group; empty where there is none.
group() {
    group=
    while IFS=: read -r number names group; do
        case $names in '' | name=systemd) return ;; esac
    done <"$1"
    group=
}

# exist PATH...: those of the paths that exist, one per line.
exist() {
    for item; do [ -e "$item" ] && printf '%s\n' "$item"; done
}

# count PATH...: how many there are, where the first exists (a glob without match is left as is).
count() {
    if [ -e "$1" ]; then total=$#; else total=0; fi
}
