#!/bin/sh
# What curl and wget send. Argument: the address to send it to.
set -eu
name="Zoë O'Neil"
password="pässword &=+%;\"
"
file=$(mktemp)
trap 'rm -f "$file"' EXIT
printf 'a file' > "$file"
to() { curl --silent --output /dev/null --noproxy '*' "$@"; }
to "$1/curl/plain" -d username=alice -d password=secret
to "$1/curl/form" --data-urlencode "username=$name" --data-urlencode "password=$password"
to "$1/curl/multipart-plain" -F username=alice -F password=secret
to "$1/curl/multipart" --form-string "username=$name" --form-string "password=$password"
to "$1/curl/file" --form-string "username=$name" -F "photo=@$file;filename=photo.png;type=image/png"
to "$1/curl/json-plain" --json '{"username": "alice", "password": "secret"}'
to "$1/curl/json" --json '{"username": "Zoë O'\''Neil", "password": "pässword &=+%;\"\n"}'
to "$1/curl/query?username=alice" -X POST
to "$1/curl/basic" -X POST -u alice:secret
to "$1/curl/cookie" -X POST -b 'sid=alice; lang=en'
