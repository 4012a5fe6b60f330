"""How the report's page looks: colours, widths, paper, and without its script."""

import itertools
import math

from page import check_drawn, contrast, place_of, rgb


STYLES = """(figure => figure.names.map((name, index) => {
    const [line, marker] = figure.root.querySelectorAll(`[data-n="${index}"] svg path`);
    const drawn = visible(figure).querySelector(`.n${index}.line`);
    const isHollow = marker.getAttribute("fill") === "#FFFFFF";
    return {
        colour: getComputedStyle(line).stroke, marker: marker.getAttribute("d"), isHollow,
        isDashed: drawn.hasAttribute("stroke-dasharray"), drawn: getComputedStyle(drawn).stroke,
        dot: `M15 6${visible(figure).querySelector(`.n${index}.dot`).dataset.d}`,
        edge: getComputedStyle(marker)[isHollow ? "fill" : "stroke"],
    };
}))(figures.at(-1))"""


def check_styles(browser):
    """Every two policies differ in marker and colour, visibly so where their lines have the same dashes; on screens and on paper."""
    seen = {}
    for scheme in ["light", "dark", "print"]:
        media = {"media": "print"} if scheme == "print" else {}
        browser.call("Emulation.setEmulatedMedia", **media, features=[{"name": "prefers-color-scheme", "value": "light" if scheme == "light" else "dark"}])
        browser.settle()
        styles = seen[scheme] = browser.evaluate(STYLES)
        assert len(styles) == 17, f"{len(styles)} policies"
        for one, other in itertools.combinations(styles, 2):
            assert (one["marker"], one["isHollow"]) != (other["marker"], other["isHollow"]), f"{scheme}: {one} {other}"
            far = math.dist(rgb(one["colour"]), rgb(other["colour"]))
            assert far > (25 if one["isDashed"] == other["isDashed"] else 10), f"{scheme}: {one} {other}"
        paper = rgb(browser.evaluate("getComputedStyle(document.body).backgroundColor"))
        for style in styles:
            assert style["drawn"] == style["colour"] and style["dot"] == style["marker"], f"{scheme}: the key shows another style: {style}"
            assert contrast(rgb(style["colour"]), paper) >= (4 if scheme == "dark" else 1.5), f"{scheme}: {style} is lost"
            assert rgb(style["edge"]) == paper, f"{scheme}: markers are not on paper: {style}"
    assert seen["print"] == seen["light"] and seen["dark"] != seen["light"], "paper is light, whatever the screen is"
    browser.colours("light")


def check_uncovered(browser):
    """No picture reaches over the words around it."""
    covered = browser.evaluate("""figures.filter(({ root }) => !root.hidden).flatMap(({ root }) => [...root.querySelectorAll(".toggle, .key, figcaption p, summary")].filter(node => {
        node.scrollIntoView({ block: "center", behavior: "instant" });
        const box = node.getBoundingClientRect();
        return box.width > 0 && [0.1, 0.5, 0.9].some(share => !node.contains(document.elementFromPoint(box.left + 4, box.top + share * box.height)));
    }).map(node => node.textContent))""")
    assert not covered, f"covered: {covered}"


# Texts that cover each other, or are cut off at the window: pairs and single ones.
CROWDED = """figures.filter(({ root }) => !root.hidden).flatMap(figure => {
    const texts = [...visible(figure).querySelectorAll("text")].map(e => [e, e.getBoundingClientRect()]).filter(([, box]) => box.width > 0);
    const name = e => `${figure.id}: ${e.textContent}`;
    const over = texts.flatMap(([one, a], index) => texts.slice(index + 1).filter(([, b]) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1
        && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 3).map(([other]) => `${name(one)} / ${other.textContent}`));
    const out = texts.filter(([, box]) => box.left < -0.5 || box.right > document.documentElement.clientWidth + 0.5).map(([e]) => name(e));
    return [...over, ...out];
})"""


def check_widths(browser, folder):
    for width in [1280, 390]:
        for scheme in ["light", "dark"]:
            browser.size(width)
            browser.colours(scheme)
            check_drawn(browser, f"{width} pixels, {scheme}")
            room = browser.evaluate("[document.documentElement.scrollWidth, document.body.scrollWidth, innerWidth]")
            assert max(room[:2]) <= width, f"{width} pixels: the page is {room} wide"
            paper = browser.evaluate("getComputedStyle(document.body).backgroundColor")
            assert (paper == "rgb(255, 255, 255)") == (scheme == "light"), f"{scheme}: paper is {paper}"
            behind = browser.evaluate("[...document.querySelectorAll('.plot > svg > path:first-child')].map(e => getComputedStyle(e).fill)")
            assert set(behind) == {paper}, f"{scheme}: pictures are on {set(behind)}"
            crowded = browser.evaluate(CROWDED)
            assert not crowded, f"{width} pixels: " + "\n".join(crowded)
            small = browser.evaluate("Math.min(...[...document.querySelectorAll('.plot > svg text')].filter(e => e.getClientRects().length).map(e => parseFloat(getComputedStyle(e).fontSize) * e.ownerSVGElement.getScreenCTM().a))")
            assert small > 9.5, f"{width} pixels: letters of {small} pixels"
            if folder:
                browser.screenshot(folder / f"{width}-{scheme}.png")
    classes = "figures.map(f => f.root.hidden || visible(f).classList.contains('narrow'))"
    assert all(browser.evaluate(classes)), "a narrow window shows a wide picture"
    # A tip is below its picture there, and within the window.
    x, y = place_of(browser, 0, 0.6, 0.5)
    browser.mouse("mouseMoved", x, y)
    browser.settle()
    tip = browser.evaluate("(e => [e.top, e.left, e.right])(figures[0].plot.querySelector('.tip').getBoundingClientRect())")
    picture = browser.evaluate("visible(figures[0]).getBoundingClientRect().bottom")
    assert tip[0] >= picture - 1 and tip[1] >= 0 and tip[2] <= 390, f"{tip} {picture}"
    browser.mouse("mouseMoved", 1, 1)
    browser.evaluate("document.getElementById('theme').click()")
    browser.settle()
    assert browser.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)", "the button for light colours"
    browser.evaluate("document.getElementById('theme').click()")
    browser.size(1280)


def check_print(browser, folder):
    """On paper everything is light, whatever the screen is, and there is nothing to press."""
    browser.colours("dark")
    screen = browser.evaluate("visible(figures[0]).querySelector('.heading') && labels(figures[0], 'x')")
    browser.call("Emulation.setEmulatedMedia", media="print", features=[{"name": "prefers-color-scheme", "value": "dark"}])
    browser.settle()
    fills = browser.evaluate("[document.body].map(e => getComputedStyle(e).backgroundColor).concat([...document.querySelectorAll('.plot > svg > path:first-child')].map(e => getComputedStyle(e).fill))")
    assert set(fills) == {"rgb(255, 255, 255)"}, f"paper is {set(fills)}"
    ink = browser.evaluate("getComputedStyle(visible(figures[0]).querySelector('.frame > text')).fill")
    assert contrast(rgb(ink), [255] * 3) > 10, f"ink is {ink}"
    left = browser.evaluate("[...document.querySelectorAll('.controls, .choices, .tip, #theme')].filter(e => e.getClientRects().length).length")
    assert left == 0, f"{left} buttons on paper"
    assert browser.evaluate("labels(figures[0], 'x')") == screen and browser.evaluate("visible(figures[0]).classList.contains('broad')")
    browser.pdf((folder or browser.folder) / "page.pdf")
    browser.colours("light")


def check_without_script(browser, page):
    """Without scripts all pictures are there, alternatives too, and nothing that could be pressed."""
    browser.call("Emulation.setScriptExecutionDisabled", value=True)
    browser.open(page)
    root = browser.call("DOM.getDocument")["root"]["nodeId"]

    def is_shown(selector):
        nodes = browser.call("DOM.querySelectorAll", nodeId=root, selector=selector)["nodeIds"]
        shown = 0
        for node in nodes:
            try:
                shown += browser.call("DOM.getBoxModel", nodeId=node)["model"]["height"] > 0
            except RuntimeError as error:
                assert "box model" in str(error), error
        return shown

    assert is_shown(".plot > svg.broad") == 9 and is_shown(".toggle") > 20
    assert is_shown(".controls") + is_shown(".choices") + is_shown("#theme") == 0
    browser.call("Emulation.setScriptExecutionDisabled", value=False)
