"""A client for the REST API of Artseal: typed operations, signing, safe retries, paging and webhooks."""

from .client import Artseal
from .errors import ArtsealError, WebhookError
from .webhooks import verify_webhook

__all__ = ("Artseal", "ArtsealError", "WebhookError", "verify_webhook")
