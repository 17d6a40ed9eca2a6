"""What comes of a run: JSON for programs, a table and a plot for readers."""

import json
import os
import platform
import statistics
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .bench import Bench, Measure
from .contestants import LANNER, PEERS_ON_REDIS
from .goals import Goal, goals

HUNDRED, THOUSAND = 100, 1000
COLOURS = {LANNER.name: "#d9480f", "limit": "#adb5bd"}
PLOTTED = ("slots-1", "slots-32", "slots-100", "enqueue", "enqueue-100", "bulk", "pick-up", "memory")


def machine() -> dict[str, str]:
    """What it ran on."""
    model = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.is_file():
        names = [line.partition(": ")[2] for line in info.read_text().splitlines() if line.startswith("model name")]
        model = names[0] if names else model
    return {
        "processor": model,
        "cores": str(os.cpu_count()),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "load": " ".join(f"{each:.1f}" for each in os.getloadavg()),
    }


def as_data(bench: Bench, versions: Mapping[str, str]) -> dict[str, Any]:
    """Everything that was measured, with ratios and goals."""
    found = goals(bench.measures)
    return {
        "machine": machine(),
        "server": bench.server.label,
        "quick": bench.settings.quick,
        "versions": dict(versions),
        "measures": {id: _measure(each, found) for id, each in bench.measures.items() if each.rounds or each.missing},
        "scripts_over_5_ms": {name: times[:10] for name, times in bench.slow.items() if times},
    }


def _measure(measure: Measure, found: list[Goal]) -> dict[str, Any]:
    own = measure.median(LANNER.name)
    values: dict[str, dict[str, Any]] = {
        name: {
            "median": statistics.median(rounds),
            "lowest": min(rounds),
            "highest": max(rounds),
            "rounds": rounds,
        }
        for name, rounds in measure.rounds.items()
    }
    return {
        "title": measure.title,
        "unit": measure.unit,
        "better": "lower" if measure.lower_is_better else "higher",
        "values": values,
        "missing": measure.missing,
        "notes": measure.notes,
        "ratios": {
            f"lanner / {name}": own / value["median"]
            for name, value in values.items()
            if own is not None and name != LANNER.name and value["median"]
        },
        "goals": [
            {
                "what": goal.text,
                "ratio": goal.ratio,
                "bound": ("at most " if goal.at_most else "at least ") + f"{goal.bound:g}",
                "reached": goal.reached,
            }
            for goal in found
            if goal.measure == measure.id
        ],
    }


def write_json(data: dict[str, Any], path: Path) -> None:
    """Write the data."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(data, indent=1) + "\n")


def _number(value: float, unit: str) -> str:
    if unit.endswith("/s") and unit != "1/s" and value >= THOUSAND:
        return f"{value / THOUSAND:.1f} k"
    return f"{value:,.0f}" if value >= HUNDRED else f"{value:.3g}"


def _about(data: dict[str, Any]) -> str:
    about = data["machine"]
    return (
        f"{about['processor']}, {about['cores']} cores, {about['system']}, Python {about['python']}; {data['server']} "
        f"without persistence, TCP on the loopback; load average at the end {about['load']}."
    )


def write_table(data: dict[str, Any], path: Path) -> None:
    """Write two tables: goals with their ratios, and every figure."""
    lines = [
        "# Results",
        "",
        _about(data),
        "Medians of the rounds, lowest to highest in brackets. Only ratios travel to another machine.",
        "",
        "| measure | ratio | goal | reached |",
        "|---|---|---|---|",
    ]
    for each in data["measures"].values():
        for goal in each["goals"]:
            ratio = "not measured" if goal["ratio"] is None else f"{goal['ratio']:.3g} {goal['what']}"
            reached = {True: "yes", False: "**no**", None: "?"}[goal["reached"]]
            lines.append(f"| {each['title']} | {ratio} | {goal['bound']} | {reached} |")
    for each in data["measures"].values():
        lines += ["", f"**{each['title']}** ({each['unit'] or 'number'}, {each['better']} is better)", ""]
        lines += ["| | median | spread | Lanner's ratio |", "|---|---|---|---|"]
        best = sorted(each["values"].items(), key=lambda item: item[1]["median"], reverse=each["better"] == "higher")
        for name, value in best:
            median, low, high = (_number(value[key], each["unit"]) for key in ("median", "lowest", "highest"))
            ratio = each["ratios"].get(f"lanner / {name}")
            note = f" ({each['notes'][name]})" if name in each["notes"] else ""
            said = "" if ratio is None else f"{ratio:.2f}"
            lines.append(f"| {name}{note} | {median} | {low} to {high} | {said} |")
        lines += [f"| {name} | not measured: {why} | | |" for name, why in each["missing"].items()]
    slow = data["scripts_over_5_ms"]
    lines += ["", "Scripts of Lanner that held the server for longer than 5 ms (`SLOWLOG`): "]
    lines[-1] += "; ".join(f"{name}: {times} ms" for name, times in slow.items()) if slow else "none."
    lines += ["", "Versions: " + ", ".join(f"{name} {version}" for name, version in data["versions"].items()) + "."]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n")


def write_plot(data: dict[str, Any], path: Path) -> None:
    """Draw the measures that peers share, a panel each."""
    from matplotlib.figure import Figure  # noqa: PLC0415 - only a full run draws

    shared = [
        each
        for id, each in data["measures"].items()
        if id.partition(" ")[0] in PLOTTED and LANNER.name in each["values"]
    ]
    names = [LANNER.name, *(each.name for each in PEERS_ON_REDIS), "limit"]
    columns = 3
    rows = -(-len(shared) // columns)
    figure: Any = Figure(figsize=(15, 3.4 * rows))
    axes = figure.subplots(rows, columns, squeeze=False)
    for axis in axes.flat[len(shared) :]:
        axis.set_visible(False)
    for axis, each in zip(axes.flat, shared, strict=False):
        present = [name for name in reversed(names) if name in each["values"]]
        medians = [each["values"][name]["median"] for name in present]
        below = [each["values"][name]["median"] - each["values"][name]["lowest"] for name in present]
        above = [each["values"][name]["highest"] - each["values"][name]["median"] for name in present]
        colours = [COLOURS.get(name, "#4c6ef5") for name in present]
        axis.barh(present, medians, xerr=(below, above), color=colours, ecolor="#495057", capsize=2)
        axis.set_title(f"{each['title']}\n{each['unit']}, {each['better']} is better", fontsize=9)
        axis.tick_params(labelsize=8)
        for side in ("top", "right"):
            axis.spines[side].set_visible(False)
    figure.suptitle(f"Lanner beside its peers: medians of one run, {data['server']}, {data['machine']['cores']} cores")
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
