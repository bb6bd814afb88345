"""Serves the Django project, and beside it what its admin does not have: a WebSocket and large bodies."""

import zlib

from django.contrib.staticfiles.handlers import ASGIStaticFilesHandler
from shop.asgi import application as django
from starlette.applications import Starlette
from django.contrib.auth.signals import user_logged_in, user_login_failed
from django.dispatch import receiver
from starlette.responses import JSONResponse, StreamingResponse
from starlette.routing import Mount, Route, WebSocketRoute

BLOCK = bytes(range(256)) * 256


@receiver(user_login_failed)
def failed(credentials, **_):
    print(f"judged {credentials['username']}.", flush=True)


@receiver(user_logged_in)
def succeeded(user, **_):
    print(f"judged {user.username}.", flush=True)


async def upload(request):
    length = checksum = 0
    async for piece in request.stream():
        length += len(piece)
        checksum = zlib.crc32(piece, checksum)
    return JSONResponse({"length": length, "checksum": checksum})


async def download(request):
    blocks = int(request.query_params["blocks"])

    async def body():
        for _ in range(blocks):
            yield BLOCK

    return StreamingResponse(body(), headers={"content-length": str(blocks * len(BLOCK))})


async def echo(socket):
    await socket.accept()
    while (message := await socket.receive())["type"] == "websocket.receive":
        await socket.send({**message, "type": "websocket.send"})


application = Starlette(
    routes=[
        Route("/upload", upload, methods=["POST"]),
        Route("/download", download),
        WebSocketRoute("/live", echo),
        Mount("/", app=ASGIStaticFilesHandler(django)),
    ]
)
