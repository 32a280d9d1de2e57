"""How quickly does jsonschema say that bytes are a trajectory?

    python jsonschema_validation.py SCHEMA.json TRAJECTORIES.jsonl

The validator is made once and reused, which is its quickest honest use.
"""

import json
import sys
from importlib.metadata import version
from pathlib import Path

from jsonschema import Draft202012Validator, ValidationError
from rounds import answer_rounds


def main() -> None:
    schema = json.loads(Path(sys.argv[1]).read_bytes())
    items = Path(sys.argv[2]).read_bytes().splitlines()
    validator = Draft202012Validator(schema)
    broken = json.loads(items[0])
    broken["turns"][-1]["turn_id"] = 0
    try:
        validator.validate(broken)
    except ValidationError:
        pass
    else:
        sys.exit("jsonschema accepts a broken trajectory: nothing would be compared.")

    def work(raw: bytes) -> None:
        validator.validate(json.loads(raw))

    answer_rounds(work, items, {"jsonschema": version("jsonschema")})


if __name__ == "__main__":
    main()
