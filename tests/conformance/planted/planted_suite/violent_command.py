"""The violent target as a command that writes its answers where it also writes everything else."""

import json
import os
import sys

from planted_suite.violent_target import target

steps = []
for line in sys.stdin:
    request = json.loads(line)
    result: object = {}
    if request["do"] == "hello":
        result = {"protocol": 1, "name": "violent", "version": "1.0"}
    elif request["do"] == "make":
        steps.append(target.make(request["description"]))
        result = {"step": len(steps) - 1}
    else:
        steps[request["step"]].apply(None, None, None)
        result = {"gradients": request["gradients"], "state": {"dict": {}}}
    os.write(1, json.dumps({"id": request["id"], "result": result}).encode() + b"\n")
