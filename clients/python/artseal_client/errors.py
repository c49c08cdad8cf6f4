"""The errors of calls and of webhooks."""


class ArtsealError(Exception):
    """The one error of calls. Decide by `code`.

    `code` is the code of the API, such as `VALIDATION_FAILED`; `NO_RESPONSE` if the last try got no response, so that the
    result of a write is unknown; `BAD_RESPONSE` if what came is not a response of Artseal. `status` is the HTTP status, 0 without a
    response. Send `request_id` to the operator with every question. `help` is the page that explains the code.
    """

    def __init__(
        self,
        message: str,
        code: str,
        status: int = 0,
        request_id: str | None = None,
        help: str | None = None,
    ) -> None:
        super().__init__(f"{code}: {message}")
        self.message = message
        self.code = code
        self.status = status
        self.request_id = request_id
        self.help = help


class WebhookError(ValueError):
    """The error of a webhook that must not be trusted. The message says what is wrong, and holds no secret."""
