<?php
// As verify.py, with verifyWebhook of docs/platforms/webhooks.md, here as receiver.php.

require __DIR__ . '/receiver.php';

while (($line = fgets(STDIN)) !== false) {
    [$secret, $now, $id, $timestamp, $signature, $body] = array_map('base64_decode', explode("\t", rtrim($line, "\n")));
    $sent = ['HTTP_WEBHOOK_ID' => $id, 'HTTP_WEBHOOK_TIMESTAMP' => $timestamp, 'HTTP_WEBHOOK_SIGNATURE' => $signature];
    try {
        verifyWebhook($secret, array_filter($sent, 'strlen'), $body, (int) $now);
        echo "accepted\n";
    } catch (UnexpectedValueException | InvalidArgumentException $refused) {
        echo "refused\n";
    }
}
