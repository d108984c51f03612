"""kombu (over py-amqp), unchanged: producers, consumers, SimpleQueue, and its retrying."""
import os
import socket
import time

from checks import URL, check, run, say, unique
from kombu import Connection, Consumer, Exchange, Producer, Queue


def topology(kind="topic", key="a.#"):
    name = unique("kombu")
    exchange = Exchange(name, kind, durable=True)
    return exchange, Queue(name, exchange, routing_key=key, durable=True)


def clean(connection, exchange, queue):
    channel = connection.channel()
    queue(channel).delete()
    exchange(channel).delete()


@check
def declares_publishes_and_consumes():
    exchange, queue = topology()
    with Connection(URL) as connection:
        seen = []
        producer = Producer(connection)
        producer.publish({"hello": [1, 2]}, exchange=exchange, routing_key="a.b", declare=[queue], serializer="json")
        producer.publish({"nowhere": 1}, exchange=exchange, routing_key="b")

        def on_message(body, message):
            seen.append(body)
            message.ack()

        with Consumer(connection, queue, callbacks=[on_message], accept=["json"]):
            connection.drain_events(timeout=5)
        assert seen == [{"hello": [1, 2]}], seen
        clean(connection, exchange, queue)


@check
def publishes_with_confirms():
    exchange, queue = topology("direct", "k")
    with Connection(URL, transport_options={"confirm_publish": True}) as connection:
        producer = Producer(connection)
        for i in range(20):
            producer.publish(str(i), exchange=exchange, routing_key="k", declare=[queue])
        bound = queue(connection.default_channel)
        assert bound.queue_declare(passive=True).message_count == 20
        assert bound.get(no_ack=True).payload == "0"
        clean(connection, exchange, queue)


@check
def requeues_and_rejects():
    exchange, queue = topology("direct", "k")
    with Connection(URL, transport_options={"confirm_publish": True}) as connection:
        producer = Producer(connection)
        for body in ("requeue", "reject"):
            producer.publish(body, exchange=exchange, routing_key="k", declare=[queue])
        bound = queue(connection.default_channel)
        first, second = bound.get(), bound.get()
        first.requeue()
        second.reject()
        again = bound.get()
        assert again.payload == "requeue" and again.delivery_info["redelivered"]
        again.ack()
        assert bound.get() is None
        clean(connection, exchange, queue)


@check
def bounds_a_consumer_by_qos():
    exchange, queue = topology("direct", "k")
    with Connection(URL, transport_options={"confirm_publish": True}) as connection:
        producer = Producer(connection)
        for i in range(5):
            producer.publish(str(i), exchange=exchange, routing_key="k", declare=[queue])
        seen = []
        with connection.channel() as channel:
            consumer = Consumer(channel, queue, on_message=seen.append, prefetch_count=2)
            consumer.consume()
            try:
                while True:
                    connection.drain_events(timeout=0.3)
            except socket.timeout:
                pass
            assert len(seen) == 2, len(seen)
            seen[0].ack()
            connection.drain_events(timeout=5)
            assert len(seen) == 3, len(seen)
            consumer.cancel()
        clean(connection, exchange, queue)


@check
def returns_a_mandatory_message():
    with Connection(URL, transport_options={"confirm_publish": True}) as connection:
        returned = []
        channel = connection.channel()
        channel.events["basic_return"].add(lambda *args: returned.append(args))
        Producer(channel).publish("back", routing_key=unique("nobody"), mandatory=True)
        assert returned, "not returned"


@check
def works_with_a_simple_queue():
    name = unique("kombu")
    with Connection(URL) as connection:
        queue = connection.SimpleQueue(name)
        queue.put({"job": 1})
        message = queue.get(timeout=5)
        assert message.payload == {"job": 1}
        message.ack()
        queue.clear()
        queue.close()
        clean(connection, Exchange(name), Queue(name))


@check
def fans_out_to_exclusive_queues():
    exchange = Exchange(unique("kombu"), "fanout", durable=False, auto_delete=True)
    with Connection(URL) as connection:
        bound = [Queue("", exchange, exclusive=True)(connection.default_channel) for _ in range(2)]
        for queue in bound:
            queue.declare()
        Producer(connection.default_channel).publish("all", exchange=exchange)
        for queue in bound:
            message = None
            for _ in range(100):
                message = message or queue.get(no_ack=True)
            assert message is not None and message.payload == "all"


@check
def connects_again_after_its_socket_was_cut():
    exchange, queue = topology("direct", "k")
    url = f"amqp://guest:guest@{os.environ['AMQP_HOST']}:{os.environ['AMQP_PROXY_PORT']}//"
    with Connection(url, transport_options={"confirm_publish": True}) as connection:
        producer = Producer(connection)
        options = {"exchange": exchange, "routing_key": "k", "declare": [queue], "retry": True}
        policy = {"interval_start": 0.05, "interval_step": 0.05, "max_retries": 20}
        producer.publish("before", retry_policy=policy, **options)
        say({"cut": True})
        time.sleep(0.3)
        producer.publish("after", retry_policy=policy, **options)
        bound = queue(connection.default_channel)
        assert {bound.get(no_ack=True).payload, bound.get(no_ack=True).payload} == {"before", "after"}
        clean(connection, exchange, queue)


run()
