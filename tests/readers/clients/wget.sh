#!/bin/sh
# What wget sends. Argument: the address to send it to.
set -eu
to() { wget --quiet --no-proxy --output-document /dev/null "$@"; }
to "$1/wget/plain" --post-data 'username=alice&password=secret'
to "$1/wget/form" --post-data 'username=Zo%C3%AB%20O%27Neil&password=p%C3%A4ssword%20%26%3D%2B%25%3B%22%0A'
to "$1/wget/json" --header 'Content-Type: application/json' --post-data '{"username": "alice", "password": "secret"}'
to "$1/wget/basic" --method POST --auth-no-challenge --user alice --password secret
