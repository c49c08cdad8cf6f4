"""A platform's program on a client that openapi-python-client generated, which makes the calls of a sale.

Prints their typed answers as JSON. ARTSEAL_URL, ARTSEAL_API_KEY and ARTSEAL_API_SECRET say where and as whom.
"""

import hashlib
import hmac
import json
import os
import time
import uuid

import httpx
from artseal_client import Client
from artseal_client.api.escrow import create_escrow, release_escrow
from artseal_client.api.filing import create_filing, get_filing
from artseal_client.api.provenance import get_provenance
from artseal_client.api.webhooks import create_webhook, list_webhooks
from artseal_client.models import (
    EscrowRequest,
    EscrowType,
    FilingRequest,
    WebhookRequest,
    WebhookRequestEventTypesItem,
)

API_KEY = os.environ["ARTSEAL_API_KEY"]
API_SECRET = os.environ["ARTSEAL_API_SECRET"]


class Signing(httpx.Auth):
    requires_request_body = True

    def auth_flow(self, request):
        target = request.url.raw_path.decode()
        timestamp = str(int(time.time()))
        nonce = uuid.uuid4().hex
        body_hash = hashlib.sha256(request.content).hexdigest()
        message = request.method + target + body_hash + timestamp + nonce
        request.headers["X-Api-Key"] = API_KEY
        request.headers["X-Timestamp"] = timestamp
        request.headers["X-Nonce"] = nonce
        request.headers["X-Signature"] = hmac.digest(API_SECRET.encode(), message.encode(), "sha256").hex()
        yield request


client = Client(os.environ["ARTSEAL_URL"], httpx_args={"auth": Signing()}, raise_on_unexpected_status=True)

artwork = FilingRequest(
    author='齐白石 "Qi" 🖌',
    era="1947",
    size="68 × 136 cm",
    material="ink & colour",
    condition="good",
    price=12_800_000,
)
receipt = create_filing.sync(client=client, body=artwork, idempotency_key=str(uuid.uuid4()))
filing = get_filing.sync(receipt.filing_no, client=client)
terms = EscrowRequest(
    filing_no=filing.filing_no,
    type_=EscrowType.GUARANTEE,
    amount=filing.price,
    buyer_id="buyer-1",
    seller_id="seller-1",
)
opened = create_escrow.sync(client=client, body=terms)
released = release_escrow.sync(opened.escrow_id, client=client)
apiError = release_escrow.sync(opened.escrow_id, client=client)
provenance = get_provenance.sync(filing.filing_no, client=client)

endpoint = WebhookRequest(
    url="https://gallery.example/hooks?of=sales",
    event_types=[WebhookRequestEventTypesItem.ESCROW_RELEASED],
)
created = create_webhook.sync(client=client, body=endpoint)
webhooks = list_webhooks.sync(client=client)

answers = {
    "receipt": receipt,
    "filing": filing,
    "opened": opened,
    "released": released,
    "apiError": apiError,
    "provenance": provenance,
    "created": created,
    "webhooks": webhooks,
}
print(json.dumps({name: answer.to_dict() for name, answer in answers.items()}))
