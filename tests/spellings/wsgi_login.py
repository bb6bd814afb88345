"""An application that knows its login by what the server says the path is, or by the target, which it parses as a URL."""

from urllib.parse import unquote, urlsplit


def path_of_target(target):
    try:
        return unquote(urlsplit(target).path)
    except ValueError:
        return ""


def application(environ, start_response):
    paths = environ["PATH_INFO"], path_of_target(environ.get("RAW_URI", ""))
    answer = b"THE LOGIN of /login" if "/login" in paths else b"another page"
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", str(len(answer)))])
    return [answer]
