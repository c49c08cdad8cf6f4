"""A mail server on 127.0.0.1 for tests, made of aiosmtpd. Its first line is its port.

For each step of a mail it prints a line with the number of the step, and then waits for this number on its input: CONNECT, RCPT
address, DATA address before the mail is stored, STORED address after it is, before the response. It appends stored mails to the file
of the first argument, as JSON.

The address says what becomes of a mail: unknown-… and misspelt-… are rejected at RCPT, full-… after its text, later-… for now,
policy-… and quota-… because of who sends it, broken-… loses the connection after its text. With --password, the user artseal has
to log in.
"""

import argparse
import asyncio
import email.policy
import json
import sys

from aiosmtpd.smtp import SMTP, AuthResult

replies = {
    "unknown-": "550 5.1.1 no such user \x1b[31m here",
    "misspelt-": "501 5.1.3 bad recipient address syntax",
    "later-": "451 4.7.1 greylisted",
    "policy-": "554 5.7.1 relay access denied",
    "quota-": "550 5.4.5 daily sending quota exceeded",
}


class Handler:
    def __init__(self, file):
        self.file = file
        self.waiting = {}
        self.steps = 0

    async def step(self, *words):
        self.steps += 1
        number = self.steps
        self.waiting[number] = asyncio.get_running_loop().create_future()
        print(number, *words, flush=True)
        await self.waiting[number]

    async def release(self, numbers):
        while line := await numbers.readline():
            future = self.waiting.pop(int(line))
            if not future.done():
                future.set_result(None)

    async def handle_EHLO(self, server, session, envelope, hostname, responses):
        session.host_name = hostname
        await self.step("CONNECT")
        return responses

    async def handle_RCPT(self, server, session, envelope, address, options):
        await self.step("RCPT", address)
        for start, reply in replies.items():
            if address.startswith(start):
                return reply
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server, session, envelope):
        (address,) = envelope.rcpt_tos
        await self.step("DATA", address)
        if address.startswith("full-"):
            return "552 5.2.2 mailbox full"
        if address.startswith("broken-"):
            server.transport.abort()
            return "250 lost"
        mail = email.message_from_bytes(envelope.content, policy=email.policy.default)
        stored = {
            "from": envelope.mail_from,
            "to": address,
            "headers": {name.lower(): value for name, value in mail.items()},
            "text": mail.get_content(),
        }
        with open(self.file, "a", encoding="utf-8") as file:
            file.write(json.dumps(stored) + "\n")
        await self.step("STORED", address)
        return "250 2.0.0 queued"


async def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("file")
    parser.add_argument("--password")
    words = parser.parse_args()
    loop = asyncio.get_running_loop()
    steps = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(steps), sys.stdin)
    handler = Handler(words.file)

    def authenticate(server, session, envelope, mechanism, data):
        is_right = (data.login, data.password) == (b"artseal", words.password.encode())
        return AuthResult(success=is_right, handled=False)

    login = {}
    if words.password is not None:
        login = {"authenticator": authenticate, "auth_required": True, "auth_require_tls": False}
    server = await loop.create_server(lambda: SMTP(handler, **login), "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    # The end of its input ends it.
    await handler.release(steps)


asyncio.run(main())
