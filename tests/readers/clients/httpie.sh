#!/bin/sh
# What HTTPie sends. Argument: the address to send it to.
set -eu
name="Zoë O'Neil"
password="pässword &=+%;\"
"
file=$(mktemp --suffix .png)
trap 'rm -f "$file"' EXIT
printf 'a file' > "$file"
to() { http --ignore-stdin --print= "$@"; }
to --form POST "$1/httpie/plain" username=alice password=secret
to --form POST "$1/httpie/form" username="$name" password="$password"
to --multipart POST "$1/httpie/multipart" username="$name" password="$password"
to --form POST "$1/httpie/file" username="$name" photo@"$file"
to POST "$1/httpie/json" username="$name" password="$password"
to --auth alice:secret POST "$1/httpie/basic"
