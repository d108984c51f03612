"""The checks of one script: each prints one JSON line, {"check": ..., "ok": ..., "detail": ...}.

Used by the scripts beside it, which script.ts runs and judges by these lines. Separate so that each script is only
what a user of its library would write.
"""
import json
import os
import sys
import traceback
import uuid

URL = os.environ["AMQP_URL"]
HOST = os.environ["AMQP_HOST"]
PORT = int(os.environ["AMQP_PORT"])
CHECKS = []


def unique(prefix):
    """A name that no other test has."""
    return f"test-{prefix}-{uuid.uuid4().hex[:16]}"


def check(function):
    """Registers a check; its name is the function's, with spaces."""
    CHECKS.append(function)
    return function


def say(line):
    print(json.dumps(line), flush=True)


def run():
    """Runs every check, each on its own; the exit code tells whether all held."""
    failed = 0
    for function in CHECKS:
        name = function.__name__.replace("_", " ")
        try:
            function()
            say({"check": name, "ok": True})
        except BaseException:
            failed += 1
            say({"check": name, "ok": False, "detail": traceback.format_exc()})
    sys.exit(1 if failed else 0)
