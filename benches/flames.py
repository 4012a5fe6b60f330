"""Draws where a study's time goes: a flame graph from the samples of `perf`.

    RUSTFLAGS="-C force-frame-pointers=yes" cargo build --profile profiling --target-dir target/flames
    python benches/flames.py --fedgenie target/flames/profiling/fedgenie --data FOLDER [NAME…]

Each box is a function, as wide as its share of the processor time; what it calls lies on it. A pointer on a box shows
the share. Boxes of libraries that only pass on calls (threads, iterators, closures) are left out. Needs Linux's `perf`.
"""

import argparse
import html
import re
import subprocess
import tempfile
from collections import Counter
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
STUDIES = {
    "deadline": ["scenarios/studies/deadline.toml"],
    "fed_bac": ["scenarios/fed_bac/fashion_mnist_05.toml", "--set", "stop.rounds=2", "--set", "seeds=1"],
    "proxyrl": ["scenarios/proxyrl/ml100k.toml", "--set", "stop.rounds=20", "--set", "seeds=1"],
    "mab_frs": ["scenarios/mab_frs/table4.toml", "--set", "stop.rounds=4", "--set", "seeds=1"],
    "fedacs": ["scenarios/fedacs/table3_ciao.toml", "--set", "stop.rounds=4", "--set", "seeds=1"],
    "bsfl": ["scenarios/bsfl/growth.toml", "--set", "stop.rounds=150000", "--set", "seeds=1"],
}
PASSES_ON = re.compile(
    r"^(rayon|rayon_core|std|core|alloc|crossbeam|__|_start|main$|clone|start_thread|_?\[unknown)|\{closure|FnOnce|FnMut|"
    r"^fedgenie_learning::lanes::dispatch|^fedgenie::cli|^fedgenie_experiment::experiment::(threads|conduct|execution)"
)
KERNEL = re.compile(r"^fedgenie_learning::lanes::dispatch")
LEAST, WIDTH, ROW = 0.004, 1000, 17  # share of the narrowest box; units of the drawing


def without_types(name):
    """A function's name without the types in angle brackets, but for the type that a method is of."""
    method = re.match(r"^<(.+?)(?: as .+?)?>::(\w+)", name)
    if method:
        name = f"{method[1]}::{method[2]}"
    while (shorter := re.sub(r"<[^<>]*>", "", name)) != name:
        name = shorter
    return re.sub(r"::h[0-9a-f]{16}$|\+0x[0-9a-f]+$", "", name).replace("::::", "::")


def stacks(recording):
    """How often each stack was seen, its outermost function first."""
    text = subprocess.run(
        ["perf", "script", "-i", recording, "-F", "ip,sym", "--no-inline"], capture_output=True, text=True, check=True
    ).stdout
    found = Counter()
    for sample in text.split("\n\n"):
        frames = [without_types(line.split(None, 1)[-1].strip()) for line in sample.splitlines() if line.strip()]
        kept = []
        for name in frames:
            # The innermost function is where the time went, whatever it is; but a kernel has the name of what calls it.
            is_where = not kept and not KERNEL.search(name)
            if (is_where or not PASSES_ON.search(name)) and (not kept or kept[-1] != name):
                kept.append(name)
        if kept:
            found[tuple(reversed(kept))] += 1
    return found


def boxes(found):
    """(depth, begin, share, name) of every box that is wide enough."""
    total = sum(found.values())

    def level(group, depth, begin):
        by_name = Counter()
        for stack, count in group.items():
            if len(stack) > depth:
                by_name[stack[depth]] += count
        for name, count in sorted(by_name.items()):
            if count / total >= LEAST:
                yield depth, begin, count / total, name
                inner = {stack: times for stack, times in group.items() if len(stack) > depth and stack[depth] == name}
                yield from level(inner, depth + 1, begin)
            begin += count / total

    return list(level(found, 0, 0.0))


def drawing(title, found):
    all_boxes = boxes(found)
    height = ROW * (max(depth for depth, *_ in all_boxes) + 3)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="11">',
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
        f'<text x="4" y="14" font-size="13">{html.escape(title)}</text>',
    ]
    for depth, begin, share, name in all_boxes:
        x, y, width = begin * WIDTH, height - ROW * (depth + 1), share * WIDTH
        colour = f"hsl({20 + sum(name.encode()) % 30}, 80%, {66 + sum(name.encode()) % 14}%)"
        short = "::".join(name.split("::")[-2:])
        shown = short if len(short) * 6 < width else short[: int(width // 6)]
        lines.append(
            f'<g><title>{html.escape(name)} {100 * share:.1f} %</title><rect x="{x:.1f}" y="{y}" width="{width:.1f}" '
            f'height="{ROW - 1}" fill="{colour}"/><text x="{x + 2:.1f}" y="{y + 12}">'
            f"{html.escape(shown) if width > 20 else ''}</text></g>"
        )
    return "\n".join([*lines, "</svg>", ""])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fedgenie", type=Path, required=True, help="a program with frame pointers")
    parser.add_argument("--data", type=Path, required=True, help="folder of the data sets")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(STUDIES))
    options = parser.parse_args()
    for name in options.names or STUDIES:
        if name not in STUDIES:
            parser.error(f"{name}: expected one of {', '.join(STUDIES)}")
        with tempfile.TemporaryDirectory() as folder:
            recording, out = Path(folder) / "perf.data", Path(folder) / "out"
            run = [options.fedgenie, "run", *STUDIES[name], "--data", options.data, "--out", out, "--quiet"]
            subprocess.run(["perf", "record", "-q", "-F", "99", "-g", "-o", recording, *run], cwd=ROOT, check=True)
            found = stacks(recording)
        title = f"fedgenie run {' '.join(STUDIES[name])}: {sum(found.values()):,} samples"
        (HERE / "flames").mkdir(exist_ok=True)
        (HERE / "flames" / f"{name}.svg").write_text(drawing(title, found))
        of_function = Counter()
        for stack, count in found.items():
            of_function[stack[-1]] += count
        print(name)
        for function, count in of_function.most_common(8):
            print(f"  {100 * count / sum(found.values()):5.1f} %  {function}")


if __name__ == "__main__":
    main()
