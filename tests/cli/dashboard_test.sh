#!/usr/bin/env bash
# kedge dashboard as a user meets it at the command line and over HTTP; dashboard_browser_test.py has the page. dashboard_test.sh KEDGE
set -uo pipefail
here=$(realpath "$(dirname "$0")")
. "$here/commands_support.sh"
fail() { echo "FAILED: $*"; failures=$((failures + 1)); }
mkdir -p runs/first/rollouts runs/second empty
for run in first second; do
  echo 'rollouts: {keep: none}' >runs/$run/config.yaml
  echo '[{"command_line": ["kedge", "rs"], "folder": "/there", "max_steps": 9}]' >runs/$run/run.json
  echo '{"step": 0, "time": 1, "train_rollouts/rewards": 2.5}' >runs/$run/metrics.jsonl
done

# What is wrong
expect 2 'nowhere: no such folder' "$kedge" dashboard nowhere
expect 2 'empty: neither the folder of a run, which holds config.yaml and run.json, nor one with runs in it' "$kedge" dashboard empty
expect 2 'empty: neither' "$kedge" dashboard runs/first empty
expect 2 'missing RUNS|which runs' "$kedge" dashboard
expect 2 'port: ' "$kedge" dashboard runs --port 70000
expect 2 'unknown flag --prt; nearest: --port' "$kedge" dashboard runs --prt 1
expect 0 '^Usage: kedge dashboard RUN' "$kedge" dashboard --help

files() { find runs -type f -printf '%p %T@ %s\n' | sort; }
before=$(files)

# One line says where it is; it answers there, and ends by a signal.
start() { # arguments of the command
  "$kedge" dashboard "$@" >out.txt 2>err.txt &
  pid=$!
  for _ in $(seq 600); do
    page=$(sed -n 's/^\(http[^ ]*\) shows .*/\1/p' out.txt) url=${page%%\?*}
    case $page in *token=*) token=${page#*token=} ;; *) token= ;; esac
    [ -n "$url" ] && return
    kill -0 $pid 2>/dev/null || break
    sleep 0.05
  done
  fail "it did not start: $(cat out.txt err.txt)"
}
finish() { # signal
  kill -"$1" $pid
  wait $pid
  local status=$?
  [ $status = 0 ] || fail "exit $status after $1"
}
ask() { # STATUS METHOD PATH [HEADER]: prints the body; $token is shown
  python3 - "$url" "$token" "$@" <<'PY'
import http.client, sys, urllib.parse
url, token, wanted, method, path, *header = sys.argv[1:]
peer = http.client.HTTPConnection(urllib.parse.urlparse(url).netloc, timeout=20)
headers = {"Authorization": f"Bearer {token}"} if token else {}
peer.request(method, path, headers={**headers, **(dict([header[0].split(": ")]) if header else {})})
answer = peer.getresponse()
print(answer.read().decode())
if answer.status != int(wanted):
    sys.exit(f"{method} {path} {header}: status {answer.status}, wanted {wanted}")
PY
}
# STATUS-LINE LENGTH BODY-BYTES of what a bare HEAD is answered: a client library would not look for a body.
head_bytes() {
  python3 - "$url" "$token" <<'PY'
import socket, sys, urllib.parse
at = urllib.parse.urlparse(sys.argv[1])
with socket.create_connection((at.hostname, at.port), timeout=20) as peer:
    peer.sendall(f"HEAD /api/runs HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {sys.argv[2]}\r\n\r\n"
                 f"BAD\r\n\r\n".encode())
    data = b""
    while part := peer.recv(65536):
        data += part
first, _, rest = data.partition(b"\r\n\r\n")
print(first.split(b"\r\n")[0].decode(), rest[:12].decode(errors="replace"))
PY
}
start runs
[ "$(cat out.txt)" = "$page shows 2 runs; Ctrl-C ends it" ] || fail "what it says: $(cat out.txt)"
grep -qE '^http://127\.0\.0\.1:60[0-9][0-9]/$|^http://127\.0\.0\.1:61[0-9][0-9]/$' <<<"$url" || fail "not at its usual ports: $url"
first=$url first_pid=$pid
grep -q '<title>kedge dashboard' <<<"$(ask 200 GET /)" || fail "no page"
grep -q '"name":"second"' <<<"$(ask 200 GET /api/runs)" || fail "not all runs"
[ "$(head_bytes)" = "HTTP/1.1 200 OK HTTP/1.1 400" ] || fail "a body for HEAD: $(head_bytes)"
shown=$token token=
ask 401 GET /api/runs >/dev/null || fail "without its token"
grep -q '<title>kedge dashboard' <<<"$(ask 200 GET "/?token=$shown")" || fail "the address that it prints"
ask 200 GET /api/runs "Cookie: kedge-$(sed 's/.*:\([0-9]*\)\/$/\1/' <<<"$url")=$shown" >/dev/null || fail "its cookie"
token=$shown
ask 405 POST /api/runs >/dev/null || fail "POST"
ask 405 DELETE /api/runs >/dev/null || fail "DELETE"
ask 403 GET /api/runs 'Host: evil.example' >/dev/null || fail "a foreign host"
ask 404 GET /../../etc/passwd >/dev/null || fail "a path that climbs"
ask 404 GET '/api/series?run=17' >/dev/null || fail "a run that is not there"
ask 400 GET '/api/series?run=%zz' >/dev/null || fail "a broken query"
mkdir runs/third && cp runs/first/*.* runs/third && before=$(files)
for _ in $(seq 200); do # it looks every half second
  grep -q '"name":"third"' <<<"$(ask 200 GET /api/runs)" && break
  sleep 0.05
done
grep -q '"name":"third"' <<<"$(ask 200 GET /api/runs)" || fail "a run that begins later is not found"
# A second one takes the next port, or the one it is given.
start runs/first
[ "$url" != "$first" ] || fail "two on one port"
expect 1 'Address already in use; --port sets another port, 0 any that is free' "$kedge" dashboard runs --port "$(sed 's/.*:\([0-9]*\)\/$/\1/' <<<"$url")"
finish INT
pid=$first_pid
finish TERM
start runs/first --ip localhost --port 0 --ask-servers
ask 200 GET /api/runs >/dev/null || fail "--ip localhost"
grep -q warning err.txt && fail "a warning about a token: $(cat err.txt)"
finish TERM
start runs/first runs/second --ip 0.0.0.0 --port 0 --no-token
ask 200 GET /api/runs >/dev/null || fail "--no-token"
grep -q 'warning whoever reaches 0.0.0.0:' err.txt || fail "no word on listening to everybody: $(cat err.txt)"
finish TERM
# Nothing was written.
[ "$(files)" = "$before" ] || fail "files were written: $(diff <(echo "$before") <(files))"
[ -z "$(find runs -name '.*' -type f)" ] || fail "hidden files were made: $(find runs -name '.*' -type f)"

[ "$failures" = 0 ] && echo "all as expected"
exit $((failures > 0))
