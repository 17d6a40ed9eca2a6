"""What comes of a run: JSON for programs, a table and a plot for readers."""

import json
import os
import platform
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
    }


def _measure(measure: Measure, found: list[Goal]) -> dict[str, Any]:
    values: dict[str, dict[str, Any]] = {
        name: {
            "value": measure.value(name),
            "lowest": min(rounds),
            "highest": max(rounds),
            "rounds": rounds,
        }
        for name, rounds in measure.rounds.items()
    }
    return {
        "title": measure.title,
        "unit": measure.unit,
        "better": {True: "lower", False: "higher", None: "neither"}[measure.lower_is_better],
        "values": values,
        "missing": measure.missing,
        "notes": measure.notes,
        "ratios": {
            f"lanner / {name}": ratio
            for name in values
            if name != LANNER.name and (ratio := measure.ratio(LANNER.name, name)) is not None
        },
        "goals": [
            {
                "what": goal.text,
                "ratio": goal.ratio,
                "bound": ("at most " if goal.at_most else "at least ") + f"{goal.bound:g}",
                "reached": goal.reached,
                "remark": goal.remark,
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
        "Medians, and the lowest and the highest of the rounds; a ratio is the median of those of the rounds.",
        "Only ratios travel to another machine.",
        "",
        "| measure | ratio | goal | reached |",
        "|---|---|---|---|",
    ]
    for each in data["measures"].values():
        for goal in each["goals"]:
            ratio = "not measured" if goal["ratio"] is None else f"{goal['ratio']:.3g} {goal['what']}"
            reached = {True: "yes", False: "**no**", None: "?"}[goal["reached"]]
            remark = f" ({goal['remark']})" if goal["remark"] else ""
            lines.append(f"| {each['title']} | {ratio} | {goal['bound']} | {reached}{remark} |")
    for each in data["measures"].values():
        lines += ["", f"**{each['title']}** ({each['unit'] or 'number'}, {each['better']} is better)", ""]
        lines += ["| | | lowest and highest round | Lanner's ratio |", "|---|---|---|---|"]
        best = sorted(each["values"].items(), key=lambda item: item[1]["value"], reverse=each["better"] == "higher")
        for name, value in best:
            figure, low, high = (_number(value[key], each["unit"]) for key in ("value", "lowest", "highest"))
            ratio = each["ratios"].get(f"lanner / {name}")
            note = f" ({each['notes'][name]})" if name in each["notes"] else ""
            said = "" if ratio is None else f"{ratio:.2f}"
            lines.append(f"| {name}{note} | {figure} | {low} to {high} | {said} |")
        lines += [f"| {name} | not measured: {why} | | |" for name, why in each["missing"].items()]
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
        figures = [each["values"][name]["value"] for name in present]
        # what counts of all rounds together may be outside of what each of them alone has
        below = [max(each["values"][name]["value"] - each["values"][name]["lowest"], 0) for name in present]
        above = [max(each["values"][name]["highest"] - each["values"][name]["value"], 0) for name in present]
        colours = [COLOURS.get(name, "#4c6ef5") for name in present]
        axis.barh(present, figures, xerr=(below, above), color=colours, ecolor="#495057", capsize=2)
        axis.set_title(f"{each['title']}\n{each['unit']}, {each['better']} is better", fontsize=9)
        axis.tick_params(labelsize=8)
        for side in ("top", "right"):
            axis.spines[side].set_visible(False)
    figure.suptitle(f"Lanner beside its peers: medians of one run, {data['server']}, {data['machine']['cores']} cores")
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
