"""As verify.py, with the published package, by its own clock; with the word `sign`, what the package signs instead.

The code of docs/platforms/webhooks.md that calls the package is receiver.py in the folder that this is started in.
"""

import base64
import pathlib
import sys
from datetime import datetime, timezone

from standardwebhooks.webhooks import Webhook

NAMES = ("webhook-id", "webhook-timestamp", "webhook-signature")
verify = compile(pathlib.Path("receiver.py").read_text(), "receiver.py", "exec")

for line in sys.stdin.buffer:
    secret, now, *sent, body = [base64.b64decode(part).decode() for part in line.rstrip(b"\n").split(b"\t")]
    if sys.argv[1:] == ["sign"]:
        print(Webhook(secret).sign(sent[0], datetime.fromtimestamp(int(now), timezone.utc), body))
        continue
    headers = {name: value for name, value in zip(NAMES, sent) if value}
    try:
        exec(verify, {"secret": secret, "headers": headers, "body": body.encode()})
        print("accepted")
    except Exception:
        print("refused")
