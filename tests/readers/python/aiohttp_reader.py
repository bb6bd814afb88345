"""What aiohttp reads. Argument: the port."""
import json
import sys

from aiohttp import BasicAuth, web

from common import Found


async def read(request):
    found = Found("aiohttp")
    found.fields("query", lambda name: request.query.getall(name, []))
    try:
        form = await request.post()
        found.fields("form", lambda name: form.getall(name, []))
    except Exception:
        pass
    try:
        document = await request.json()
        found.json(lambda: document)
    except Exception:
        pass
    found.leaves("cookie", "sid", request.cookies.get("sid"))
    try:
        found.leaves("basic", "user", BasicAuth.decode(request.headers.get("Authorization", "")).login)
    except Exception:
        pass
    found.basic(request.headers.get("Authorization"))
    return web.Response(body=found.answer(), content_type="application/json")


application = web.Application(client_max_size=1 << 24)
application.router.add_route("*", "/{path:.*}", read)
web.run_app(application, host="127.0.0.1", port=int(sys.argv[1]), print=None, access_log=None)
