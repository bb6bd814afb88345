"""A WebSocket application: says back what it is told, and prints how each connection ended."""

import asyncio

from websockets.asyncio.server import serve
from websockets.exceptions import ConnectionClosed


async def echo(socket):
    try:
        async for message in socket:
            if message == "leave":
                await socket.close(4002, "enough")
            else:
                await socket.send(message)
    except ConnectionClosed:
        pass
    finally:
        print("closed", socket.close_code, socket.close_reason)


async def main():
    async with serve(echo, "127.0.0.1", 0, max_size=None, ping_interval=None) as server:
        print("listening on", server.sockets[0].getsockname()[1])
        await server.serve_forever()


asyncio.run(main())
