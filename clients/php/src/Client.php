<?php

declare(strict_types=1);

namespace Artseal;

use Artseal\Model\Escrow;
use Artseal\Model\Event;
use Artseal\Model\Filing;
use GuzzleHttp\ClientInterface;
use GuzzleHttp\Exception\GuzzleException;
use GuzzleHttp\Exception\RequestException;
use GuzzleHttp\Psr7\DroppingStream;
use GuzzleHttp\Psr7\Uri;
use GuzzleHttp\Psr7\UriResolver;
use GuzzleHttp\Psr7\Utils;
use GuzzleHttp\RequestOptions;
use Psr\Http\Message\ResponseInterface;

/** Calls the REST API of one Artseal service. */
final class Client extends ArtsealOperations
{
    private const TRIES_MAX = 4;
    private const RESPONSE_BYTES_MAX = 4 * 1024 * 1024;
    private const CLOCK_OFFSET_MAX_S = 24 * 3600;
    private const FIRST_PAUSE_MS = 250;
    private const TEMPORARY = [0, 429, 500, 502, 503, 504];

    private readonly Uri $base;
    private readonly \SensitiveParameterValue $apiSecret;
    private readonly ClientInterface $http;
    private readonly \Closure $now;
    private int $clockOffsetS = 0;

    /**
     * @param string $baseUrl the address of the service, such as https://registry.example
     * @param float $timeoutS limits a call with all its tries
     * @param ?\Closure $now returns the Unix time in seconds; by default `time`
     * @param ?ClientInterface $http sends requests, and does not retry: a retry needs a new signature
     */
    public function __construct(
        string $baseUrl,
        private readonly string $apiKey,
        #[\SensitiveParameter] string $apiSecret,
        private readonly float $timeoutS = 60,
        ?\Closure $now = null,
        ?ClientInterface $http = null,
    ) {
        if (preg_match('~^https?://[^/?#@]+/?\z~', $baseUrl) !== 1) {
            throw new \InvalidArgumentException('baseUrl must be like https://registry.example, without a path');
        }
        if (preg_match('/^[!-~]+ [!-~]+\z/', "$apiKey $apiSecret") !== 1) {
            throw new \InvalidArgumentException('apiKey and apiSecret must be as issued, without white space');
        }
        $this->apiSecret = new \SensitiveParameterValue($apiSecret);
        $this->base = new Uri(rtrim($baseUrl, '/'));
        $this->now = $now ?? time(...);
        $this->http = $http ?? new \GuzzleHttp\Client();
    }

    /**
     * Your filings, highest number first. The loop asks for a page when it gets there.
     *
     * @return \Generator<Filing>
     */
    public function filings(?int $year = null, ?int $pageSize = null): \Generator
    {
        for ($token = null; $token !== ''; $token = $page->nextPageToken) {
            $page = $this->listFilings($pageSize, $token, $year);
            yield from array_values($page->filings);
        }
    }

    /**
     * Your orders, newest first.
     *
     * @return \Generator<Escrow>
     */
    public function escrows(?string $state = null, ?string $filingNo = null, ?int $pageSize = null): \Generator
    {
        for ($token = null; $token !== ''; $token = $page->nextPageToken) {
            $page = $this->listEscrows($pageSize, $token, $state, $filingNo);
            yield from array_values($page->escrows);
        }
    }

    /**
     * Your events after a cursor, oldest first, up to the first empty page. Store the sequence of an event once you
     * have handled it: it is the cursor of the next call.
     *
     * @return \Generator<Event>
     */
    public function events(?int $after = null, ?int $waitSeconds = null): \Generator
    {
        while (($page = $this->listEvents($after, $waitSeconds))->events !== []) {
            yield from $page->events;
            $after = $page->next;
        }
    }

    protected function call(
        string $method,
        string $path,
        array $query,
        ?\JsonSerializable $body,
        ?string $idempotencyKey,
        string $type,
    ): mixed {
        $endsAt = hrtime(true) / 1e9 + $this->timeoutS;
        if (preg_match('~/\.{0,2}(/|\z)~', $path) === 1) {
            throw new \InvalidArgumentException("$path has a part that is empty, . or ..");
        }
        if (preg_match('/^[!-~]{1,255}\z/', $idempotencyKey ?? 'none') !== 1) {
            throw new \InvalidArgumentException('idempotencyKey must be 1 to 255 visible ASCII characters');
        }
        $query = http_build_query($query, '', '&', PHP_QUERY_RFC3986);
        $target = $query === '' ? $path : "$path?$query";
        $content = $body === null ? '' : json_encode($body, JSON_THROW_ON_ERROR | JSON_UNESCAPED_UNICODE);
        $headers = ['User-Agent' => 'artseal-php/' . self::VERSION];
        if ($body !== null) {
            $headers['Content-Type'] = 'application/json';
        }
        if ($method !== 'GET') {
            $headers['Idempotency-Key'] = $idempotencyKey ?? bin2hex(random_bytes(16));
        }
        $clockWasSet = false;
        for ($try = 1; ; $try++) {
            $response = null;
            try {
                $signed = $headers + $this->signature($method . $target, $content);
                $response = $this->send($method, $target, $content, $signed, $endsAt - hrtime(true) / 1e9);
                return $this->decode($response, $type);
            } catch (ApiException $failure) {
            }
            if ($try === self::TRIES_MAX) {
                throw $failure;
            }
            if ($failure->errorCode === 'TIMESTAMP_EXPIRED' && !$clockWasSet && $this->setClock($response)) {
                $clockWasSet = true;
                continue;
            }
            $pauseS = self::pauseS($response, $try);
            if (!self::isTemporary($failure) || hrtime(true) / 1e9 + $pauseS >= $endsAt) {
                throw $failure;
            }
            usleep((int) ($pauseS * 1e6));
        }
    }

    private function signature(string $methodAndTarget, string $content): array
    {
        $timestamp = (string) (($this->now)() + $this->clockOffsetS);
        $nonce = bin2hex(random_bytes(16));
        $message = $methodAndTarget . hash('sha256', $content) . $timestamp . $nonce;
        return [
            'X-Api-Key' => $this->apiKey,
            'X-Timestamp' => $timestamp,
            'X-Nonce' => $nonce,
            'X-Signature' => hash_hmac('sha256', $message, $this->apiSecret->getValue()),
        ];
    }

    private function send(string $method, string $target, string $content, array $headers, float $leftS): ResponseInterface
    {
        // curl ends a response that does not fit.
        $sink = new DroppingStream(Utils::streamFor(''), self::RESPONSE_BYTES_MAX + 1);
        try {
            return $this->http->request($method, $this->base . $target, [
                RequestOptions::HEADERS => $headers,
                RequestOptions::BODY => $content,
                RequestOptions::ALLOW_REDIRECTS => false,
                RequestOptions::HTTP_ERRORS => false,
                RequestOptions::SINK => $sink,
                RequestOptions::TIMEOUT => max($leftS, 0.001),
            ]);
        } catch (GuzzleException $error) {
            if ($sink->getSize() > self::RESPONSE_BYTES_MAX && $error instanceof RequestException && $error->hasResponse()) {
                return $error->getResponse()->withBody($sink);
            }
            throw new ApiException(ApiException::NO_RESPONSE, "No response: {$error->getMessage()}", previous: $error);
        }
    }

    private function decode(ResponseInterface $response, string $type): mixed
    {
        $status = $response->getStatusCode();
        $isLinked = preg_match('/<([^>]*)>\s*;\s*rel="?help"?/', $response->getHeaderLine('Link'), $link) === 1;
        $help = $isLinked ? (string) UriResolver::resolve($this->base, new Uri($link[1])) : null;
        $requestId = $response->getHeaderLine('X-Request-Id') ?: null;
        $bad = fn (string $message, ?\Throwable $error = null) =>
            new ApiException(ApiException::BAD_RESPONSE, $message, $status, $requestId, $help, $error);
        if ($response->getBody()->getSize() > self::RESPONSE_BYTES_MAX) {
            throw $bad('The response has more than ' . self::RESPONSE_BYTES_MAX . ' bytes.');
        }
        $content = (string) $response->getBody();
        $data = json_decode($content, true);
        if (intdiv($status, 100) === 2) {
            try {
                return match (true) {
                    $type === 'string' => $content,
                    class_exists($type) => $type::fromArray($data),
                    is_array($data) => (object) $data,
                    default => throw new \TypeError('no JSON object'),
                };
            } catch (\TypeError $error) {
                throw $bad('The response is not the JSON that this call returns.', $error);
            }
        }
        $text = fn (string $name) => is_string($data[$name] ?? null) ? $data[$name] : null;
        if ($status < 400 || $text('code') === null) {
            throw $bad("The response with status $status is not one of an Artseal server.");
        }
        throw new ApiException($text('code'), $text('message') ?? '', $status, $text('requestId') ?? $requestId, $help);
    }

    /**
     * Takes the time from a response. Returns false if it is missing, implausible, or not from the server for certain: a
     * network that sets the clock could send a signed request much later.
     */
    private function setClock(ResponseInterface $response): bool
    {
        $isLocal = preg_match('/^(localhost|127\.[0-9.]+|\[::1\])\z/', $this->base->getHost()) === 1;
        if ($this->base->getScheme() !== 'https' && !$isLocal) {
            return false;
        }
        $date = strtotime($response->getHeaderLine('Date'));
        if ($date === false || abs($date - ($this->now)()) > self::CLOCK_OFFSET_MAX_S) {
            return false;
        }
        $this->clockOffsetS = $date - ($this->now)();
        return true;
    }

    /** Whether another try may succeed. Each call is a read or has an Idempotency-Key. */
    private static function isTemporary(ApiException $failure): bool
    {
        // curl repeats a request by itself, with the same nonce, if a connection that it kept was closed.
        return in_array($failure->errorCode, ['IDEMPOTENCY_IN_PROGRESS', 'NONCE_REUSED'], true)
            || in_array($failure->status, self::TEMPORARY, true);
    }

    /** How long to wait after a try: as long as the server says, or twice as long as before, with jitter. */
    private static function pauseS(?ResponseInterface $response, int $try): float
    {
        $said = $response?->getHeaderLine('Retry-After') ?? '';
        if (preg_match('/^[0-9]{1,9}\z/', $said) === 1) {
            return (float) $said;
        }
        $longest = self::FIRST_PAUSE_MS << ($try - 1);
        return random_int(intdiv($longest, 2), $longest) / 1000;
    }
}
