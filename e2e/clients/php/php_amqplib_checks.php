<?php
// php-amqplib, unchanged, as Debian packages it: what its users do, over its default login, AMQPLAIN.
// Each check prints one JSON line, {"check": ..., "ok": ..., "detail": ...}; script.ts judges by these lines.
require_once 'PhpAmqpLib/autoload.php';

use PhpAmqpLib\Connection\AMQPStreamConnection;
use PhpAmqpLib\Exception\AMQPProtocolChannelException;
use PhpAmqpLib\Message\AMQPMessage;
use PhpAmqpLib\Wire\AMQPTable;

function connect(?int $port = null): AMQPStreamConnection
{
    $port ??= (int) getenv('AMQP_PORT');
    return new AMQPStreamConnection(getenv('AMQP_HOST'), $port, 'guest', 'guest', '/');
}

function unique(): string
{
    return 'test-php-' . bin2hex(random_bytes(8));
}

function say(array $line): void
{
    fwrite(STDOUT, json_encode($line) . "\n");
}

function same(mixed $expected, mixed $actual): void
{
    if ($expected != $actual) {
        throw new Exception('expected ' . json_encode($expected) . ', got ' . json_encode($actual));
    }
}

$failed = 0;
function check(string $name, callable $body): void
{
    global $failed;
    $connection = connect();
    $queue = unique();
    try {
        $channel = $connection->channel();
        $channel->queue_declare($queue, false, true, false, false);
        $body($channel, $queue, $connection);
        say(['check' => $name, 'ok' => true]);
    } catch (Throwable $error) {
        $failed++;
        say(['check' => $name, 'ok' => false, 'detail' => (string) $error]);
    }
    try {
        $connection->close();
    } catch (Throwable) {
    }
    $connection = connect();
    $connection->channel()->queue_delete($queue);
    $connection->close();
}

function confirmed($channel, string $queue, string ...$bodies): void
{
    $channel->confirm_select();
    foreach ($bodies as $body) {
        $channel->basic_publish(new AMQPMessage($body), '', $queue);
    }
    $channel->wait_for_pending_acks(5);
}

check('declares, publishes with confirms, and gets', function ($channel, $queue) {
    $exchange = unique();
    $channel->exchange_declare($exchange, 'topic', false, true, false);
    $channel->queue_bind($queue, $exchange, 'a.#');
    $channel->confirm_select();
    $acks = 0;
    $channel->set_ack_handler(function () use (&$acks) {
        $acks++;
    });
    $headers = new AMQPTable(['n' => 1, 's' => 'x', 'list' => ['a', 'b']]);
    $properties = ['content_type' => 'text/plain', 'delivery_mode' => 2, 'application_headers' => $headers];
    $channel->basic_publish(new AMQPMessage('hello', $properties), $exchange, 'a.b');
    $channel->basic_publish(new AMQPMessage('nowhere'), $exchange, 'b');
    $channel->wait_for_pending_acks(5);
    same(2, $acks);
    $message = $channel->basic_get($queue, true);
    same('hello', $message->body);
    same('a.b', $message->getRoutingKey());
    same(['n' => 1, 's' => 'x', 'list' => ['a', 'b']], $message->get('application_headers')->getNativeData());
    same(null, $channel->basic_get($queue, true));
    $channel->exchange_delete($exchange);
});

check('sees what was returned', function ($channel) {
    $returned = [];
    $channel->set_return_listener(function ($code, $text, $exchange, $key, $message) use (&$returned) {
        $returned[] = [$code, $text, $message->body];
    });
    $channel->confirm_select();
    $channel->basic_publish(new AMQPMessage('back'), '', unique(), true);
    $channel->wait_for_pending_acks_returns(5);
    same([[312, 'NO_ROUTE', 'back']], $returned);
});

check('consumes with qos: acks, nacks, rejects', function ($channel, $queue) {
    confirmed($channel, $queue, 'ack', 'nack', 'reject');
    $channel->basic_qos(0, 1, false);
    $seen = [];
    $channel->basic_consume($queue, '', false, false, false, false, function ($message) use (&$seen) {
        $seen[] = $message->body . ($message->isRedelivered() ? ' again' : '');
        if ($message->body === 'nack') {
            $message->nack(!$message->isRedelivered());
        } elseif ($message->body === 'reject') {
            $message->reject(false);
        } else {
            $message->ack();
        }
    });
    while (count($seen) < 4) {
        $channel->wait(null, false, 5);
    }
    sort($seen);
    same(['ack', 'nack', 'nack again', 'reject'], $seen);
});

check('cancels, and leaves the rest', function ($channel, $queue) {
    $tag = $channel->basic_consume($queue, 'mine', false, false, false, false, fn () => null);
    same('mine', $tag);
    $channel->basic_cancel($tag);
    confirmed($channel, $queue, 'left');
    same(1, $channel->queue_purge($queue));
});

check('learns why its channel was closed', function ($channel, $queue, $connection) {
    $name = unique();
    try {
        $channel->queue_declare($name, true);
        throw new Exception('not refused');
    } catch (AMQPProtocolChannelException $error) {
        same(404, $error->amqp_reply_code);
        same("NOT_FOUND - no queue '$name' in vhost '/'", $error->amqp_reply_text);
    }
    $connection->channel()->queue_declare($queue, true);
});

check('carries a large body', function ($channel, $queue) {
    $body = str_repeat('0123456789abcdef', 20000);
    confirmed($channel, $queue, $body);
    same(true, $body === $channel->basic_get($queue, true)->body);
});

check('uses an exclusive, server-named queue', function ($channel) {
    [$queue, $messages, $consumers] = $channel->queue_declare('', false, false, true, true);
    same([0, 0], [$messages, $consumers]);
    confirmed($channel, $queue, 'reply');
    same('reply', $channel->basic_get($queue, true)->body);
});

check('connects again after its socket was cut', function ($channel, $queue) {
    confirmed($channel, $queue, 'before');
    $connection = connect((int) getenv('AMQP_PROXY_PORT'));
    $other = $connection->channel();
    same('before', $other->basic_get($queue)->body);
    say(['cut' => true]);
    try {
        while (true) {
            $other->queue_declare($queue, true);
            usleep(10000);
        }
    } catch (PhpAmqpLib\Exception\AMQPRuntimeException | PhpAmqpLib\Exception\AMQPIOException) {
    }
    $connection->reconnect();
    for ($message = null, $i = 0; $message === null && $i < 200; $i++) {
        $message = $connection->channel()->basic_get($queue, true);
        usleep(10000);
    }
    same(['before', true], [$message?->body, $message?->isRedelivered()]);
    $connection->close();
});

exit($failed === 0 ? 0 : 1);
