"""How much of what people write is found, by class, and how much is taken that is nothing?

python -m bench.redaction_recall                 every source, 20,000 cases in all; the misses are printed
python -m bench.redaction_recall seen 2000 7     one source, so many cases, this seed
"""

import json
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from bench.redaction_cases import Case, cases, sources

CASES = 20_000
SEED = 20_240
RECALL = {"credential": 0.99, "person": 0.97, "disguise": 0.98}
MOST_TAKEN = 0.005
MOST_CHANGED = 0.01
TURNS = 8
SHOWN = 40


@dataclass
class Result:
    asked: Counter[tuple[str, str]] = field(default_factory=Counter)
    missed: Counter[tuple[str, str]] = field(default_factory=Counter)
    misses: list[tuple[Case, str]] = field(default_factory=list)
    clean_characters: int = 0
    taken: int = 0
    taken_from: list[tuple[Case, str]] = field(default_factory=list)

    def recall(self, group: str) -> float:
        asked = sum(n for (g, _), n in self.asked.items() if g == group)
        missed = sum(n for (g, _), n in self.missed.items() if g == group)
        return 1 - missed / asked if asked else float("nan")

    @property
    def over_redaction(self) -> float:
        return self.taken / max(1, self.clean_characters)


def redacted(redactor, case: Case) -> tuple[str, int]:
    """What is stored of the case, and how many characters were replaced."""
    if case.carrier == "json":
        out = redactor.tree(json.loads(case.text))
        return json.dumps(out.value, ensure_ascii=False), sum(f.end - f.start for f in out.findings)
    out = redactor.text(case.text)
    return out.value, sum(f.end - f.start for f in out.findings)


def leaks(case: Case, stored: str) -> bool:
    return any(secret in stored or json.dumps(secret)[1:-1] in stored for secret in case.secrets)


def measure(some: Iterable[Case]) -> Result:
    from upswing.redact import Redactor

    redactor, result = Redactor(), Result()
    for case in some:
        stored, taken = redacted(redactor, case)
        if case.group == "clean":
            result.clean_characters += len(case.text)
            result.taken += taken
            if taken:
                result.taken_from.append((case, stored))
            continue
        key = (case.group, case.kind)
        result.asked[key] += 1
        if leaks(case, stored):
            result.missed[key] += 1
            result.misses.append((case, stored))
    return result


def clean_trajectories_changed(seed: int, count: int) -> float:
    """The share of clean trajectories, of eight turns each, of which something would be replaced."""
    import random

    from bench.redaction_cases._clean import clean

    from upswing.redact import Redactor

    redactor, texts, changed = Redactor(), clean(random.Random(seed)), 0
    for _ in range(count):
        turns = [{"turn_id": i, "action": {"text": next(texts).text}} for i in range(TURNS)]
        changed += redactor.tree({"turns": turns}).changed
    return changed / count


def report(result: Result, shown: int = SHOWN) -> None:
    for (group, kind), asked in sorted(result.asked.items()):
        print(
            f"{group:11} {kind:14} recall {1 - result.missed[group, kind] / asked:.4f} of {asked}"
        )
    for group, target in RECALL.items():
        print(f"{group:11} {'all':14} recall {result.recall(group):.4f}, target {target}")
    print(
        f"clean       over-redaction {result.over_redaction:.4%} of {result.clean_characters} characters, target {MOST_TAKEN:.1%}"
    )
    forms = Counter((c.group, c.kind, c.form, c.language, c.carrier) for c, _ in result.misses)
    for what, count in forms.most_common(shown):
        example = next(
            c for c, _ in result.misses if (c.group, c.kind, c.form, c.language, c.carrier) == what
        )
        print(
            f"missed {count:4} {'/'.join(what)}: {example.text[:160]!r} holds {example.secrets[0][:40]!r}"
        )
    for case, stored in result.taken_from[:shown]:
        print(f"taken from clean {case.carrier}/{case.language}: {stored[:200]!r}")


def rows():
    from bench.harness import Row, versions

    found = []
    for name in sources():
        count = CASES // len(sources())
        result = measure(cases(name, SEED, count))
        print(f"--- {name}", file=sys.stderr)
        report(result)
        for group, target in RECALL.items():
            if any(g == group for g, _ in result.asked):
                found.append(
                    Row(
                        name=f"redaction, recall on {name} cases, {group}",
                        value=result.recall(group),
                        target=target,
                        unit="",
                        versions=versions(),
                    )
                )
        if result.clean_characters:
            found.append(
                Row(
                    name=f"redaction, characters taken from clean {name} text",
                    value=result.over_redaction,
                    target=MOST_TAKEN,
                    better="lower",
                    unit="",
                    versions=versions(),
                )
            )
    changed = clean_trajectories_changed(SEED, 500)
    return [
        *found,
        Row(
            name="redaction, clean trajectories that lose exact tokens",
            value=changed,
            target=MOST_CHANGED,
            better="lower",
            unit="",
            versions=versions(),
        ),
    ]


if __name__ == "__main__":
    asked = sys.argv[1:]
    if asked:
        report(
            measure(
                cases(
                    asked[0],
                    int(asked[2]) if len(asked) > 2 else SEED,
                    int(asked[1]) if len(asked) > 1 else 2000,
                )
            )
        )
    else:
        rows()
