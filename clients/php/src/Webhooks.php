<?php

declare(strict_types=1);

namespace Artseal;

/** Verifies what arrives at an endpoint. */
final class Webhooks
{
    private const KEY_BYTES_MIN = 24;
    private const SIGNATURES_MAX = 32;

    private readonly \SensitiveParameterValue $keys;

    /**
     * @param string|string[] $secrets of the endpoint, whsec_ included; a signature by any of them is enough
     * @param int $toleranceS the largest difference between the time of a webhook and now
     */
    public function __construct(#[\SensitiveParameter] string|array $secrets, private readonly int $toleranceS = 300)
    {
        $keys = array_map(
            fn (string $secret) => (string) base64_decode(preg_replace('/^whsec_/', '', $secret), true),
            (array) $secrets,
        );
        if ($keys === [] || min(array_map(strlen(...), $keys)) < self::KEY_BYTES_MIN) {
            throw new \InvalidArgumentException('secrets must be secrets of webhooks as issued, whsec_ included');
        }
        $this->keys = new \SensitiveParameterValue($keys);
    }

    /**
     * Returns the event of a webhook, `['type' => …, 'timestamp' => …, 'data' => […]]`. An event can arrive more than
     * once: the header webhook-id is then the same.
     *
     * @param array<string, string> $server `$_SERVER`
     * @param string $body as it arrived: `file_get_contents('php://input')`
     * @param ?int $now Unix time in seconds, by default that of the machine
     * @throws \UnexpectedValueException if the webhook must not be trusted
     */
    public function verify(array $server, string $body, ?int $now = null): array
    {
        $id = $server['HTTP_WEBHOOK_ID'] ?? '';
        $timestamp = $server['HTTP_WEBHOOK_TIMESTAMP'] ?? '';
        $signatures = explode(' ', $server['HTTP_WEBHOOK_SIGNATURE'] ?? '', self::SIGNATURES_MAX);
        if ($id === '' || preg_match('/^[0-9]{1,12}\z/', $timestamp) !== 1) {
            throw new \UnexpectedValueException('webhook-id or webhook-timestamp is missing or malformed');
        }
        if (abs(($now ?? time()) - (int) $timestamp) > $this->toleranceS) {
            throw new \UnexpectedValueException("webhook-timestamp is over {$this->toleranceS} seconds from now");
        }
        $isSigned = false;
        foreach ($this->keys->getValue() as $key) {
            $expected = 'v1,' . base64_encode(hash_hmac('sha256', "$id.$timestamp.$body", $key, true));
            foreach ($signatures as $signature) {
                $isSigned = hash_equals($expected, $signature) || $isSigned;
            }
        }
        if (!$isSigned) {
            throw new \UnexpectedValueException('no signature is of this body by these secrets');
        }
        $event = json_decode($body, true);
        return is_array($event) ? $event : throw new \UnexpectedValueException('the body is signed, but is no event');
    }
}
