"""A mail server with one empty mailbox for everybody, which tells whose passwords it judges. Arguments: its port."""
import asyncio
import base64
import sys

PASSWORD = b"correct horse"
ANSWERS = {
    "CAPABILITY": ["* CAPABILITY IMAP4rev1 AUTH=PLAIN"],
    "NAMESPACE": ['* NAMESPACE (("" "/")) NIL NIL'],
    "LIST": ['* LIST (\\HasNoChildren) "/" "INBOX"'],
    "LSUB": ['* LSUB () "/" "INBOX"'],
    "SELECT": ["* 0 EXISTS", "* 0 RECENT", "* OK [UIDVALIDITY 1] valid", "* FLAGS ()"],
    "STATUS": ['* STATUS "INBOX" (MESSAGES 0 UNSEEN 0)'],
    "LOGOUT": ["* BYE"],
}


async def serve(reader, writer):
    async def say(*lines):
        writer.write("".join(line + "\r\n" for line in lines).encode())
        await writer.drain()

    await say("* OK [CAPABILITY IMAP4rev1 AUTH=PLAIN] ready")
    while line := await reader.readline():
        tag, _, rest = line.decode(errors="replace").strip().partition(" ")
        command, _, argument = rest.partition(" ")
        if command.upper() == "AUTHENTICATE":
            _, _, secret = argument.partition(" ")
            if not secret:
                await say("+ ")
                secret = (await reader.readline()).decode()
            _, name, password = base64.b64decode(secret).split(b"\0")
            with open("told", "a") as told:
                told.write(f"judged {name.decode(errors='replace')}\n")
            is_right = password == PASSWORD
            await say(f"{tag} OK [CAPABILITY IMAP4rev1] in" if is_right else f"{tag} NO [AUTHENTICATIONFAILED] wrong")
        else:
            await say(*ANSWERS.get(command.upper(), []), f"{tag} OK done")
            if command.upper() == "LOGOUT":
                break
    writer.close()


async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", int(sys.argv[1]))
    await server.serve_forever()


asyncio.run(main())
