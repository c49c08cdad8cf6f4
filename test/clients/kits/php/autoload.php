<?php

// Loads Guzzle of the system, and the kit that is unpacked beside this folder.

require 'GuzzleHttp/autoload.php';
spl_autoload_register(function (string $class): void {
    $path = __DIR__ . '/../artseal-php/src/' . strtr(substr($class, strlen('Artseal\\')), '\\', '/') . '.php';
    if (str_starts_with($class, 'Artseal\\') && is_file($path)) {
        require $path;
    }
});
