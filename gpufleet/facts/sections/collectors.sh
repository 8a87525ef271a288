# Processes that collect metrics, and those that listen. Parsed by collectors.py.
# Who collects metrics: by name, and by DCGM's library in the memory of who holds a GPU.
set --
for path in $holders; do set -- "$@" "$path/maps"; done
[ $# -gt 0 ] && set -- $(grep -lsF libdcgm.so "$@")
for path in $holders; do
    line "$path/comm"
    [ "$line" = starship ] && set -- "$@" "$path/comm"
done
set -- "$@" $(grep -lsxE 'nv-hostengine|dcgm-exporter' /proc/[0-9]*/comm | head -n 1000) -
IFS=$nl
for text in $sockets; do say "listen $text"; done
for text in $owners; do
    say "owner $text"
    set -- "$@" "/proc/${text%% *}/comm"
done
IFS=$blank
word=collector
known=
for path; do
    [ "$path" = - ] && word=process && continue
    path=${path%/*}
    pid=${path##*/}
    case " $known " in *" $pid "*) continue ;; esac
    known="$known $pid"
    line "$path/comm"
    say "$word $pid $line"
    group "$path/cgroup"
    [ "$group" ] && say "cgroup $pid ${group#"$base"}"
done
