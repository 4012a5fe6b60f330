"""Checks a timeline against the rules of the trace event format, and draws it.

    python3 render.py DIR/runs/random-s1/timeline.json.gz --seconds 0 7200 > timeline.svg

Rules: every event has a phase, a process and a thread; complete events have a time and a duration of at least 0, instants a time and a scope;
spans of one thread are nested or apart; every process and thread that is used has a name.
"""

import argparse
import gzip
import html
import json
import sys
from fractions import Fraction

COLOURS = {"download": "#56b4e9", "compute": "#e69f00", "upload": "#009e73", "away": "#bbbbbb", "model down": "#56b4e9", "model up": "#009e73"}
INSTANTS = {"lost": "#d55e00", "late": "#cc79a7", "arrived": "#000000"}


def check(events):
    names, spans, used = set(), {}, set()
    for event in events:
        place = (event["pid"], event["tid"])
        if event["ph"] == "M":
            assert event["name"] in ("process_name", "process_sort_index", "thread_name") and event["args"]
            names.add((event["name"], *(place if event["name"] == "thread_name" else place[:1])))
            continue
        used.add(place)
        assert event["ts"] >= 0 and event["name"]
        if event["ph"] == "X":
            assert event["dur"] >= 0
            spans.setdefault(place, []).append((event["ts"], event["ts"] + event["dur"]))
        else:
            assert event["ph"] == "i" and event["s"] in "tpg", event
    for place in used:
        assert ("thread_name", *place) in names and ("process_name", place[0]) in names, place
    for place, pairs in spans.items():
        pairs.sort(key=lambda pair: (pair[0], -pair[1]))
        open_spans = []
        for start, end in pairs:
            while open_spans and open_spans[-1] <= start:
                open_spans.pop()
            assert not open_spans or end <= open_spans[-1], (place, float(start), float(end))
            open_spans.append(end)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("file")
    parser.add_argument("--seconds", nargs=2, type=float, default=[0, float("inf")])
    parser.add_argument("--check", action="store_true", help="check only")
    words = parser.parse_args()
    with gzip.open(words.file, "rt") as file:
        events = json.load(file, parse_float=Fraction, parse_int=Fraction)["traceEvents"]
    check(events)
    if words.check:
        print(f"{len(events)} events, all as the format asks", file=sys.stderr)
        return
    low, high = words.seconds
    shown = [e for e in events if e["ph"] != "M" and float(e["ts"]) / 1e6 <= high and float(e["ts"] + e.get("dur", 0)) / 1e6 >= low]
    high = min(high, max(float(e["ts"] + e.get("dur", 0)) / 1e6 for e in shown))
    rows = {place: row for row, place in enumerate(sorted({(e["pid"], e["tid"]) for e in shown}))}
    labels = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["ph"] == "M" and e["name"] == "thread_name"}
    left, top, wide, tall = 110, 40, 900, 14
    height = top + tall * len(rows) + 50
    x = lambda seconds: left + (min(max(seconds, low), high) - low) / (high - low) * wide
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + wide + 20}" height="{height}" font-family="sans-serif" font-size="10">']
    out.append(f'<rect width="100%" height="100%" fill="white"/>')
    for place, row in rows.items():
        out.append(f'<text x="{left - 6}" y="{top + row * tall + 10}" text-anchor="end">{html.escape(labels[place])}</text>')
    for event in sorted((e for e in shown if e["ph"] == "X"), key=lambda e: e["name"] == "away"):
        begin, end = float(event["ts"]) / 1e6, float(event["ts"] + event["dur"]) / 1e6
        y, colour = top + rows[(event["pid"], event["tid"])] * tall, COLOURS.get(event["name"], "#dddddd")
        stroke = ' stroke="white" stroke-width="0.5"' if event["pid"] < 3 else ""
        out.append(f'<rect x="{x(begin):.2f}" y="{y + 1}" width="{max(x(end) - x(begin), 0.3):.2f}" height="{tall - 2}" fill="{colour}"{stroke}/>')
    for event in shown:
        if event["ph"] == "i" and event["name"] in INSTANTS:
            y = top + rows[(event["pid"], event["tid"])] * tall + tall / 2
            out.append(f'<circle cx="{x(float(event["ts"]) / 1e6):.2f}" cy="{y}" r="2.5" fill="{INSTANTS[event["name"]]}"/>')
    for step in range(7):
        seconds = low + (high - low) * step / 6
        out.append(f'<text x="{x(seconds):.1f}" y="{height - 28}" text-anchor="middle">{seconds:,.0f} s</text>')
        out.append(f'<line x1="{x(seconds):.1f}" x2="{x(seconds):.1f}" y1="{top}" y2="{height - 40}" stroke="#00000022"/>')
    legend = [(COLOURS[name], name) for name in ("download", "compute", "upload", "away")] + [(c, f"● {n}") for n, c in INSTANTS.items()]
    for place, (colour, name) in enumerate(legend):
        out.append(f'<rect x="{left + place * 110}" y="14" width="10" height="10" fill="{colour}"/>')
        out.append(f'<text x="{left + place * 110 + 14}" y="23">{html.escape(name)}</text>')
    out.append(f'<text x="{left + wide / 2}" y="{height - 10}" text-anchor="middle">virtual time</text></svg>')
    print("\n".join(out))


main()
