"""What HTTP libraries of Python send. Argument: the address to send it to."""
import asyncio
import json
import sys
import urllib.parse
import urllib.request

import aiohttp
import httpx
import requests
import tornado.httpclient
import urllib3

to = sys.argv[1]
PLAIN = {"username": "alice", "password": "secret"}
AWKWARD = {"username": "Zoë O'Neil", "password": 'pässword &=+%;"\n'}
PHOTO = ("photo.png", b"a file", "image/png")

session = requests.Session()
session.trust_env = False
session.post(f"{to}/requests/plain", data=PLAIN)
session.post(f"{to}/requests/form", data=AWKWARD)
session.post(f"{to}/requests/multipart", files={name: (None, value) for name, value in AWKWARD.items()})
session.post(f"{to}/requests/file", data=AWKWARD, files={"photo": PHOTO})
session.post(f"{to}/requests/file-named-oddly", data=PLAIN, files={"photo": ("Zoë \"1\".png", b"a file")})
session.post(f"{to}/requests/json", json=AWKWARD)
session.post(f"{to}/requests/query", params=AWKWARD)
session.post(f"{to}/requests/basic", auth=("alice", "secret"))
session.post(f"{to}/requests/cookie", cookies={"lang": "en", "sid": "alice"})

with httpx.Client(trust_env=False) as client:
    client.post(f"{to}/httpx/plain", data=PLAIN)
    client.post(f"{to}/httpx/form", data=AWKWARD)
    client.post(f"{to}/httpx/multipart", files={name: (None, value) for name, value in AWKWARD.items()})
    client.post(f"{to}/httpx/file", data=AWKWARD, files={"photo": PHOTO})
    client.post(f"{to}/httpx/json", json=AWKWARD)
    client.post(f"{to}/httpx/query", params=AWKWARD)
    client.post(f"{to}/httpx/basic", auth=("alice", "secret"))
    client.post(f"{to}/httpx/cookie", headers={"Cookie": "lang=en; sid=alice"})

pool = urllib3.PoolManager()
pool.request("POST", f"{to}/urllib3/plain", fields=PLAIN, encode_multipart=False)
pool.request("POST", f"{to}/urllib3/form", fields=AWKWARD, encode_multipart=False)
pool.request("POST", f"{to}/urllib3/multipart", fields=AWKWARD)
pool.request("POST", f"{to}/urllib3/file", fields={**AWKWARD, "photo": PHOTO})
pool.request("POST", f"{to}/urllib3/json", json=AWKWARD)

opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
opener.open(f"{to}/urllib/plain", urllib.parse.urlencode(PLAIN).encode())
opener.open(f"{to}/urllib/form", urllib.parse.urlencode(AWKWARD).encode())
opener.open(
    urllib.request.Request(f"{to}/urllib/json", json.dumps(AWKWARD).encode(), {"Content-Type": "application/json"})
)


async def asynchronous():
    async with aiohttp.ClientSession() as client:
        await client.post(f"{to}/aiohttp/plain", data=PLAIN)
        await client.post(f"{to}/aiohttp/form", data=AWKWARD)
        parts = aiohttp.FormData(default_to_multipart=True)
        for name, value in AWKWARD.items():
            parts.add_field(name, value)
        await client.post(f"{to}/aiohttp/multipart", data=parts)
        parts = aiohttp.FormData(AWKWARD)
        parts.add_field("photo", PHOTO[1], filename=PHOTO[0], content_type=PHOTO[2])
        await client.post(f"{to}/aiohttp/file", data=parts)
        await client.post(f"{to}/aiohttp/json", json=AWKWARD)
        await client.post(f"{to}/aiohttp/query", params=AWKWARD)
        await client.post(f"{to}/aiohttp/basic", auth=aiohttp.BasicAuth("alice", "secret"))
        await client.post(f"{to}/aiohttp/cookie", cookies={"lang": "en", "sid": "alice"})
    client = tornado.httpclient.AsyncHTTPClient()
    await client.fetch(f"{to}/tornado/form", method="POST", body=urllib.parse.urlencode(AWKWARD))


asyncio.run(asynchronous())
