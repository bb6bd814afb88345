"""Logins of four kinds, of which each tells what it was asked."""
import base64
from urllib.parse import parse_qs

from starlette.applications import Starlette
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route

PASSWORD = "correct horse"


def told(kind, name, succeeds):
    print(f"attempt {kind} {name} {'succeeds' if succeeds else 'fails'}", flush=True)
    return succeeds


async def fields(request):
    form = parse_qs((await request.body()).decode())
    return form.get("username", [""])[-1], form.get("password", [""])[-1]


async def redirect(request):
    name, password = await fields(request)
    if told("redirect", name, password == PASSWORD):
        return RedirectResponse("/account", status_code=302)
    return HTMLResponse(f"<p>{name}: wrong user name or password")


async def page(request):
    name, password = await fields(request)
    if told("page", name, password == PASSWORD):
        answer = HTMLResponse(f"<p>Welcome, {name}")
        answer.set_cookie("session", "of-" + name)
        return answer
    return HTMLResponse(f"<p>{name}: invalid password" + " " * 2000)


async def api(request):
    sent = await request.json()
    return JSONResponse({"ok": told("json", sent.get("user"), sent.get("password") == PASSWORD), "user": sent.get("user")})


async def private(request):
    word, _, secret = request.headers.get("authorization", "").partition(" ")
    name, _, password = (base64.b64decode(secret) if word == "Basic" else b"").decode().partition(":")
    if told("basic", name, password == PASSWORD):
        return Response("private\n")
    return Response("who?\n", status_code=401, headers={"WWW-Authenticate": 'Basic realm="private"'})


async def health(request):
    return Response("well\n")


application = Starlette(routes=[
    Route("/login", redirect, methods=["POST"]),
    Route("/page/login", page, methods=["POST"]),
    Route("/api/login", api, methods=["POST"]),
    Route("/private/{rest:path}", private),
    Route("/", health),
])
