"""What the tests in a browser use of the report's page."""

POISON = "<script>window.pwned=1</script>"

# What the tests use of the page: the picture that is seen of a figure, and the texts of its axes.
HELP = """
    const visible = figure => figure.pictures.find(({ svg }) => svg.getClientRects().length > 0)?.svg;
    const labels = (figure, axis) => [...visible(figure).querySelectorAll(`.frame > .${axis} text`)].map(e => e.textContent);
"""


def drawn(browser):
    """Per figure that is shown: kind, shapes in the picture, its size, width of the box around it, its number."""
    return browser.evaluate("""figures.filter(({ root }) => !root.hidden).map(figure => {
        const svg = visible(figure);
        const box = svg ? svg.getBoundingClientRect() : { width: 0, height: 0 };
        const shapes = svg ? svg.querySelectorAll("path:not(.gone)").length : 0;
        return [figure.id, figure.chart.kind, shapes, box.width, box.height, figure.plot.clientWidth, figures.indexOf(figure)];
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


def row_texts(browser, number):
    return browser.evaluate(f"[...figures[{number}].plot.querySelectorAll('.tip tr')].map(row => [...row.children].map(e => e.textContent))")


def tip_heading(browser, number):
    return browser.evaluate(f"figures[{number}].plot.querySelector('.tip:not([hidden]) .heading')?.textContent")


def words(value):
    """A number as the page has it, for those between 0.0001 and 10,000."""
    text = f"{float(f'{value:.4g}')}"
    return text.removesuffix(".0")


def press(browser, key, modifiers=0):
    for kind in ["keyDown", "keyUp"]:
        browser.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, modifiers=modifiers)
    browser.settle()


def rgb(colour):
    return [int(part) for part in colour.removeprefix("rgb(").removesuffix(")").split(",")]


def contrast(one, other):
    def luminance(colour):
        parts = [part / 255 for part in colour]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    low, high = sorted([luminance(one), luminance(other)])
    return (high + 0.05) / (low + 0.05)
