"""Has the Python package do one thing to a trace, and prints the seconds of CPU time and what came out."""

import sys
import time

from shadow import _core

way, path = sys.argv[1:]
with open(path, "rb") as file:
    data = file.read()
records = None if way in ("verify", "parse") else _core.parse_agentlog(data)

began = time.process_time()
if way == "verify":
    made = 0
    for record in _core.parse_agentlog(data):
        made += record["id"] == _core.content_id(record["payload"])
elif way == "parse":
    made = len(_core.parse_agentlog(data))
elif way == "write":
    made = len(_core.write_agentlog(records))
elif way == "append":
    for record in records:
        record["id"] = _core.content_id(record["payload"])
    made = len(_core.write_agentlog(records))
elif way == "canon":
    made = sum(len(_core.canonical_bytes(record["payload"])) for record in records)
else:
    sys.exit(f"unknown: {way}")
print(time.process_time() - began, made)
