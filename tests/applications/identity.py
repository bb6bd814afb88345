"""Answers as a server of identities does, and asks for a code after a password; tells what it judges."""
import secrets
from urllib.parse import parse_qsl

from starlette.applications import Starlette
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, RedirectResponse
from starlette.routing import Route

PASSWORD = "correct horse"
CODE = "123456"
people = {}


def told(kind, name, is_right):
    print(f"judged {kind} {name}.", flush=True)
    return is_right


async def fields(request):
    return dict(parse_qsl((await request.body()).decode(errors="replace")))


async def token(request):
    form = await fields(request)
    name = form.get("username", "").strip().lower()
    if form.get("grant_type") == "refresh_token" and form.get("refresh_token") in people:
        name = people[form["refresh_token"]]
    elif form.get("grant_type") != "password" or not told("token", name, form.get("password") == PASSWORD):
        return JSONResponse({"error": "invalid_grant"}, status_code=401)
    access, refresh = secrets.token_urlsafe(), secrets.token_urlsafe()
    people[access] = people[refresh] = name
    return JSONResponse({"access_token": access, "refresh_token": refresh, "token_type": "Bearer", "expires_in": 300})


async def authenticate(request):
    form = await fields(request)
    if request.query_params.get("execution") == "code":
        return second_form(request, form)
    # Whoever is signed in already is sent on.
    name = people.get(request.cookies.get("KEYCLOAK_IDENTITY")) or form.get("username", "").strip().lower()
    if request.cookies.get("KEYCLOAK_IDENTITY") not in people and not told("form", name, form.get("password") == PASSWORD):
        return HTMLResponse("Invalid username or password.")
    if not name.startswith("oscar"):
        return entered(name)
    # His name is known from here on.
    answer = HTMLResponse("The code?")
    people[session := secrets.token_urlsafe()] = name
    answer.set_cookie("AUTH_SESSION_ID", session)
    return answer


def second_form(request, form):
    name = people.get(request.cookies.get("AUTH_SESSION_ID"))
    return entered(name) if name and told("second", name, form.get("code") == CODE) else HTMLResponse("Invalid code.")


def entered(name):
    answer = RedirectResponse("/callback?code=x", status_code=302)
    people[session := secrets.token_urlsafe()] = name
    answer.set_cookie("KEYCLOAK_IDENTITY", session)
    return answer


async def login(request):
    form = await fields(request)
    name = form.get("username", "").strip().lower()
    if not told("password", name, form.get("password") == PASSWORD):
        return HTMLResponse("wrong")
    answer = RedirectResponse("/login/code", status_code=302)
    people[session := secrets.token_urlsafe()] = name
    answer.set_cookie("session", session)
    return answer


async def code(request):
    form = await fields(request)
    name = people.get(request.cookies.get("session"))
    if name is None:
        return RedirectResponse("/login", status_code=302)
    if not told("code", name, form.get("code") == CODE):
        return HTMLResponse("wrong")
    return RedirectResponse("/account", status_code=302)


async def change(request):
    return PlainTextResponse("changed\n")


async def health(request):
    return PlainTextResponse("well\n")


application = Starlette(routes=[
    Route("/realms/{realm}/protocol/openid-connect/token", token, methods=["POST"]),
    Route("/realms/{realm}/login-actions/authenticate", authenticate, methods=["POST"]),
    Route("/login", login, methods=["POST"]),
    Route("/login/code", code, methods=["POST"]),
    Route("/account/{what}", change, methods=["POST"]),
    Route("/", health),
])
