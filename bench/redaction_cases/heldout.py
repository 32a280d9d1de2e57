"""Cases written from what people write, without a look at what the rules match.

    python -m bench.redaction_cases.heldout

prints how many there are of each sort, examples, and every case that is not sound.
"""

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from bench.redaction_cases import (
    Case,
    _heldout_clean,
    _heldout_clean_logs,
    _heldout_clean_prose,
    _heldout_config,
    _heldout_disguises,
    _heldout_documents,
    _heldout_identity,
    _heldout_people,
    _heldout_prose,
    _heldout_secrets,
)
from bench.redaction_cases._heldout_fill import Entry, render
from bench.redaction_cases._heldout_fillers import FILLERS

_WEIGHTS = {"credential": 36, "person": 24, "disguise": 20, "clean": 20}
_WRITTEN = _heldout_config.ENTRIES + _heldout_documents.ENTRIES
_SPOKEN = _heldout_clean_prose.ENTRIES
_RUN = _heldout_clean.ENTRIES + _heldout_clean_logs.ENTRIES


def _credential(rng: random.Random) -> Case:
    if rng.random() < 0.5:
        entry = _heldout_prose.dressed(rng, rng.choice(_heldout_prose.ENTRIES))
    else:
        entry = rng.choice(_WRITTEN)
    return render(rng, "credential", entry, _heldout_secrets.MAKERS, FILLERS)


def _person(rng: random.Random) -> Case:
    entry = rng.choice(_heldout_people.ENTRIES)
    if entry.carrier == "prose":
        entry = _heldout_prose.dressed(rng, entry)
    return render(rng, "person", entry, _heldout_identity.MAKERS, FILLERS)


def _alike(entry: Entry) -> list[Entry]:
    return [
        other
        for other in _SPOKEN + _RUN
        if (other.carrier, other.language, other.form)
        == (entry.carrier, entry.language, entry.form)
    ]


def _clean(rng: random.Random) -> Case:
    """One to five texts of a sort; a JSON document stays one document."""
    entry = rng.choice(_SPOKEN if rng.random() < 0.4 else _RUN)
    chosen = [entry]
    if entry.carrier != "json":
        more = [other for other in _alike(entry) if other is not entry]
        chosen += rng.sample(more, min(len(more), rng.randint(0, 4)))
    between = {"prose": " ", "code": "\n\n", "markdown": "\n\n"}.get(entry.carrier, "\n")
    shown = [render(rng, "clean", one, {}, FILLERS) for one in chosen]
    return replace(shown[0], text=between.join(case.text for case in shown))


_MAKERS = {
    "credential": _credential,
    "person": _person,
    "disguise": _heldout_disguises.disguised,
    "clean": _clean,
}


def _chance(case: Case) -> bool:
    """Whether a value stands a second time by chance, such as a PIN inside a ticket's number."""
    plain = case.group in {"credential", "person"}
    return plain and any(case.text.count(secret) > 1 for secret in case.secrets)


def cases(seed: int, count: int) -> Iterator[Case]:
    """So many distinct cases, the same ones for the same seed."""
    rng = random.Random(f"held out {seed}")
    groups, weights = list(_WEIGHTS), list(_WEIGHTS.values())
    seen: set[str] = set()
    while len(seen) < count:
        make = _MAKERS[rng.choices(groups, weights)[0]]
        # A group with few texts keeps its share: it is asked until it says something new.
        made = (make(rng) for _ in range(100))
        new = (case for case in made if case.text not in seen and not _chance(case))
        if case := next(new, None):
            seen.add(case.text)
            yield case


def unsound(case: Case) -> str | None:
    """Why a case would measure nothing, or `None`."""
    if case.group == "clean":
        return "a clean text has secrets" if case.secrets else None
    if not any(secret in case.text for secret in case.secrets):
        return "no secret stands in the text"
    return "an empty or tiny secret" if min(map(len, case.secrets)) < 2 else None


def main() -> None:
    made = list(cases(seed=1, count=10_000))
    for field in ("group", "kind", "form", "language", "carrier"):
        counted = Counter(
            getattr(case, field) if field == "group" else f"{case.group} {getattr(case, field)}"
            for case in made
        )
        print(f"\n{field}")
        for name, number in sorted(counted.items()):
            print(f"  {number:6} {name}")
    for group in _WEIGHTS:
        for case in [case for case in made if case.group == group][:3]:
            print(f"\n--- {group} {case.kind} {case.form} {case.language} {case.carrier}")
            print(case.text)
            print("secrets:", *case.secrets, sep="\n  ")
    wrong = [(reason, case) for case in made if (reason := unsound(case))]
    print(
        f"\n{len(made)} cases, {len({case.text for case in made})} distinct, {len(wrong)} unsound"
    )
    for reason, case in wrong[:20]:
        print(reason, case)


if __name__ == "__main__":
    main()
