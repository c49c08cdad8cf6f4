"""Says of each request on standard input whether verify_webhook of docs/platforms/webhooks.md, here as receiver.py, accepts it.

A request is a line: secret, time, id, timestamp, signature and body, each in base64, with tabs between; a header that
was not sent is empty.
"""

import base64
import sys

from receiver import verify_webhook

NAMES = ("webhook-id", "webhook-timestamp", "webhook-signature")

for line in sys.stdin.buffer:
    secret, now, *sent, body = [base64.b64decode(part) for part in line.rstrip(b"\n").split(b"\t")]
    headers = {name: value.decode() for name, value in zip(NAMES, sent) if value}
    try:
        verify_webhook(secret.decode(), headers, body, now=int(now))
        print("accepted")
    except ValueError:
        print("refused")
