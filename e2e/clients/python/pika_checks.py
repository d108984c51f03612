"""pika, unchanged: what its users do with a BlockingConnection."""
import os

import pika
import pika.exceptions
from checks import HOST, PORT, check, run, say, unique


def connect(port=PORT, **options):
    credentials = pika.PlainCredentials("guest", "guest")
    return pika.BlockingConnection(pika.ConnectionParameters(HOST, port, "/", credentials, **options))


class Session:
    """A connection, a channel and a durable queue, gone afterwards."""

    def __enter__(self):
        self.connection = connect()
        self.channel = self.connection.channel()
        self.queue = unique("pika")
        self.channel.queue_declare(self.queue, durable=True)
        return self

    def __exit__(self, *_):
        if self.channel.is_closed:
            self.channel = self.connection.channel()
        self.channel.queue_delete(self.queue)
        self.connection.close()

    def send(self, *bodies):
        if not getattr(self, "confirming", False):
            self.channel.confirm_delivery()
            self.confirming = True
        for body in bodies:
            self.channel.basic_publish("", self.queue, body)

    def get(self, auto_ack=True):
        return self.channel.basic_get(self.queue, auto_ack=auto_ack)


@check
def declares_publishes_with_confirms_and_gets():
    with Session() as s:
        exchange = unique("pika")
        s.channel.exchange_declare(exchange, "topic", durable=True)
        s.channel.queue_bind(s.queue, exchange, "a.#")
        s.channel.confirm_delivery()
        properties = pika.BasicProperties(content_type="text/plain", delivery_mode=2, headers={"n": 1, "s": "x"})
        s.channel.basic_publish(exchange, "a.b", b"hello", properties, mandatory=True)
        method, properties, body = s.get()
        assert body == b"hello" and method.routing_key == "a.b" and not method.redelivered
        assert properties.content_type == "text/plain" and properties.headers == {"n": 1, "s": "x"}
        assert s.get() == (None, None, None)
        s.channel.exchange_delete(exchange)


@check
def raises_for_a_mandatory_message_that_came_back():
    with Session() as s:
        s.channel.confirm_delivery()
        try:
            s.channel.basic_publish("", unique("nobody"), b"back", mandatory=True)
        except pika.exceptions.UnroutableError as error:
            assert error.messages[0].body == b"back" and error.messages[0].method.reply_code == 312
        else:
            raise AssertionError("not returned")


@check
def consumes_with_qos_acks_nacks_and_rejects():
    with Session() as s:
        s.send(b"ack", b"nack", b"reject")
        s.channel.basic_qos(prefetch_count=1)
        seen = []
        for method, _, body in s.channel.consume(s.queue, inactivity_timeout=5):
            seen.append((body, method.redelivered))
            if body == b"nack":
                s.channel.basic_nack(method.delivery_tag, requeue=not method.redelivered)
            elif body == b"reject":
                s.channel.basic_reject(method.delivery_tag, requeue=False)
            else:
                s.channel.basic_ack(method.delivery_tag)
            if len(seen) == 4:
                break
        s.channel.cancel()
        assert sorted(seen) == [(b"ack", False), (b"nack", False), (b"nack", True), (b"reject", False)], seen
        assert s.channel.queue_declare(s.queue, passive=True).method.message_count == 0


@check
def acks_several_at_once():
    with Session() as s:
        s.send(*[b"%d" % i for i in range(10)])
        last = None
        for _ in range(9):
            last, _, _ = s.get(auto_ack=False)
        s.channel.basic_ack(last.delivery_tag, multiple=True)
        s.channel.close()
        s.channel = s.connection.channel()
        assert s.get()[2] == b"9"
        assert s.get()[2] is None


@check
def recovers_what_it_holds():
    with Session() as s:
        s.send(b"held")
        s.get(auto_ack=False)
        s.channel.basic_recover(requeue=True)
        method, _, body = s.get()
        assert body == b"held" and method.redelivered


@check
def cancels_a_consumer_and_keeps_what_comes_later():
    with Session() as s:
        tag = s.channel.basic_consume(s.queue, lambda *_: None)
        s.channel.basic_cancel(tag)
        s.send(b"later")
        assert s.get()[2] == b"later"


@check
def is_told_that_its_queue_was_deleted():
    with Session() as s:
        other = s.connection.channel()
        cancelled = []
        s.channel.add_on_cancel_callback(cancelled.append)
        s.channel.basic_consume(s.queue, lambda *_: None)
        other.queue_delete(s.queue)
        s.connection.process_data_events(time_limit=1)
        assert len(cancelled) == 1


@check
def learns_why_its_channel_was_closed():
    with Session() as s:
        name = unique("none")
        try:
            s.channel.queue_declare(name, passive=True)
        except pika.exceptions.ChannelClosedByBroker as error:
            assert error.reply_code == 404 and error.reply_text == f"NOT_FOUND - no queue '{name}' in vhost '/'"
        else:
            raise AssertionError("not refused")
        assert s.connection.is_open


@check
def carries_a_large_body():
    with Session() as s:
        body = bytes(range(256)) * 8000
        s.send(body)
        assert s.get()[2] == body


@check
def calls_another_over_an_exclusive_reply_queue():
    with Session() as s:
        reply = s.channel.queue_declare("", exclusive=True).method.queue
        s.channel.basic_publish("", s.queue, b"20", pika.BasicProperties(reply_to=reply, correlation_id="7"))
        server = s.connection.channel()
        _, properties, body = next(server.consume(s.queue, auto_ack=True, inactivity_timeout=5))
        answer = pika.BasicProperties(correlation_id=properties.correlation_id)
        server.basic_publish("", properties.reply_to, b"%d" % (int(body) + 1), answer)
        _, properties, body = next(s.channel.consume(reply, auto_ack=True, inactivity_timeout=5))
        assert (properties.correlation_id, body) == ("7", b"21")


@check
def honours_a_short_heartbeat():
    connection = connect(heartbeat=1)
    connection.process_data_events(time_limit=3)
    assert connection.is_open
    connection.close()


@check
def connects_again_after_its_socket_was_cut():
    with Session() as s:
        port = int(os.environ["AMQP_PROXY_PORT"])
        s.send(b"before")
        connection = connect(port)
        channel = connection.channel()
        method, _, body = channel.basic_get(s.queue)
        assert body == b"before"
        say({"cut": True})
        try:
            while True:
                connection.process_data_events(time_limit=5)
                channel.queue_declare(s.queue, passive=True)
        except pika.exceptions.AMQPConnectionError:
            pass
        connection = connect(port)
        channel = connection.channel()
        method, _, body = next(channel.consume(s.queue, auto_ack=True, inactivity_timeout=5))
        assert body == b"before" and method.redelivered
        connection.close()


run()
