"""The client: signs a call, sends it, and retries it where that is safe."""

import hashlib
import hmac
import json
import random
import re
import secrets
import ssl
import time
import uuid
from collections.abc import Callable, Iterator
from email.utils import parsedate_to_datetime
from importlib.metadata import version
from typing import Any, TypeVar

import httpx

from .api import escrow, events, evidence, filing, health, provenance
from .api import webhooks as endpoints
from .errors import ArtsealError
from .models import Escrow, EscrowState, Event, Filing
from .types import UNSET, Unset

T = TypeVar("T")

_TRIES = 4
_RESPONSE_BYTES_MAX = 4 * 1024 * 1024
_PAUSE = 0.25
"""Seconds before the second try without a Retry-After. It doubles with each try."""
_CLOCK_OFFSET_MAX = 24 * 3600
"""Seconds. A server that claims more is not believed: its clock would date the signatures of this client."""
_THIS_MACHINE = r"localhost|127\.[0-9.]+|::1"
_RETRIED = (429, 500, 502, 503, 504)


class Artseal(
    filing.Operations,
    provenance.Operations,
    evidence.Operations,
    escrow.Operations,
    events.Operations,
    endpoints.Operations,
    health.Operations,
):
    """A client of one service. It keeps the difference to the clock of the server, so create one and share it.

    `url` is the address of the service. `timeout` is the longest time of a call with all its tries, in seconds. `clock`
    returns Unix seconds. `verify` and `transport` are those of httpx; a transport must not retry, since every try has its own
    signature. Calls raise ArtsealError, or ValueError for an argument that cannot be sent. Threads can share a client.
    """

    def __init__(
        self,
        url: str,
        api_key: str,
        api_secret: str,
        *,
        timeout: float = 60,
        clock: Callable[[], float] = time.time,
        verify: bool | ssl.SSLContext = True,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        base = httpx.URL(url)
        if base.scheme not in ("http", "https") or not base.host or base.raw_path != b"/" or base.userinfo:
            raise ValueError("url must be http:// or https:// and a host, without a path, a query and a user.")
        if not re.fullmatch("[!-~]+", api_key):
            raise ValueError("api_key must be the API key as issued, ak_….")
        if not api_secret:
            raise ValueError("api_secret must be the secret as issued, sk_….")
        if not timeout > 0:
            raise ValueError("timeout must be more than 0 seconds.")
        self._base = base
        self._api_key = api_key
        self._secret = api_secret.encode()
        self._timeout = timeout
        self._clock = clock
        self._offset = 0.0
        headers = {"User-Agent": f"artseal-python/{version('artseal-client')}", "Accept-Encoding": "identity"}
        self._http = httpx.Client(base_url=base, headers=headers, verify=verify, transport=transport)

    def close(self) -> None:
        """Closes the connections."""
        self._http.close()

    def __enter__(self) -> "Artseal":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def iter_filings(self, *, year: int | Unset = UNSET, page_size: int | Unset = UNSET) -> Iterator[Filing]:
        """Iterates over your filings, newest first."""
        token = ""
        while True:
            page = self.list_filings(year=year, page_size=page_size, page_token=token or UNSET)
            yield from page.filings
            token = page.next_page_token
            if not token:
                return

    def iter_escrows(
        self,
        *,
        state: EscrowState | Unset = UNSET,
        filing_no: str | Unset = UNSET,
        page_size: int | Unset = UNSET,
    ) -> Iterator[Escrow]:
        """Iterates over your orders, newest first."""
        token = ""
        while True:
            page = self.list_escrows(
                state=state, filing_no=filing_no, page_size=page_size, page_token=token or UNSET
            )
            yield from page.escrows
            token = page.next_page_token
            if not token:
                return

    def iter_events(self, *, after: int | Unset = UNSET, wait_seconds: int | Unset = UNSET) -> Iterator[Event]:
        """Iterates over the events after a cursor, oldest first. Ends when nothing has happened for `wait_seconds`.

        Store the `sequence` of the last event that you handled: it is the cursor `after` of the next loop.
        """
        while True:
            page = self.list_events(after=after, wait_seconds=wait_seconds)
            if not page.events:
                return
            yield from page.events
            after = page.next_

    def _call(self, request: dict[str, Any], parse: Callable[[httpx.Response], T]) -> T:
        if any(part in ("", ".", "..") for part in request["url"].split("/")[1:]):
            raise ValueError(f"{request['url']} has a part that is empty, . or ..")
        headers = request.setdefault("headers", {})
        if request["method"] != "get":
            key = headers.setdefault("Idempotency-Key", str(uuid.uuid4()))
            if not re.fullmatch("[!-~]{1,255}", key):
                raise ValueError("idempotency_key must be 1 to 255 visible ASCII characters.")
        response = self._send(self._http.build_request(**request))
        try:
            return parse(httpx.Response(response.status_code, content=response.content))
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
            raise _bad_response(response, "The response is not what the operation returns.") from error

    def _send(self, request: httpx.Request) -> "_Response":
        ends_at = time.monotonic() + self._timeout
        is_clock_taken = False
        for tries in range(1, _TRIES + 1):
            pause = _PAUSE * 2 ** (tries - 1) * random.uniform(0.5, 1)
            is_retried = True
            try:
                response = self._attempt(request, ends_at)
                if 200 <= response.status_code < 300:
                    return response
                error = self._error(response)
                is_retried = response.status_code in _RETRIED or error.code == "IDEMPOTENCY_IN_PROGRESS"
                if error.code == "TIMESTAMP_EXPIRED" and not is_clock_taken:
                    is_clock_taken = True
                    is_retried = self._take_clock(response)
                    pause = 0
                else:
                    pause = _retry_after(response, pause)
            except httpx.TransportError as cause:
                error = ArtsealError("The service did not respond; the result of a write is unknown.", "NO_RESPONSE")
                error.__cause__ = cause
            if not is_retried or tries == _TRIES or time.monotonic() + pause >= ends_at:
                break
            time.sleep(pause)
        raise error

    def _attempt(self, request: httpx.Request, ends_at: float) -> "_Response":
        """Sends one try, with a timestamp and a nonce of its own."""
        timestamp = str(int(self._clock() + self._offset))
        nonce = secrets.token_hex(16)
        body_hash = hashlib.sha256(request.content).hexdigest()
        message = request.method + request.url.raw_path.decode() + body_hash + timestamp + nonce
        request.headers["X-Api-Key"] = self._api_key
        request.headers["X-Timestamp"] = timestamp
        request.headers["X-Nonce"] = nonce
        request.headers["X-Signature"] = hmac.digest(self._secret, message.encode(), "sha256").hex()
        left = max(ends_at - time.monotonic(), 0.001)
        request.extensions["timeout"] = dict.fromkeys(("connect", "read", "write", "pool"), left)
        response = self._http.send(request, stream=True, follow_redirects=False)
        try:
            content = bytearray()
            for part in response.iter_raw():
                content += part
                if len(content) > _RESPONSE_BYTES_MAX:
                    message = f"The response is longer than {_RESPONSE_BYTES_MAX} bytes."
                    raise _bad_response(_Response(response, b""), message)
                if time.monotonic() > ends_at:
                    raise httpx.ReadTimeout("The response did not end in time.")
        finally:
            response.close()
        return _Response(response, bytes(content))

    def _take_clock(self, response: "_Response") -> bool:
        """Takes the clock of the server from its response. Returns False if that is not possible.

        Over plain HTTP, a network that sets the clock could send a signed request much later.
        """
        if self._base.scheme != "https" and not re.fullmatch(_THIS_MACHINE, self._base.host):
            return False
        try:
            offset = parsedate_to_datetime(response.headers.get("Date", "")).timestamp() - self._clock()
        except (ValueError, TypeError, OverflowError):
            return False
        if abs(offset) > _CLOCK_OFFSET_MAX:
            return False
        self._offset = offset
        return True

    def _error(self, response: "_Response") -> ArtsealError:
        try:
            body = json.loads(response.content)
        except (ValueError, RecursionError):
            body = None
        if not isinstance(body, dict) or not isinstance(body.get("code"), str) or not isinstance(body.get("message"), str):
            return _bad_response(response, f"HTTP {response.status_code} is not from Artseal.")
        link = re.search(r'<(/[^/<>][^<>]*)>; *rel="?help"?', response.headers.get("Link", ""))
        request_id = body.get("requestId")
        return ArtsealError(
            body["message"],
            body["code"],
            response.status_code,
            request_id if isinstance(request_id, str) else response.headers.get("X-Request-Id"),
            str(self._base.join(link[1])) if link else None,
        )


class _Response:
    """A response that was read to its end."""

    def __init__(self, response: httpx.Response, content: bytes) -> None:
        self.status_code = response.status_code
        self.headers = response.headers
        self.content = content


def _bad_response(response: _Response, message: str) -> ArtsealError:
    return ArtsealError(message, "BAD_RESPONSE", response.status_code, response.headers.get("X-Request-Id"))


def _retry_after(response: _Response, default: float) -> float:
    value = response.headers.get("Retry-After", "")
    return float(value) if re.fullmatch("[0-9]{1,9}", value) else default
