"""A WebSocket client that does what it is told, line by line, and says in a line what came of it: talk.py URL PORT [CA]"""

import socket
import ssl
import sys

from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

PATIENCE = 60


def same(messages, connection, whole):
    connection.send(messages)
    got = connection.recv(PATIENCE)
    return "same" if got == whole else f"other: {len(got)}"


def obey(order, connection):
    match order.split():
        case ["text", length]:
            text = "x" * (int(length) - 1) + "\N{SNOWMAN}"
            return same(text, connection, text)
        case ["binary", length]:
            data = bytes(number % 251 for number in range(int(length)))
            return same(data, connection, data)
        case ["fragments", count]:
            parts = [str(number) for number in range(int(count))]
            return same(iter(parts), connection, "".join(parts))
        case ["ping"]:
            return "pong" if connection.ping().wait(PATIENCE) else "nothing"
        case ["close", code, reason]:
            connection.close(int(code), reason)
            return f"closed {connection.close_code}"
        case ["leave"]:
            connection.send("leave")
            connection.recv(PATIENCE)
    return "what?"


url, port, *ca = sys.argv[1:]
context = ssl.create_default_context(cafile=ca[0]) if ca else None
if context:
    # One thread of this client reads while another writes. Before Python 3.13 they may do so in OpenSSL at once, and when
    # the tickets of TLS 1.3 are read just then, what is written may get lost.
    context.maximum_version = ssl.TLSVersion.TLSv1_2
stream = socket.create_connection(("127.0.0.1", int(port)), PATIENCE)
try:
    with connect(url, sock=stream, ssl=context, max_size=None, ping_interval=None, close_timeout=PATIENCE) as connection:
        print("open", flush=True)
        for order in sys.stdin:
            try:
                print(obey(order, connection), flush=True)
            except ConnectionClosed as closed:
                ended = closed.rcvd
                print("ended", *([ended.code, ended.reason] if ended else []), flush=True)
except InvalidStatus as refused:
    print("refused", refused.response.status_code, flush=True)
