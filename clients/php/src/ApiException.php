<?php

declare(strict_types=1);

namespace Artseal;

/** The error of a call that failed. Decide by `errorCode`. */
final class ApiException extends \RuntimeException
{
    /** The last try got no response: whether the server did the work is unknown. */
    public const NO_RESPONSE = 'NO_RESPONSE';

    /** The response is not one of an Artseal server. */
    public const BAD_RESPONSE = 'BAD_RESPONSE';

    public function __construct(
        public readonly string $errorCode,
        string $message,
        /** The HTTP status; 0 if there was no response. */
        public readonly int $status = 0,
        /** The name of the call in the operator's log. */
        public readonly ?string $requestId = null,
        /** The address of a page that explains the code. */
        public readonly ?string $help = null,
        ?\Throwable $previous = null,
    ) {
        parent::__construct($message, $status, $previous);
    }
}
