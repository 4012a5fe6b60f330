"""Opens a report of made-up, hostile texts in a browser and does what a reader would do.

usage: report.py CHROMIUM PAGE [FOLDER FOR SCREENSHOTS]
"""

import base64
import itertools
import math
import pathlib
import sys
import xml.etree.ElementTree as ElementTree

from chromium import Chromium
from looks import check_print, check_styles, check_uncovered, check_widths, check_without_script
from page import HELP, POISON, check_drawn, check_harmless, click, drawn, place_of, press, row_texts, tip_heading, words


def check_page(browser):
    heading = browser.evaluate("document.querySelector('h1').textContent")
    assert POISON in heading, f"the heading is not the report's title: {heading}"
    for selector in ["figcaption", "pre", "#verdicts", "#results", ".facts", ".warnings", ".legend", ".data caption", ".data th"]:
        texts = browser.evaluate(f"[...document.querySelectorAll('{selector}')].map(e => e.textContent).join(' ')")
        assert POISON in texts, f"{selector} does not show texts as they are"
    assert browser.evaluate("[...document.querySelectorAll('svg text')].some(e => e.textContent.includes('<script>'))")
    why = browser.evaluate("[...document.querySelectorAll('#why .decision')].map(e => [e.open, e.querySelectorAll('tbody tr').length, e.querySelectorAll('tr.chosen').length])")
    assert why == [[False, 12, 3], [True, 12, 3]], f"decisions: {why}"
    assert browser.evaluate("document.querySelectorAll('#why figure .plot > svg.broad').length") == 1
    for selector in ["#why h3", "#why summary", "#why tbody td", "#why thead th", "#why .note"]:
        texts = browser.evaluate(f"[...document.querySelectorAll('{selector}')].map(e => e.textContent).join(' ')")
        assert POISON in texts, f"{selector} does not show texts as they are"
    counts = browser.evaluate("figures.map(({ root }) => [root.querySelectorAll('.data table tbody tr').length, root.querySelectorAll('.data table').length])")
    for rows, tables in counts:
        assert 0 < rows <= 25 * tables, f"tables of figures: {counts}"
    unnamed = browser.evaluate("[...document.querySelectorAll('.plot')].filter(e => e.getAttribute('role') !== 'img' || !e.getAttribute('aria-label')).length")
    assert unnamed == 0, f"{unnamed} figures have no name"
    unreachable = browser.evaluate("[...document.querySelectorAll('.plot')].filter(e => e.tabIndex !== 0).length")
    assert unreachable == 0, f"{unreachable} figures cannot have the keyboard's focus"
    mute = browser.evaluate("[...document.querySelectorAll('button')].filter(e => !e.textContent.trim() || e.tabIndex < 0).length")
    assert mute == 0, f"{mute} buttons cannot be reached or have no name"


def check_choices(browser):
    """Of alternatives one is shown; the keyboard's focus stays on what was chosen. What all have in common is a sentence."""
    shown = "figures.filter(({ id, root }) => id.startsWith('differences') && !root.hidden).map(({ id }) => id)"
    assert browser.evaluate("document.querySelectorAll('.family').length") == 1
    names = browser.evaluate("[...document.querySelectorAll('.choices button')].map(e => e.getAttribute('aria-pressed'))")
    assert (names, browser.evaluate(shown)) == (["true", "false"], ["differences-regret"])
    browser.evaluate("document.querySelectorAll('.choices button')[1].focus(); document.activeElement.click()")
    browser.settle()
    assert browser.evaluate(shown) == ["differences-time"]
    assert browser.evaluate("document.activeElement === document.querySelectorAll('.choices button')[1]")
    check_drawn(browser, "an alternative")
    browser.evaluate("document.querySelectorAll('.choices button')[0].click()")
    browser.settle()
    assert browser.evaluate(shown) == ["differences-regret"]
    assert "the same for all 6: arrived" in browser.evaluate("document.querySelector('.plain').textContent")
    headings = browser.evaluate("figures.map(({ root }) => root.querySelector('.count').textContent)")
    assert headings == [f"Figure {number}." for number in [1, 2, 3, 4, 5, 6, 6, 7, 8]], headings
    first = browser.evaluate("[document.querySelector('.answer'), document.querySelector('#results table'), figures[0].plot].map(e => e.getBoundingClientRect().bottom + scrollY)")
    # Hostile texts take twice the room.
    assert first == sorted(first) and first[-1] < 1200, f"the first screen has answer, table and picture down to {first}"


def check_tips(browser):
    for figure in drawn(browser):
        kind, number = figure[1], figure[-1]
        x, y = place_of(browser, number, *{"lines": (0.3, 0.5), "heat": (0.2, 0.18), "bars": (0.5, 0.3), "intervals": (0.6, 0.3)}[kind])
        browser.mouse("mouseMoved", x, y)
        browser.mouse("mouseMoved", x + 3, y + 1)
        browser.settle()
        text = browser.wait(lambda n=number: browser.evaluate(f"figures[{n}].plot.querySelector('.tip:not([hidden])')?.textContent"), f"a tip on {figure[0]}")
        assert POISON in text, f"{figure[0]}: {text}"
        if kind == "lines":
            lines = browser.evaluate(f"figures[{number}].names.length")
            assert len(row_texts(browser, number)) >= min(lines, 3), f"{figure[0]}: {text}"
        check_harmless(browser, f"after a tip on {figure[0]}")
    # The numbers of one tip, from the data: the nearest point of every policy.
    x, y = place_of(browser, 1, 0.6, 0.5)
    browser.mouse("mouseMoved", x, y)
    browser.settle()
    left, right, low, high, chart = browser.evaluate("""(() => {
        const { left, right, x } = frameOf(visible(figures[1]));
        const box = visible(figures[1]).getBoundingClientRect();
        return [...[left, right].map(pixel => box.left + pixel * box.width / 860), x.low, x.high, figures[1].chart];
    })()""")
    wanted = low + (high - low) * (x - left) / (right - left)
    means = [line for line in chart["lines"] if line["role"] == "mean"]
    near = min((place for line in means for place in chart["xs"][line["xs"]]), key=lambda place: abs(place - wanted))
    expected = {}
    for line in means:
        before = [value for place, value in zip(chart["xs"][line["xs"]], line["values"]) if place <= near]
        if before and near <= chart["xs"][line["xs"]][-1]:
            expected[line["series"]] = words(before[-1])
    found = {name: value for _, name, value in row_texts(browser, 1)}
    assert len(expected) >= 2 and found == expected, f"{found} {expected}"
    values = [float(value) for _, _, value in row_texts(browser, 1)]
    assert values == sorted(values, reverse=True), f"rows are not in the order of lines: {values}"
    browser.mouse("mouseMoved", 1, 1)
    browser.settle()
    assert tip_heading(browser, 1) is None, "the tip stays when the pointer is gone"


def check_keyboard(browser):
    """Arrow keys move along the coordinates, over rows and over cells; a polite line says the values."""
    said = "figures[{}].root.querySelector('[aria-live=polite]').textContent"
    for kind, keys in {"lines": ["ArrowRight", "ArrowLeft"], "heat": ["ArrowRight", "ArrowUp"], "bars": ["ArrowDown", "ArrowUp"], "intervals": ["ArrowDown", "ArrowUp"]}.items():
        number = next(figure[-1] for figure in drawn(browser) if figure[1] == kind)
        browser.evaluate(f"figures[{number}].plot.focus()")
        headings = []
        for key in ["Home", keys[0], keys[1]]:
            press(browser, key)
            headings.append(browser.evaluate(said.format(number)))
        first, second, third = headings
        assert first and second and first != second and POISON in second, f"{kind}: {headings}"
        assert (third == first) == (kind != "heat"), f"{kind}: {headings}"
        outline = browser.evaluate(f"getComputedStyle(figures[{number}].plot).outlineStyle")
        assert outline != "none", f"{kind}: the focus is not seen"
        press(browser, "End")
        assert browser.evaluate(said.format(number)) not in headings, f"{kind}: the last place"
        assert browser.evaluate(f"figures[{number}].plot.querySelector('.here') !== null"), f"{kind}: the place is not marked"
        press(browser, "Escape")
        assert tip_heading(browser, number) is None, f"{kind}: Escape"
    xs = browser.evaluate("stops(figures[0], seen(figures[0])).map(stop => stop.value)")
    assert len(xs) == 250 and xs == sorted(xs)
    browser.evaluate("figures[0].plot.focus()")
    for key, shift, index in [("Home", 0, 0), ("ArrowRight", 0, 1), ("ArrowRight", 8, 11), ("End", 0, 249), ("ArrowRight", 0, 249), ("ArrowLeft", 8, 239)]:
        press(browser, key, shift)
        assert browser.evaluate("figures[0].spot.value") == xs[index], f"{key} leads to another place than {index}"
    browser.evaluate("document.activeElement.blur()")
    browser.settle()
    assert tip_heading(browser, 0) is None, "the tip stays when the focus is gone"


def check_hiding(browser):
    browser.evaluate("window.everybody = () => [...document.querySelectorAll('#everywhere .toggle')]; 0")
    name = browser.evaluate("everybody()[0].textContent")
    shown = """figures.filter(f => !f.root.hidden && f.names.includes(everybody()[0].textContent)).map(f => {
        const index = f.names.indexOf(everybody()[0].textContent);
        const ours = [...visible(f).querySelectorAll(`.n${index}`)];
        return [f.hidden.has(f.names[index]), ours.filter(e => e.getBoundingClientRect().height + e.getBoundingClientRect().width > 0).length, visible(f).getBoundingClientRect().height];
    })"""
    before = browser.evaluate(shown)
    browser.evaluate("everybody()[0].click()")
    browser.settle()
    hidden = browser.evaluate(shown)
    assert len(before) >= 5 and all(is_hidden and count == 0 for is_hidden, count, _ in hidden), f"{name} is still there: {hidden}"
    assert all(count > 0 for _, count, _ in before), f"nothing was there: {before}"
    assert sum(after[2] < first[2] - 10 for first, after in zip(before, hidden)) >= 2, f"rows leave gaps: {before} {hidden}"
    pressed = browser.evaluate("[everybody()[0], figures[0].root.querySelector('.toggle')].map(e => e.getAttribute('aria-pressed'))")
    assert pressed == ["false", "false"], pressed
    keys = browser.evaluate("[...figures[0].root.querySelectorAll('.keys .n0')].map(e => e.getBoundingClientRect().width)")
    assert len(keys) == 2 and not any(keys), f"the key names lines that are hidden: {keys}"
    browser.evaluate("everybody()[0].click()")
    browser.settle()
    again = browser.evaluate(shown)
    assert again == before, f"what was hidden did not come back: {before} {again}"
    click(browser, "figures[0].root.querySelector('.toggle')")
    browser.settle()
    assert [is_hidden for is_hidden, *_ in browser.evaluate(shown)][:2] == [True, False], "a legend is for its own figure"
    assert browser.evaluate("everybody()[0].getAttribute('aria-pressed')") == "true", "others still show it"
    click(browser, "figures[0].root.querySelector('.toggle')")
    # The axis shows what is left: without the highest line it ends lower, and all lines back give the picture as it was.
    first = browser.evaluate("visible(figures[0]).innerHTML")
    ends = "figures[0].pictures[0].frame.y.high"
    high = browser.evaluate(ends)
    highest = browser.evaluate("""(chart => figures[0].names.indexOf(chart.lines.filter(line => line.role === "mean")
        .reduce((best, line) => (line.values.at(-1) > best.values.at(-1) ? line : best)).series))(figures[0].chart)""")
    button = f"figures[0].root.querySelector('[data-n=\"{highest}\"]').click()"
    browser.evaluate(button)
    browser.settle()
    assert browser.evaluate(ends) < 0.9 * high, "the axis still makes room for a hidden line"
    check_places(browser, 0)
    browser.evaluate(button)
    browser.settle()
    assert browser.evaluate("visible(figures[0]).innerHTML") == first, "the picture is not as it was"


def check_places(browser, number):
    """The last points of shown lines lie where the axes say, computed here from the data."""
    frame, chart, hidden, paths = browser.evaluate(f"""(figure => [figure.pictures[0].frame, figure.chart, [...figure.hidden],
        [...figure.pictures[0].svg.querySelectorAll(".line")].map(path => [path.dataset.l, path.getAttribute("d")])])(figures[{number}])""")

    def pixel(axis, value, first, last):
        position = math.log10(value) if axis["isLog"] else value
        return first + (last - first) * (position - axis["low"]) / (axis["high"] - axis["low"])

    compared = 0
    for index, d in paths:
        line = chart["lines"][int(index)]
        x, y = chart["xs"][line["xs"]][-1], line["values"][-1]
        if line["series"] in hidden or "L" not in d or (frame["x"]["isLog"] and x <= 0) or (frame["y"]["isLog"] and y <= 0):
            continue
        found = [float(part) for part in d.rpartition("L")[2].split()]
        expected = [pixel(frame["x"], x, frame["left"], frame["right"]), pixel(frame["y"], y, frame["bottom"], frame["top"])]
        assert math.dist(found, expected) < 0.1, f"{line['series']}: {found} {expected}"
        compared += 1
    assert compared >= 2, f"{compared} lines"


def check_scales(browser):
    first = browser.evaluate("visible(figures[0]).innerHTML")
    linear = browser.evaluate("labels(figures[0], 'y')")
    click(browser, "figures[0].root.querySelector('[data-axis=y][value=log]')")
    browser.settle()
    log = browser.evaluate("labels(figures[0], 'y')")
    assert log != linear and browser.evaluate("figures[0].pictures[0].frame.y.isLog"), f"the axis is still linear: {log}"
    check_drawn(browser, "log axis")
    check_places(browser, 0)
    # Numbers stand where they say.
    ticks = browser.evaluate("""(({ svg, frame }) => {
        const heights = [...svg.querySelector(".frame > .y path").getAttribute("d").matchAll(/M[\\d.]+ ([\\d.]+)H/g)].map(found => Number(found[1]));
        return heights.map((height, index) => {
            const value = Number(svg.querySelectorAll(".frame > .y text")[index].textContent);
            return [value, 10 ** (frame.y.low + (frame.y.high - frame.y.low) * (frame.bottom - height) / (frame.bottom - frame.top))];
        });
    })(figures[0].pictures[0])""")
    assert len(ticks) >= 3 and all(abs(math.log(value / there)) < 0.02 for value, there in ticks), ticks
    click(browser, "figures[0].root.querySelector('[data-axis=x][value=log]')")
    browser.settle()
    check_drawn(browser, "two log axes")
    check_places(browser, 0)
    notes = "[...figures[0].root.querySelectorAll('.beyond')].map(e => e.getBoundingClientRect().width > 0)"
    assert browser.evaluate(notes) == [False], "a logarithmic axis shows the bound"
    pressed = browser.evaluate("[...figures[0].root.querySelectorAll('[data-axis]')].map(e => e.getAttribute('aria-pressed'))")
    assert pressed == ["false", "true", "false", "true"], pressed
    for axis in "xy":
        browser.evaluate(f"figures[0].root.querySelector('[data-axis={axis}][value=linear]').click()")
    browser.settle()
    assert browser.evaluate("visible(figures[0]).innerHTML") == first, "linear is not what it was"
    assert browser.evaluate(notes) == [True], "a linear axis does not show the bound"
    # Colours have scales, too.
    number = next(figure[-1] for figure in drawn(browser) if figure[1] == "heat")
    scale = f"visible(figures[{number}]).dataset.scale"
    cells = f"[...visible(figures[{number}]).querySelectorAll('.item path')].map(e => e.getAttribute('fill')).join()"
    before, colours = browser.evaluate(scale), browser.evaluate(cells)
    browser.evaluate(f"figures[{number}].root.querySelector('[data-axis=value][aria-pressed=false]').click()")
    browser.settle()
    assert browser.evaluate(scale) != before and browser.evaluate(cells) != colours, "colours have the same scale"
    browser.evaluate(f"figures[{number}].root.querySelector('[data-axis=value][aria-pressed=false]').click()")


def check_fit(browser):
    """The script's rule for axes and ticks is that of the drawn picture: of all lines, with nothing changed."""
    lines = browser.evaluate("figures.map((figure, number) => [number, figure.chart.kind]).filter(([, kind]) => kind === 'lines').map(([number]) => number)")
    assert len(lines) >= 4
    for number in lines:
        drawn, fitted, texts, own = browser.evaluate(f"""(figure => {{
            const {{ svg }} = figure.pictures[0];
            const frame = frameOf(svg);
            const texts = () => ["x", "y"].map(axis => [...svg.querySelectorAll(`.frame > .${{axis}} text`)].map(e => [e.textContent, e.getAttribute("x"), e.getAttribute("y")]));
            const drawn = texts();
            refresh(figure);
            move(figure, {{ svg, frame: {{ ...frame, ...fitted(figure) }} }});
            const own = texts();
            refresh(figure);
            return [frame, fitted(figure), drawn, own];
        }})(figures[{number}])""")
        for axis in "xy":
            one, other = drawn[axis], fitted[axis]
            size = one["high"] - one["low"]
            assert one["isLog"] == other["isLog"], f"{number} {axis}"
            assert all(abs(one[end] - other[end]) < 1e-3 * size for end in ["low", "high"]), f"{number} {axis}: {one} {other}"
        for one, other in zip(itertools.chain(*texts), itertools.chain(*own)):
            assert one[0] == other[0] and all(abs(float(a) - float(b)) < 0.6 for a, b in zip(one[1:], other[1:])), f"{number}: {one} {other}"
        assert [len(part) for part in texts] == [len(part) for part in own], f"{number}: {texts} {own}"


def check_zoom(browser):
    first = browser.evaluate("visible(figures[0]).innerHTML")
    ends = "(({ low, high }) => [low, high])(figures[0].pictures[0].frame.x)"
    whole = browser.evaluate(ends)
    x, y = place_of(browser, 0, 0.3, 0.5)
    browser.mouse("mousePressed", x, y, button="left", clickCount=1, buttons=1)
    browser.mouse("mouseMoved", x + 150, y, button="left", buttons=1)
    browser.settle()
    assert browser.evaluate("document.querySelector('.selection')?.getBoundingClientRect().width") == 150, "dragging is not seen"
    browser.mouse("mouseReleased", x + 200, y, button="left", clickCount=1)
    browser.settle()
    dragged = browser.evaluate(ends)
    assert whole[0] < dragged[0] < dragged[1] < whole[1], f"dragging: {whole} {dragged}"
    assert browser.evaluate("document.querySelector('.selection')") is None
    browser.mouse("mouseWheel", x, y, deltaX=0, deltaY=-100, modifiers=2)
    browser.wait(lambda: browser.evaluate(ends)[1] - browser.evaluate(ends)[0] < dragged[1] - dragged[0], "the wheel to zoom")
    check_drawn(browser, "zoomed")
    browser.evaluate("figures[0].root.querySelectorAll('.data')[0].open = true")
    wheeled = browser.evaluate(ends)
    click(browser, "figures[0].root.querySelector('[aria-label=\"To higher values\"]')")
    browser.settle()
    moved = browser.evaluate(ends)
    assert moved[0] > wheeled[0] and abs((moved[1] - moved[0]) - (wheeled[1] - wheeled[0])) < 1e-6 * whole[1], f"{wheeled} {moved}"
    click(browser, "figures[0].root.querySelector('[data-zoom=\"\"]')")
    browser.settle()
    assert browser.evaluate(ends) == whole and browser.evaluate("visible(figures[0]).innerHTML") == first, "reset does not show everything"


def check_files(browser):
    for figure in drawn(browser):
        number = figure[-1]
        browser.evaluate(f"figures[{number}].root.querySelector('.data').open = true")
        for ending in ["svg", "png", "csv"]:
            button = f"[...figures[{number}].root.querySelectorAll('[data-save]')].find(e => e.textContent === '{ending.upper()}')"
            path = browser.downloads / f"{figure[0]}.{ending}"
            if number == 0:
                click(browser, button)
                browser.wait(lambda path=path: path.exists() and path.stat().st_size > 100, path.name)
                data = path.read_bytes()
            else:
                # A browser stops and asks when a page saves many files; what would be saved is looked at before it is.
                name, text = browser.evaluate(f"""new Promise((done, failed) => {{
                    setTimeout(() => failed(new Error("nothing was saved")), 20000);
                    const saving = window.download;
                    window.download = (name, blob) => {{
                        window.download = saving;
                        const reader = new FileReader();
                        reader.onload = () => done([name, reader.result.split(",")[1]]);
                        reader.readAsDataURL(blob);
                    }};
                    {button}.click();
                }})""")
                assert name == path.name, name
                data = base64.b64decode(text)
            if ending == "png":
                assert data.startswith(b"\x89PNG\r\n\x1a\n") and len(data) > 5000, f"{path.name} is no picture"
            elif ending == "svg":
                root = ElementTree.fromstring(data)
                names = [element.tag.rpartition("}")[2] for element in root.iter()]
                assert names[0] == "svg" and names.count("path") >= 10, f"{path.name}: {names[:20]}"
                assert not {"script", "image", "foreignObject"} & set(names), f"{path.name} has more than shapes"
                assert POISON in root.find("{http://www.w3.org/2000/svg}title").text
            else:
                lines = data.decode().splitlines()
                assert len(lines) > 5 and not any(line.startswith(("=", "+", "@")) for line in lines), lines[:3]


ODD = [
    (0, "c.lines.forEach(line => { line.values = []; line.low = []; line.high = []; }); c.xs = c.xs.map(() => [])"),
    (0, "c.xs = c.xs.map(() => [5]); c.lines.forEach(line => { Object.assign(line, { values: [3], low: [2], high: [4] }); })"),
    (0, "c.lines.forEach(line => { line.values.fill(0); line.low.fill(-1); line.high.fill(0); }); f.scales = { x: 'log', y: 'log' }"),
    (0, "f.hidden = new Set(f.names)"),
    (0, "f.hidden = new Set(f.names.slice(1)); f.window = [100, 100.5]"),
    (2, "f.scales = { x: 'linear', y: 'log' }"),
]


def check_odd(browser):
    """Lines with nothing, one thing or zeros in them: what has no number is not drawn."""
    for number, change in ODD:
        bad = browser.evaluate(f"""(() => {{
            const f = {{ ...figures[{number}], chart: structuredClone(figures[{number}].chart), hidden: new Set() }};
            const c = f.chart;
            {change};
            refresh(f);
            const found = /NaN|Infinity|undefined/.exec(f.plot.innerHTML + svgOf(f).text + csvOf(f))?.[0];
            refresh(figures[{number}]);
            return found;
        }})()""")
        assert bad is None, f"{change}: {bad}"


def main():
    program, page, *more = sys.argv[1:]
    folder = pathlib.Path(more[0]) if more else None
    browser = Chromium(program)
    try:
        browser.size(1280)
        browser.colours("light")
        browser.open(page)
        browser.evaluate(HELP + "0")
        browser.wait(lambda: browser.evaluate("!document.getElementById('theme').hidden"), "the script")
        browser.settle()
        check_drawn(browser, "at first")
        steps = [check_page, check_uncovered, check_choices, check_fit, check_styles, check_tips, check_keyboard, check_hiding, check_scales, check_zoom, check_odd, check_files]
        for step in steps:
            step(browser)
            check_harmless(browser, f"after {step.__name__}")
            print(f"ok {step.__name__}")
        check_drawn(browser, "at first")
        check_widths(browser, folder)
        print("ok check_widths")
        check_print(browser, folder)
        print("ok check_print")
        check_harmless(browser, "at the end")
        check_without_script(browser, page)
        print("ok check_without_script")
        assert not browser.requests(), f"the page asked a network for {browser.requests()}"
        assert not browser.complaints(), "the console has:\n" + "\n".join(browser.complaints())
        print("ok no request, nothing on the console")
    finally:
        browser.close()


main()
