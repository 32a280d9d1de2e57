"""How the answers of the data_analysis suite follow from its tables: computed, not typed."""

import csv
import io
import re
from collections import Counter, defaultdict
from statistics import mean, median, pstdev, stdev


def table(task):
    """The rows of the table in a task, numbers as numbers."""
    text = re.search(r"```\n(.*?)```", task.messages[0]["content"], re.DOTALL)[1]
    return [
        {name: _value(sample_score) for name, sample_score in row.items()}
        for row in csv.DictReader(io.StringIO(text))
    ]


def _value(sample_score):
    try:
        return float(sample_score)
    except ValueError:
        return sample_score


def column(rows, name):
    return [row[name] for row in rows]


def groups(rows, by, name):
    found = defaultdict(list)
    for row in rows:
        found[row[by]].append(row[name])
    return found


def best(scores):
    return max(scores, key=scores.get)


def slope(xs, ys):
    mx, my = mean(xs), mean(ys)
    return sum((x - mx) * (y - my) for x, y in zip(xs, ys, strict=True)) / sum(
        (x - mx) ** 2 for x in xs
    )


def correlation(xs, ys):
    mx, my = mean(xs), mean(ys)
    top = sum((x - mx) * (y - my) for x, y in zip(xs, ys, strict=True))
    return top / (len(xs) * pstdev(xs) * pstdev(ys))


def _running(rows):
    total, day = 0, None
    for row in rows:
        total += row["units"]
        if day is None and total >= 100:
            day = row["day"]
    return day


def _outlier(rows):
    values = column(rows, "ms")
    middle = median(values)
    return max(rows, key=lambda row: abs(row["ms"] - middle))["request"]


def _cohort(rows):
    stayed = [
        row for row in rows if row["signed_up"] == "2024-01" and row["active_in_march"] == "yes"
    ]
    return 100 * len(stayed) / sum(row["signed_up"] == "2024-01" for row in rows)


def _joined(rows):
    orders = [row for row in rows if row["kind"] == "order"]
    prices = {row["item"]: row["value"] for row in rows if row["kind"] == "price"}
    return sum(prices[row["item"]] * row["value"] for row in orders)


def _latest(rows):
    newest = {}
    for row in rows:
        if row["sensor"] not in newest or row["time"] > newest[row["sensor"]]["time"]:
            newest[row["sensor"]] = row
    return mean(row["value"] for row in newest.values())


ANSWERS = {
    "data-total": lambda r: sum(column(r, "amount")),
    "data-mean": lambda r: mean(column(r, "score")),
    "data-median": lambda r: median(column(r, "price")),
    "data-region": lambda r: best({k: sum(v) for k, v in groups(r, "region", "sales").items()}),
    "data-growth": lambda r: 100 * (r[-1]["users"] / r[0]["users"] - 1),
    "data-weighted": lambda r: (
        sum(row["price"] * row["units"] for row in r) / sum(column(r, "units"))
    ),
    "data-missing": lambda r: mean(x for x in column(r, "age") if x != ""),
    "data-duplicates": lambda r: len(column(r, "email")) - len(set(column(r, "email"))),
    "data-correlation": lambda r: correlation(column(r, "hours"), column(r, "points")),
    "data-slope": lambda r: slope(column(r, "week"), column(r, "visits")),
    "data-stdev": lambda r: stdev(column(r, "weight")),
    "data-outlier": _outlier,
    "data-running": _running,
    "data-share": lambda r: (
        100
        * sum(row["minutes"] for row in r if row["team"] == "support")
        / sum(column(r, "minutes"))
    ),
    "data-mode": lambda r: Counter(column(r, "colour")).most_common(1)[0][0],
    "data-cohort": _cohort,
    "data-joined": _joined,
    "data-latest": _latest,
    "data-margin": lambda r: max(
        100 * (row["revenue"] - row["cost"]) / row["revenue"] for row in r
    ),
    "data-conversion": lambda r: (
        100
        * sum(row["orders"] for row in r if row["variant"] == "B")
        / sum(row["visitors"] for row in r if row["variant"] == "B")
        - 100
        * sum(row["orders"] for row in r if row["variant"] == "A")
        / sum(row["visitors"] for row in r if row["variant"] == "A")
    ),
    "data-moving": lambda r: max(mean(column(r, "temp")[i : i + 3]) for i in range(len(r) - 2)),
    "data-units": lambda r: sum(
        row["amount"] * {"g": 0.001, "kg": 1, "t": 1000}[row["unit"]] for row in r
    ),
    "data-percentile": lambda r: sorted(column(r, "ms"))[int(0.9 * len(r)) - 1],
    "data-reversal": lambda r: best(
        {k: mean(v) for k, v in groups(r, "clinic", "recovered_percent").items()}
    ),
}
