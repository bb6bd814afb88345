"""What Tornado reads. Argument: the port."""
import asyncio
import logging
import sys

import tornado.escape
import tornado.web

from common import Found

logging.disable(logging.CRITICAL)


class Reader(tornado.web.RequestHandler):
    def read(self):
        found = Found("tornado")
        found.fields("query", self.get_query_arguments)
        found.fields("form", self.get_body_arguments)
        found.fields("param", self.get_arguments)
        found.json(lambda: tornado.escape.json_decode(self.request.body))
        found.leaves("cookie", "sid", self.get_cookie("sid"))
        found.basic(self.request.headers.get("Authorization"))
        self.set_header("Content-Type", "application/json")
        self.write(found.answer())

    get = post = put = read


async def main():
    tornado.web.Application([(r".*", Reader)]).listen(int(sys.argv[1]), "127.0.0.1")
    await asyncio.Event().wait()


asyncio.run(main())
