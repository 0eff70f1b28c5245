#!/usr/bin/env python3
"""A Relay worker with nothing but Python's standard library: it serves the handler `word_count`.
RELAY_SERVER=http://127.0.0.1:7788 RELAY_TOKEN=... python3 worker.py [--exit-when-idle]"""
import json, os, sys, threading, time, urllib.error, urllib.request, uuid

SERVER = os.environ.get("RELAY_SERVER", "http://127.0.0.1:7788")
TOKEN = os.environ.get("RELAY_TOKEN", "")


def word_count(config):
    return {"words": len(config["text"].split())}

HANDLERS = {"word_count": word_count}


def call(path, body):
    """Calls the API until there is an answer. Repeating is safe: every write is recorded once."""
    headers = {"content-type": "application/json", "authorization": f"Bearer {TOKEN}"}
    request = urllib.request.Request(f"{SERVER}/api/v1{path}", json.dumps(body).encode(), headers, method="POST")
    while True:
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            if error.code < 500 and error.code != 429:
                raise SystemExit(f"{path}: {error.code} {error.read().decode()}")
        except (urllib.error.URLError, OSError):
            pass  # The server is away; the result is kept until it is back.
        time.sleep(0.5)


def beat(worker, held):
    """Keeps the leases alive while their handlers work."""
    while not time.sleep(5):
        if held:
            call(f"/workers/{worker}/heartbeat", {"leases": [{"lease_id": lease} for lease in list(held)]})


def attempt(lease):
    try:
        return {"kind": "complete", "output": HANDLERS[lease["handler"]](lease["config"])}
    except Exception as error:
        return {"kind": "fail", "failure": {"class": "handler", "code": "HANDLER_THREW", "message": repr(error)}}


def main():
    worker = call("/workers/register", {"boot_id": str(uuid.uuid4()), "handlers": list(HANDLERS)})["worker_id"]
    settlements, held, drain = [], set(), False
    threading.Thread(target=beat, args=(worker, held), daemon=True).start()
    while settlements or not drain:
        body = {"limit": 0 if drain else 8, "wait_s": 1, "claim_id": str(uuid.uuid4()), "settlements": settlements}
        answer = call(f"/workers/{worker}/claim", body)
        held.clear(), held.update(lease["lease_id"] for lease in answer["leases"])
        drain = answer["drain"] or ("--exit-when-idle" in sys.argv and not settlements and not held)
        settlements = [{"lease_id": lease["lease_id"], **attempt(lease)} for lease in answer["leases"]]
    call(f"/workers/{worker}/deregister", {})


if __name__ == "__main__":
    main()
