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

POISON = "<script>window.pwned=1</script>"


def drawn(browser):
    """Per figure that is shown: kind, elements in the picture, its size, width of the svg against that of its box, its number."""
    return browser.evaluate("""figures.filter(({ root }) => !root.hidden).map(figure => {
        const { id, chart, plot } = figure;
        const svg = plot.querySelector("svg");
        const box = svg ? svg.getBoundingClientRect() : { width: 0, height: 0 };
        return [id, chart.kind, plot.querySelectorAll("svg path:not(.tip path)").length, box.width, box.height, plot.clientWidth, figures.indexOf(figure)];
    })""")


def check_drawn(browser, where):
    figures = drawn(browser)
    assert {kind for _, kind, *_ in figures} == {"lines", "heat", "bars", "intervals"}, figures
    for figure in figures:
        _, _, paths, width, height, room, _ = figure
        assert paths >= 10 and width >= 240 and height >= 150 and width <= room + 1, f"{where}: not drawn: {figure}"


def check_harmless(browser, when):
    assert browser.evaluate("window.pwned") is None, f"a text ran as a script {when}"
    found = browser.evaluate("document.querySelectorAll('main script, main img, main iframe, .plot foreignObject').length")
    assert found == 0, f"{found} elements came out of texts {when}"


def check_page(browser):
    heading = browser.evaluate("document.querySelector('h1').textContent")
    assert POISON in heading, f"the heading is not the report's title: {heading}"
    for selector in ["figcaption", "pre", "#verdicts", "#results", ".facts", ".warnings", ".legend", ".data caption", ".data th"]:
        texts = browser.evaluate(f"[...document.querySelectorAll('{selector}')].map(e => e.textContent).join(' ')")
        assert POISON in texts, f"{selector} does not show texts as they are"
    assert browser.evaluate("[...document.querySelectorAll('svg text')].some(e => e.textContent.includes('<script>'))")
    why = browser.evaluate("[...document.querySelectorAll('#why .decision')].map(e => [e.open, e.querySelectorAll('tbody tr').length, e.querySelectorAll('tr.chosen').length])")
    assert why == [[False, 12, 3], [True, 12, 3]], f"decisions: {why}"
    assert browser.evaluate("document.querySelectorAll('#why figure').length") == 1 and browser.evaluate("document.querySelector('#why figure .plot svg') !== null")
    for selector in ["#why h3", "#why summary", "#why tbody td", "#why thead th", "#why .note"]:
        texts = browser.evaluate(f"[...document.querySelectorAll('{selector}')].map(e => e.textContent).join(' ')")
        assert POISON in texts, f"{selector} does not show texts as they are"
    counts = browser.evaluate("figures.map(({ root }) => [root.querySelectorAll('.data table tbody tr').length, root.querySelectorAll('.data table').length])")
    for rows, tables in counts:
        assert 0 < rows <= 25 * tables, f"tables of figures: {counts}"
    unnamed = browser.evaluate("[...document.querySelectorAll('.plot')].filter(e => e.getAttribute('role') !== 'img' || !e.getAttribute('aria-label')).length")
    assert unnamed == 0, f"{unnamed} figures have no name"
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


def place_of(browser, number, across, down):
    """A point of a figure in the window, scrolled into view, by shares of its size."""
    return browser.evaluate(f"""(() => {{
        figures[{number}].plot.scrollIntoView({{ block: "center", behavior: "instant" }});
        const box = figures[{number}].plot.getBoundingClientRect();
        return [box.left + box.width * {across}, box.top + box.height * {down}];
    }})()""")


def click(browser, button):
    x, y = browser.evaluate(f"""(button => {{
        button.scrollIntoView({{ block: "center", behavior: "instant" }});
        const box = button.getBoundingClientRect();
        return [box.left + box.width / 2, box.top + box.height / 2];
    }})({button})""")
    browser.mouse("mouseMoved", x, y)
    browser.mouse("mousePressed", x, y, button="left", clickCount=1)
    browser.mouse("mouseReleased", x, y, button="left", clickCount=1)


def check_tips(browser):
    for figure in drawn(browser):
        kind, number = figure[1], figure[-1]
        x, y = place_of(browser, number, *{"lines": (0.3, 0.5), "heat": (0.2, 0.18), "bars": (0.5, 0.3), "intervals": (0.6, 0.3)}[kind])
        browser.mouse("mouseMoved", x, y)
        browser.mouse("mouseMoved", x + 3, y + 1)
        browser.settle()
        text = browser.wait(lambda n=number: browser.evaluate(f"figures[{n}].plot.querySelector('.tip')?.textContent"), f"a tip on {figure[0]}")
        assert POISON in text, f"{figure[0]}: {text}"
        if kind == "lines":
            lines = browser.evaluate(f"figures[{number}].names.length")
            rows = browser.evaluate(f"figures[{number}].plot.querySelectorAll('.tip tr').length")
            assert rows >= min(lines, 3), f"{figure[0]}: the tip has {rows} rows for {lines} series"
        check_harmless(browser, f"after a tip on {figure[0]}")
    # Lines under the pointer have more dots.
    browser.mouse("mouseMoved", 1, 1)
    browser.settle()


def check_styles(browser):
    """Every two series differ in marker and colour, visibly so where their lines have the same dashes; on screens and on paper."""
    for scheme in ["light", "dark", "print"]:
        browser.colours("dark" if scheme == "dark" else "light")
        if scheme == "print":
            browser.evaluate("window.dispatchEvent(new Event('beforeprint'))")
        browser.settle()
        styles = browser.evaluate("report.series.map(({ label }) => styleOf(label, themeNow()))")
        assert len(styles) == 18, f"{len(styles)} series"
        for one, other in itertools.combinations(styles, 2):
            assert (one["marker"], one["isHollow"]) != (other["marker"], other["isHollow"]), f"{scheme}: {one} {other}"
            far = math.dist(rgb(one["colour"]), rgb(other["colour"]))
            assert far > (25 if one["isDashed"] == other["isDashed"] else 10), f"{scheme}: {one} {other}"
        drawn = browser.evaluate("""[...figures.at(-1).plot.querySelectorAll('svg path[stroke-width="2.2"]')]
            .map(path => [path.getAttribute('stroke'), path.hasAttribute('stroke-dasharray')])""")
        styles = browser.evaluate("figures.at(-1).names.map(name => styleOf(name, themeNow()))")
        assert len(styles) == 17, f"{len(styles)} policies"
        expected = [[style["colour"], style["isDashed"]] for style in styles]
        assert sorted(drawn) == sorted(expected), f"{scheme}: {drawn}"
        texts = browser.evaluate("[...figures.at(-1).legend.querySelectorAll('path')].map(path => path.getAttribute('d'))")
        assert texts == [style["marker"] for style in styles], f"{scheme}: the legend shows other markers"
        if scheme == "print":
            browser.evaluate("window.dispatchEvent(new Event('afterprint'))")
    browser.colours("light")


def rgb(colour):
    return [int(part) for part in colour.removeprefix("rgb(").removesuffix(")").split(",")]


def check_hiding(browser):
    name = browser.evaluate("report.series[0].label")
    shown = "figures.filter(f => !f.root.hidden && f.names.includes(report.series[0].label)).map(f => [f.hidden.has(report.series[0].label), f.plot.querySelectorAll('svg path:not(.tip path)').length])"
    before = browser.evaluate(shown)
    click = "document.querySelector('#everywhere .toggle').click()"
    browser.evaluate(click)
    browser.settle()
    hidden = browser.evaluate(shown)
    assert len(before) >= 5 and all(is_hidden for is_hidden, _ in hidden), f"{name} is still there: {hidden}"
    assert all(after < paths for (_, paths), (_, after) in zip(before, hidden)), f"nothing went away: {before} {hidden}"
    browser.evaluate(click)
    browser.settle()
    again = browser.evaluate(shown)
    assert again == before, f"what was hidden did not come back: {before} {again}"
    browser.evaluate("figures[0].legend.querySelector('.toggle').click()")
    browser.settle()
    assert [is_hidden for is_hidden, _ in browser.evaluate(shown)][:2] == [True, False], "a legend is for its own figure"
    browser.evaluate("figures[0].legend.querySelector('.toggle').click()")


def check_scales(browser):
    labels = "[...figures[0].plot.querySelectorAll('svg text')].map(e => e.textContent).join('|')"
    linear = browser.evaluate(labels)
    browser.evaluate("figures[0].controls.querySelector('[data-scale=y-log]').click()")
    browser.settle()
    log = browser.evaluate(labels)
    assert log != linear and browser.evaluate("figures[0].picture.getOption().yAxis[0].type") == "log", "the axis is still linear"
    check_drawn(browser, "log axis")
    browser.evaluate("figures[0].controls.querySelector('[data-scale=x-log]').click()")
    browser.settle()
    check_drawn(browser, "two log axes")
    for axis in "xy":
        browser.evaluate(f"figures[0].controls.querySelector('[data-scale={axis}-linear]').click()")
    browser.settle()
    assert browser.evaluate(labels) == linear, "linear is not what it was"


def check_zoom(browser):
    ends = "(() => { const axis = figures[0].picture.getOption().xAxis[0]; return [axis.min, axis.max]; })()"
    whole = browser.evaluate(ends)
    x, y = place_of(browser, 0, 0.3, 0.5)
    browser.mouse("mousePressed", x, y, button="left", clickCount=1, buttons=1)
    browser.mouse("mouseMoved", x + 150, y, button="left", buttons=1)
    browser.mouse("mouseReleased", x + 200, y, button="left", clickCount=1)
    browser.settle()
    dragged = browser.evaluate(ends)
    assert whole[0] < dragged[0] < dragged[1] < whole[1], f"dragging: {whole} {dragged}"
    browser.mouse("mouseWheel", x, y, deltaX=0, deltaY=-100, modifiers=2)
    browser.wait(lambda: browser.evaluate(ends)[1] - browser.evaluate(ends)[0] < dragged[1] - dragged[0], "the wheel to zoom")
    check_drawn(browser, "zoomed")
    browser.evaluate("[...figures[0].files.querySelectorAll('button')].find(e => e.textContent === 'reset').click()")
    browser.settle()
    assert browser.evaluate(ends) == whole, "reset does not show everything"


def check_files(browser):
    for figure in drawn(browser):
        number = figure[-1]
        browser.evaluate(f"figures[{number}].root.querySelector('.data').open = true")
        for ending in ["svg", "png", "csv"]:
            button = f"[...figures[{number}].files.querySelectorAll('button')].find(e => e.textContent === '{ending.upper()}')"
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
    (0, "c.lines = []"),
    (0, "c.lines.length = 1; c.xs = [[5]]; Object.assign(c.lines[0], { xs: 0, band_xs: 0, values: [3], low: [2], high: [4] })"),
    (0, "c.lines.forEach(line => { line.values.fill(0); line.low.fill(-1); line.high.fill(0); }); f.scales = { x: 'log', y: 'log' }"),
    (0, "f.hidden = new Set(f.names)"),
    (3, "c.panels.forEach(panel => panel.cells.forEach(row => row.fill(null)))"),
    (3, "c.panels.forEach(panel => panel.cells.forEach(row => row.fill(0)))"),
    (3, "c.panels = []; c.columns = []; c.rows = []"),
    (4, "c.parts = []; c.categories = []"),
    (5, "c.rows = []"),
    (5, "c.rows.forEach(row => { row[2] = { value: 0, ci95: null }; })"),
]


def check_odd(browser):
    """Charts with nothing, one thing or zeros in them: what has no number is not drawn."""
    for number, change in ODD:
        bad = browser.evaluate(f"""(() => {{
            const f = {{ ...figures[{number}], chart: structuredClone(figures[{number}].chart), hidden: new Set() }};
            const c = f.chart;
            {change};
            f.names = namesIn(c);
            drawPicture(f);
            return /NaN|Infinity|undefined/.exec(f.plot.innerHTML + svgOf(f).text + csvOf(f))?.[0];
        }})()""")
        assert bad is None, f"{change}: {bad}"
    browser.evaluate("drawAll()")


def check_widths(browser, folder):
    for width in [1280, 400]:
        for scheme in ["light", "dark"]:
            browser.size(width)
            browser.colours(scheme)
            check_drawn(browser, f"{width} pixels, {scheme}")
            room = browser.evaluate("[document.documentElement.scrollWidth, document.body.scrollWidth, innerWidth]")
            assert max(room[:2]) <= width, f"{width} pixels: the page is {room} wide"
            paper = browser.evaluate("getComputedStyle(document.body).backgroundColor")
            assert (paper == "rgb(255, 255, 255)") == (scheme == "light"), f"{scheme}: paper is {paper}"
            if folder:
                browser.screenshot(folder / f"{width}-{scheme}.png")
    black = browser.evaluate("figures[0].plot.querySelectorAll('svg [stroke=\"rgb(0,0,0)\"][stroke-width=\"2.2\"]').length")
    assert not black, "black lines on dark paper"
    browser.evaluate("document.getElementById('theme').click()")
    browser.settle()
    assert browser.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)", "the button for light colours"
    browser.evaluate("document.getElementById('theme').click()")
    browser.size(1280)


def check_print(browser, folder):
    """On paper everything is light, whatever the screen is."""
    browser.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    browser.settle()
    assert browser.evaluate("themeNow() === THEMES.light && figures.every(({ plot, root }) => root.hidden || plot.querySelector('svg').getAttribute('viewBox'))")
    browser.evaluate("window.dispatchEvent(new Event('afterprint'))")
    browser.pdf((folder or browser.folder) / "page.pdf")


def main():
    program, page, *more = sys.argv[1:]
    folder = pathlib.Path(more[0]) if more else None
    browser = Chromium(program)
    try:
        browser.size(1280)
        browser.colours("light")
        browser.open(page)
        browser.wait(lambda: browser.evaluate("figures.at(-1).plot.querySelector('svg') !== null"), "the pictures")
        browser.settle()
        steps = [check_page, check_choices, check_styles, check_tips, check_hiding, check_scales, check_zoom, check_odd, check_files]
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
        assert not browser.requests(), f"the page asked a network for {browser.requests()}"
        assert not browser.complaints(), "the console has:\n" + "\n".join(browser.complaints())
        print("ok no request, nothing on the console")
    finally:
        browser.close()


main()
