"""Makes the calls of the test plan with artseal_client: reads a JSON object a line, and prints the result of each."""

import json
import sys
import time
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

from artseal_client import Artseal, ArtsealError, WebhookError, verify_webhook
from artseal_client.models import EscrowRequest, FilingRequest, WebhookChange, WebhookRequest
from artseal_client.types import UNSET

clients: dict[str, Artseal] = {}


def client_of(access: dict[str, Any]) -> Artseal:
    name = json.dumps(access)
    if name not in clients:
        offset = access.get("clockOffsetS", 0)
        clients[name] = Artseal(
            access["url"],
            access["apiKey"],
            access["apiSecret"],
            timeout=access.get("timeoutS", 60),
            clock=lambda: time.time() + offset,
        )
    return clients[name]


def filings(client: Artseal, values: dict[str, Any]) -> Iterator[str]:
    return (filing.filing_no for filing in client.iter_filings(page_size=values["pageSize"]))


steps: dict[str, Callable[[Artseal, dict[str, Any]], Any]] = {
    "file": lambda client, values: client.create_filing(
        body=FilingRequest.from_dict(values["artwork"]), idempotency_key=values.get("idempotencyKey", UNSET)
    ),
    "get": lambda client, values: client.get_filing(values["filingNo"]),
    "provenance": lambda client, values: client.get_provenance(values["filingNo"]),
    "escrow": lambda client, values: client.create_escrow(body=EscrowRequest.from_dict(values["order"])),
    "release": lambda client, values: client.release_escrow(values["escrowId"]),
    "filings": lambda client, values: list(islice(filings(client, values), values.get("max"))),
    "orders": lambda client, values: [
        order.escrow_id for order in client.iter_escrows(state=values["state"], page_size=values["pageSize"])
    ],
    "events": lambda client, values: [event.sequence for event in client.iter_events(after=values["after"])],
    "addWebhook": lambda client, values: client.create_webhook(
        body=WebhookRequest(url=values["url"], event_types=values["eventTypes"])
    ),
    "editWebhook": lambda client, values: client.update_webhook(
        values["webhookId"], body=WebhookChange(status=values["status"])
    ),
    "removeWebhook": lambda client, values: client.delete_webhook(values["webhookId"]),
    "print": lambda client, _: repr(client),
    "webhook": lambda _, values: verify_webhook(
        values["headers"], values["body"].encode(), values["secrets"], now=values["nowS"]
    ),
}


def result_of(step: str, access: dict[str, Any] | None, values: dict[str, Any]) -> dict[str, Any]:
    if step not in steps:
        return {"unsupported": True}
    try:
        result = steps[step](client_of(access or {"url": "http://none", "apiKey": "-", "apiSecret": "-"}), values)
    except ArtsealError as error:
        fields = ("code", "message", "status", "help")
        return {"ok": False, "error": {name: getattr(error, name) for name in fields} | {"requestId": error.request_id}}
    except ValueError as error:
        if not isinstance(error, WebhookError):
            return {"ok": False, "error": {"code": "ARGUMENT", "message": str(error)}}
        return {"ok": False, "error": {"message": str(error)}}
    return {"ok": True, "result": result.to_dict() if hasattr(result, "to_dict") else result}


for line in sys.stdin:
    request = json.loads(line)
    print(json.dumps(result_of(request.pop("step"), request.pop("client", None), request)), flush=True)
