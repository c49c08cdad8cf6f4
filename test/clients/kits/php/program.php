<?php

// Runs the steps of the test plan with the PHP kit: one JSON object a line in, one out.

declare(strict_types=1);

use Artseal\{ApiException, Client, Webhooks};
use Artseal\Model\{EscrowRequest, FilingRequest, WebhookChange, WebhookRequest};

require 'vendor/autoload.php';

function newClient(array $access): Client
{
    $offsetS = $access['clockOffsetS'] ?? 0;
    return new Client(
        $access['url'],
        $access['apiKey'],
        $access['apiSecret'],
        timeoutS: $access['timeoutS'] ?? 60,
        now: fn () => time() + $offsetS,
    );
}

function collect(iterable $items, int $max, string $member): array
{
    $values = [];
    foreach ($items as $item) {
        $values[] = $item->$member;
        if (count($values) === $max) {
            break;
        }
    }
    return $values;
}

function verify(array $step): mixed
{
    $server = [];
    foreach ($step['headers'] as $name => $value) {
        $server['HTTP_' . strtr(strtoupper($name), '-', '_')] = $value;
    }
    return (new Webhooks($step['secrets']))->verify($server, $step['body'], $step['nowS']);
}

function call(array $step, Client $client): mixed
{
    $max = $step['max'] ?? 0;
    return match ($step['step']) {
        'file' => $client->createFiling(new FilingRequest(...$step['artwork']), $step['idempotencyKey'] ?? null),
        'get' => $client->getFiling($step['filingNo']),
        'provenance' => $client->getProvenance($step['filingNo']),
        'escrow' => $client->createEscrow(new EscrowRequest(...$step['order'])),
        'release' => $client->releaseEscrow($step['escrowId']),
        'filings' => collect($client->filings(pageSize: $step['pageSize']), $max, 'filingNo'),
        'orders' => collect($client->escrows($step['state'], pageSize: $step['pageSize']), $max, 'escrowId'),
        'events' => collect($client->events($step['after']), $max, 'sequence'),
        'addWebhook' => $client->createWebhook(new WebhookRequest($step['url'], $step['eventTypes'])),
        'editWebhook' => $client->updateWebhook($step['webhookId'], new WebhookChange(status: $step['status'])),
        'removeWebhook' => $client->deleteWebhook($step['webhookId']),
    };
}

$clients = [];
while (($line = fgets(STDIN)) !== false) {
    $step = json_decode($line, true, 512, JSON_THROW_ON_ERROR);
    try {
        if ($step['step'] === 'evidence') {
            $printed = ['unsupported' => true];
        } elseif ($step['step'] === 'webhook') {
            $printed = ['ok' => true, 'result' => verify($step)];
        } else {
            $client = $clients[json_encode($step['client'])] ??= newClient($step['client']);
            $result = $step['step'] === 'print' ? print_r($client, true) : call($step, $client);
            $printed = ['ok' => true, 'result' => $result];
        }
    } catch (ApiException $error) {
        $printed = ['ok' => false, 'error' => [
            'code' => $error->errorCode,
            'message' => $error->getMessage(),
            'status' => $error->status,
            'requestId' => $error->requestId,
            'help' => $error->help,
        ]];
    } catch (InvalidArgumentException $error) {
        $printed = ['ok' => false, 'error' => ['code' => 'ARGUMENT', 'message' => $error->getMessage()]];
    } catch (UnexpectedValueException $error) {
        $printed = ['ok' => false, 'error' => ['code' => 'WEBHOOK', 'message' => $error->getMessage()]];
    }
    echo json_encode($printed, JSON_THROW_ON_ERROR), "\n";
}
