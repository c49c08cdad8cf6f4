"""Verifies webhooks in the format of Standard Webhooks."""

import base64
import binascii
import hmac
import json
import re
import time
from collections.abc import Iterable, Mapping
from typing import Any

from .errors import WebhookError

_SIGNATURES_MAX = 32
"""Entries of a signature header that are checked, at most."""


def verify_webhook(
    headers: Mapping[str, str],
    body: bytes,
    secret: str | Iterable[str],
    *,
    tolerance: int = 300,
    now: float | None = None,
) -> dict[str, Any]:
    """Returns the event of a webhook. Raises WebhookError if its signature, its time or its body is not valid.

    `headers` may have names in any case. `body` has the bytes as they arrived. `secret` is `whsec_…`, or several of them
    during a rotation. `tolerance` is the largest difference between the webhook's time and `now`, in seconds. Webhooks are
    delivered at least once: store the header `webhook-id` to ignore duplicates.
    """
    if not isinstance(body, bytes):
        raise WebhookError("Pass the body as bytes, as it arrived: the signature is of its bytes.")
    keys = [_key(one) for one in ([secret] if isinstance(secret, str) else secret)]
    sent = {name.lower(): value for name, value in headers.items()}
    webhook_id, timestamp, signatures = (_header(sent, name) for name in ("id", "timestamp", "signature"))
    if not re.fullmatch("[1-9][0-9]{0,11}", timestamp, re.ASCII):
        raise WebhookError("webhook-timestamp must be Unix time in whole seconds.")
    if not abs(int(time.time() if now is None else now) - int(timestamp)) <= tolerance:
        raise WebhookError(f"webhook-timestamp is more than {tolerance} seconds from the clock of this machine.")
    message = f"{webhook_id}.{timestamp}.".encode(errors="replace") + body
    expected = [b"v1," + base64.b64encode(hmac.digest(key, message, "sha256")) for key in keys]
    for signature in signatures.split(" ")[:_SIGNATURES_MAX]:
        for one in expected:
            if hmac.compare_digest(one, signature.encode(errors="replace")):
                return _event(body)
    raise WebhookError("No signature in webhook-signature is of this body by this secret.")


def _key(secret: str) -> bytes:
    try:
        key = base64.b64decode(secret.removeprefix("whsec_"), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if not secret.startswith("whsec_") or not 24 <= len(key) <= 64:
        raise WebhookError("Pass the secret of the endpoint as it was issued, whsec_ included.")
    return key


def _header(sent: Mapping[str, str], name: str) -> str:
    value = sent.get(f"webhook-{name}")
    if not value:
        raise WebhookError(f"The header webhook-{name} is missing.")
    return value


def _event(body: bytes) -> dict[str, Any]:
    try:
        event = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise WebhookError("The body is signed, but it is not JSON.") from error
    if not isinstance(event, dict):
        raise WebhookError("The body is signed, but it is not a JSON object.")
    return event
