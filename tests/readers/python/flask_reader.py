"""What Flask reads, with Werkzeug's parsers."""
from flask import Flask, Response, request

from common import Found

application = Flask(__name__)


@application.route("/", defaults={"path": ""}, methods=["GET", "POST", "PUT"])
@application.route("/<path:path>", methods=["GET", "POST", "PUT"])
def read(path):
    found = Found("flask")
    request.get_data(cache=True)
    found.fields("query", request.args.getlist)
    try:
        found.fields("form", request.form.getlist)
    except Exception:
        pass
    found.json(lambda: request.get_json())
    found.json(lambda: request.get_json(force=True), "flask force")
    found.leaves("cookie", "sid", request.cookies.getlist("sid"))
    if request.authorization and request.authorization.type == "basic":
        found.leaves("basic", "user", request.authorization.username)
    found.basic(request.headers.get("Authorization"))
    return Response(found.answer(), content_type="application/json")
