<?php
// A platform's program on a client that openapi-generator generated, which makes the calls of a sale.
//
// Prints their typed answers as JSON. ARTSEAL_URL, ARTSEAL_API_KEY and ARTSEAL_API_SECRET say where and as whom, the
// argument where the client is.

use GuzzleHttp\{Client, HandlerStack, Middleware};
use OpenAPI\Client\{ApiException, Configuration, ObjectSerializer};
use OpenAPI\Client\Api\{EscrowApi, FilingApi, ProvenanceApi, WebhooksApi};
use OpenAPI\Client\Model\{EscrowRequest, EscrowType, FilingRequest, WebhookRequest};
use Psr\Http\Message\RequestInterface;

require 'GuzzleHttp/autoload.php';
spl_autoload_register(
    fn ($class) => @include $argv[1] . '/lib/' . strtr($class, ['OpenAPI\\Client\\' => '', '\\' => '/']) . '.php'
);

$signing = Middleware::mapRequest(function (RequestInterface $request) {
    $timestamp = (string) time();
    $nonce = bin2hex(random_bytes(16));
    $bodyHash = hash('sha256', $request->getBody());
    $message = $request->getMethod() . $request->getRequestTarget() . $bodyHash . $timestamp . $nonce;
    return $request
        ->withHeader('X-Api-Key', getenv('ARTSEAL_API_KEY'))
        ->withHeader('X-Timestamp', $timestamp)
        ->withHeader('X-Nonce', $nonce)
        ->withHeader('X-Signature', hash_hmac('sha256', $message, getenv('ARTSEAL_API_SECRET')));
});
$handlers = HandlerStack::create();
$handlers->push($signing);
$http = new Client(['handler' => $handlers]);
$config = (new Configuration())->setHost(getenv('ARTSEAL_URL'));
$filings = new FilingApi($http, $config);
$escrows = new EscrowApi($http, $config);

$receipt = $filings->createFiling(new FilingRequest([
    'author' => '齐白石 "Qi" 🖌',
    'era' => '1947',
    'size' => '68 × 136 cm',
    'material' => 'ink & colour',
    'condition' => 'good',
    'price' => 12_800_000,
]), bin2hex(random_bytes(16)));
$filing = $filings->getFiling($receipt->getFilingNo());
$opened = $escrows->createEscrow(new EscrowRequest([
    'filing_no' => $filing->getFilingNo(),
    'type' => EscrowType::GUARANTEE,
    'amount' => $filing->getPrice(),
    'buyer_id' => 'buyer-1',
    'seller_id' => 'seller-1',
]));
$released = $escrows->releaseEscrow($opened->getEscrowId());
try {
    $escrows->releaseEscrow($opened->getEscrowId());
} catch (ApiException $error) {
    $apiError = $error->getResponseObject();
}
$provenance = (new ProvenanceApi($http, $config))->getProvenance($filing->getFilingNo());

$endpoints = new WebhooksApi($http, $config);
$created = $endpoints->createWebhook(new WebhookRequest([
    'url' => 'https://gallery.example/hooks?of=sales',
    'event_types' => [WebhookRequest::EVENT_TYPES_ESCROW_RELEASED],
]));
$webhooks = $endpoints->listWebhooks();

$answers = compact('receipt', 'filing', 'opened', 'released', 'apiError', 'provenance', 'created', 'webhooks');
echo json_encode(array_map([ObjectSerializer::class, 'sanitizeForSerialization'], $answers));
