"""Delays every packet of netfilter queue 0 by so many milliseconds, in order.

Kernels of small machines come without `netem`; queueing packets to a program is in nearly all of them. Only the
headers of netlink messages are read: the packets themselves stay in the kernel.
"""

import collections
import select
import socket
import struct
import sys
import time

NETLINK_NETFILTER = 12
SUBSYSTEM_QUEUE = 3
PACKET, CONFIG, VERDICT_BATCH = 0, 2, 3
ATTRIBUTE_COMMAND, ATTRIBUTE_PARAMETERS, ATTRIBUTE_MAX_LENGTH = 1, 2, 3
ATTRIBUTE_PACKET_HEADER, ATTRIBUTE_VERDICT_HEADER = 1, 2
BIND, COPY_METADATA, ACCEPT = 1, 1, 1
QUEUE = 0


def message(kind, *attributes):
    body = struct.pack("!BBH", 0, 0, QUEUE)
    for number, value in attributes:
        body += struct.pack("=HH", 4 + len(value), number) + value + b"\0" * (-len(value) % 4)
    # NLM_F_REQUEST
    return struct.pack("=IHHII", 16 + len(body), SUBSYSTEM_QUEUE << 8 | kind, 1, 0, 0) + body


def packet_ids(messages):
    while len(messages) >= 20:
        length, kind = struct.unpack_from("=IH", messages)
        at = 20
        while kind == (SUBSYSTEM_QUEUE << 8 | PACKET) and at + 4 <= length:
            size, number = struct.unpack_from("=HH", messages, at)
            if number & 0x7FFF == ATTRIBUTE_PACKET_HEADER:
                yield struct.unpack_from("!I", messages, at + 4)[0]
            at += (size + 3) & ~3
        messages = messages[(length + 3) & ~3 :]


def main():
    delay = int(sys.argv[1]) / 1000
    queue = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_NETFILTER)
    queue.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
    queue.bind((0, 0))
    queue.send(message(CONFIG, (ATTRIBUTE_COMMAND, struct.pack("!BBH", BIND, 0, 0))))
    queue.send(message(CONFIG, (ATTRIBUTE_PARAMETERS, struct.pack("!IB", 0, COPY_METADATA))))
    queue.send(message(CONFIG, (ATTRIBUTE_MAX_LENGTH, struct.pack("!I", 65536))))
    waiting = collections.deque()
    while True:
        left = max(0, waiting[0][0] - time.monotonic()) if waiting else None
        if select.select([queue], [], [], left)[0]:
            due = time.monotonic() + delay
            waiting.extend((due, number) for number in packet_ids(queue.recv(1 << 17)))
        through = None
        while waiting and waiting[0][0] <= time.monotonic():
            through = waiting.popleft()[1]
        if through is not None:
            # Everything up to this one.
            queue.send(message(VERDICT_BATCH, (ATTRIBUTE_VERDICT_HEADER, struct.pack("!II", ACCEPT, through))))


main()
