"""An application that knows its login by what the server says the path is."""


def application(environ, start_response):
    answer = b"THE LOGIN of /login" if environ["PATH_INFO"] == "/login" else b"another page"
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", str(len(answer)))])
    return [answer]
