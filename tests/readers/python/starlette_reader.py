"""What Starlette reads, which FastAPI builds on."""
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from common import Found


async def read(request: Request):
    found = Found("starlette")
    await request.body()
    found.fields("query", request.query_params.getlist)
    try:
        document = await request.json()
        found.json(lambda: document)
    except Exception:
        pass
    try:
        form = await request.form()
        found.fields("form", form.getlist)
    except Exception:
        pass
    found.leaves("cookie", "sid", request.cookies.get("sid"))
    found.basic(request.headers.get("authorization"))
    return Response(found.answer(), media_type="application/json")


application = Starlette(routes=[Route("/{path:path}", read, methods=["GET", "POST", "PUT"])])
