"""How do the loop's logs get into Loki, and how long are they kept there?

The collector (Grafana Alloy) reads the JSON lines that `upswing up --log-format json --log-file PATH` writes. What
has few values becomes a label; ids become structured metadata, because every value of a label is a stream of its own.
"""

from __future__ import annotations

import json

from upswing.logs import IDS
from upswing.monitor.ops.targets import OpsSetup
from upswing.monitor.ops.yaml import dump

DAYS = 30
TIME = "time"
LABELS = ("level", "process", "action")
"""Fields of a log line that have few values."""
METADATA = ("logger", *(f"{name}_id" for name in IDS))
"""Fields by which somebody looks for lines."""
_ALLOY = """\
// Reads the loop's JSON logs and sends them to Loki: alloy run config.alloy

local.file_match "upswing" {
  path_targets = [%(paths)s]
}

loki.source.file "upswing" {
  targets    = local.file_match.upswing.targets
  forward_to = [loki.process.upswing.receiver]
}

loki.process "upswing" {
  stage.json {
    expressions = { %(fields)s }
  }
  stage.timestamp {
    source = %(time)s
    format = "RFC3339Nano"
  }
  stage.labels {
    values = { %(labels)s }
  }
  stage.structured_metadata {
    values = { %(metadata)s }
  }
  forward_to = [loki.write.upswing.receiver]
}

loki.write "upswing" {
  endpoint {
    url = %(push)s
  }
}
"""


def alloy_config(setup: OpsSetup) -> str:
    """`config.alloy`."""
    targets = setup.targets
    return _ALLOY % {
        "paths": ", ".join(
            f'{{ __path__ = {json.dumps(path)}, job = "upswing" }}' for path in targets.logs
        ),
        "fields": ", ".join(f'{name} = ""' for name in (TIME, *LABELS, *METADATA)),
        "time": json.dumps(TIME),
        "labels": ", ".join(f'{name} = ""' for name in LABELS),
        "metadata": ", ".join(f'{name} = ""' for name in METADATA),
        "push": json.dumps(f"{targets.loki.rstrip('/')}/loki/api/v1/push"),
    }


def loki_config() -> str:
    """`loki.yml`: one process, on files, that forgets after thirty days."""
    return dump(
        {
            "auth_enabled": False,
            "server": {"http_listen_address": "127.0.0.1", "http_listen_port": 3100},
            "common": {
                "instance_addr": "127.0.0.1",
                "path_prefix": "/var/lib/loki",
                "replication_factor": 1,
                "ring": {"kvstore": {"store": "inmemory"}},
                "storage": {
                    "filesystem": {
                        "chunks_directory": "/var/lib/loki/chunks",
                        "rules_directory": "/var/lib/loki/rules",
                    }
                },
            },
            "schema_config": {
                "configs": [
                    {
                        "from": "2025-01-01",
                        "store": "tsdb",
                        "object_store": "filesystem",
                        "schema": "v13",
                        "index": {"prefix": "index_", "period": "24h"},
                    }
                ]
            },
            "compactor": {
                "working_directory": "/var/lib/loki/compactor",
                "retention_enabled": True,
                "delete_request_store": "filesystem",
            },
            "limits_config": {
                "retention_period": f"{24 * DAYS}h",
                "allow_structured_metadata": True,
            },
            "analytics": {"reporting_enabled": False},
        }
    )
