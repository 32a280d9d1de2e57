"""A gateway in a process of its own, as `upswing serve gateway` runs it: python process.py SETUP."""

import asyncio
import json
import sys
from pathlib import Path
from uuid import uuid4

import uvloop

from upswing.gateway.limits import Limits
from upswing.gateway.plan import read_plan
from upswing.gateway_runtime import GatewayProcess
from upswing.runtime import now


async def main(setup):
    process = GatewayProcess(
        nats_url=setup["nats_url"], instance="one", clock=now, new_id=uuid4,
        plan=read_plan(json.dumps(setup["plan"]).encode()), spool=Path(setup["spool"]),
        limits=Limits(**setup.get("limits", {})), keys=setup.get("keys"),
    )  # fmt: skip
    print(await process.start(port=setup["port"]), flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    uvloop.run(main(json.loads(sys.argv[1])))
