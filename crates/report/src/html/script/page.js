// The page: reads the data, draws the figures, and listens to buttons, pointer, paper and system.
"use strict";

const report = clean(JSON.parse(document.getElementById("data").textContent));
const darkSystem = window.matchMedia("(prefers-color-scheme: dark)");
let isPrinting = false;

function themeNow() {
  if (isPrinting) return THEMES.light;
  const chosen = document.documentElement.dataset.theme;
  return THEMES[chosen ?? (darkSystem.matches ? "dark" : "light")];
}

function namesIn(chart) {
  const named = {
    lines: () => chart.lines.map(line => line.series),
    heat: () => chart.panels.map(panel => panel.label),
    bars: () => chart.categories,
    intervals: () => chart.rows.map(row => row[1]),
  }[chart.kind]();
  const order = name => report.series.findIndex(series => series.label === name);
  const rank = name => (order(name) < 0 ? report.series.length : order(name));
  return [...new Set(named)].sort((one, other) => rank(one) - rank(other));
}

// Fits and bounds: lines that the legend's buttons do not explain.
function keyedLines(figure) {
  if (figure.chart.kind !== "lines") return [];
  return figure.chart.lines.filter(line => (line.role === "fit" || line.role === "bound") && !figure.hidden.has(line.series));
}

function keyOf(figure, line) {
  const isBeyond = figure.beyond && line.role === "bound";
  return `${line.series}: ${line.label ?? line.role}${isBeyond ? " (leaves the frame)" : ""}`;
}

function styleOf(name, theme) {
  const found = report.series.find(series => series.label === name);
  if (!found) return { colour: theme.faint, marker: CIRCLE, isDashed: false, isHollow: false, paper: theme.paper };
  return { colour: paint(found.colour, theme), marker: found.marker, isDashed: found.is_dashed, isHollow: found.is_hollow, paper: theme.paper };
}

function scalesOf(chart) {
  return Object.fromEntries(["x", "y", "value"].filter(axis => chart[axis]).map(axis => [axis, chart[axis].scales[0] ?? "linear"]));
}

const figures = report.figures.map(data => {
  const root = document.getElementById(data.element);
  const part = name => root.querySelector(`.${name}`);
  return {
    ...data, names: namesIn(data.chart), root, hidden: new Set(), window: null, scales: scalesOf(data.chart),
    plot: part("plot"), legend: part("legend"), keys: part("keys"), controls: part("scales"), files: part("files"), style: styleOf, picture: null, width: 0,
  };
});

// Alternatives: the figures of a family, of which one is shown.
function addChoices(box) {
  const family = figures.filter(({ root }) => root.parentElement === box.parentElement);
  let shown = family[0];
  const of = figure => new Map(figure.choice);
  const names = [...new Set(family.flatMap(figure => figure.choice.map(([name]) => name)))];
  // Of those with the wanted value the one that has most else in common with what is shown.
  const choose = (name, value) => {
    const common = figure => figure.choice.filter(([other, is]) => other !== name && of(shown).get(other) === is).length;
    const able = family.filter(figure => of(figure).get(name) === value);
    shown = able.reduce((best, figure) => (common(figure) > common(best) ? figure : best));
    show();
    draw(shown);
  };
  const control = name => {
    const values = [...new Set(family.map(figure => of(figure).get(name)).filter(value => value !== undefined))];
    if (values.length < 2) return null;
    const now = of(shown).get(name);
    if (values.length <= 4) {
      const buttons = values.map(value => {
        const button = controlButton(value, `${name} ${value}`, () => choose(name, value));
        button.setAttribute("aria-pressed", String(value === now));
        return button;
      });
      return element("span", { class: "group", role: "group", "aria-label": name }, `${name}:`, ...buttons);
    }
    const select = element("select", { "aria-label": name }, ...values.map(value => element("option", { value }, value)));
    select.value = now;
    select.addEventListener("change", () => choose(name, select.value));
    return element("label", { class: "group" }, `${name}: `, select);
  };
  const show = () => {
    for (const figure of family) figure.root.hidden = figure !== shown;
    const at = [...box.querySelectorAll("button, select")].indexOf(document.activeElement);
    box.replaceChildren(...names.map(control).filter(group => group));
    if (at >= 0) box.querySelectorAll("button, select")[at]?.focus();
  };
  show();
}

// One picture that cannot be drawn must not take the others with it: its numbers are still there as a table.
function draw(figure) {
  if (figure.root.hidden) return;
  try {
    drawPicture(figure);
  } catch (error) {
    console.error(error);
    figure.plot.style.height = "auto";
    figure.plot.textContent = "This picture cannot be drawn here. Its numbers are in the table below.";
  }
}

function drawPicture(figure) {
  const theme = themeNow();
  const kind = KINDS[figure.chart.kind];
  // A sheet is narrower than most windows; the style sheet fits the picture to it.
  const width = isPrinting ? 700 : Math.max(240, figure.root.clientWidth);
  // Two pictures of lines fit a sheet, with their captions.
  const height = isPrinting && figure.chart.kind === "lines" ? 280 : Math.round(kind.height(figure, width, 0));
  figure.plot.style.height = `${height}px`;
  figure.width = figure.root.clientWidth;
  figure.picture ??= echarts.init(figure.plot, null, { renderer: "svg", width, height });
  if (figure.picture.getWidth() !== width || figure.picture.getHeight() !== height) figure.picture.resize({ width, height });
  const option = kind.option(figure, { theme, width, height, isFile: false });
  // On a narrow screen a tip would hide what it is about: there it stands below.
  const isBelow = width < 520 && figure.chart.kind !== "heat";
  const tip = {
    ...option.tooltip, confine: !isBelow, position: isBelow ? [0, height] : undefined, className: "tip", transitionDuration: 0, appendTo: figure.plot, enterable: false,
    formatter: hovered => TIPS[figure.chart.kind](figure, theme, hovered),
  };
  figure.picture.setOption({ ...option, tooltip: tip, animation: false, textStyle: { fontFamily: FONT }, backgroundColor: "transparent" }, { notMerge: true });
  // With it a sheet of another width scales the picture; without, it would cut it off.
  figure.plot.querySelector("svg").setAttribute("viewBox", `0 0 ${width} ${height}`);
  drawLegend(figure, theme);
  for (const update of figure.updates ?? []) update();
}

function toggle(label, drawn, isOn, act) {
  const button = element("button", { type: "button", class: "toggle", "aria-pressed": String(isOn) }, drawn, element("span", {}, label));
  button.addEventListener("click", act);
  return button;
}

// Elements are made anew; the one with the keyboard's focus keeps it.
function refill(box, children) {
  const focused = [...box.children].indexOf(document.activeElement);
  box.replaceChildren(...children);
  if (focused >= 0) box.children[focused]?.focus();
}

function drawLegend(figure, theme) {
  // Bars of clients are named beside them.
  const isNamed = figure.chart.kind === "bars" && !figure.names.some(name => report.series.some(series => series.label === name));
  const buttons = (isNamed ? [] : figure.names).map(name => {
    return toggle(name, sample(figure.style(name, theme), "mean"), !figure.hidden.has(name), () => {
      flip(figure, name, !figure.hidden.has(name));
      draw(figure);
      drawEverywhere();
    });
  });
  const keys = keyedLines(figure).map(line => {
    return element("span", { class: "key" }, sample(figure.style(line.series, theme), line.role), element("span", {}, keyOf(figure, line)));
  });
  const parts = figure.chart.kind !== "bars" ? [] : figure.chart.parts.map(([label], index) => element("span", { class: "key" }, partSample(index), element("span", {}, label)));
  const lineEnd = parts.length ? [element("span", { class: "break" })] : [];
  refill(figure.legend, [...buttons, ...lineEnd, ...parts]);
  figure.keys.replaceChildren(...keys);
}

function flip(figure, name, isHidden) {
  if (isHidden) figure.hidden.add(name);
  else figure.hidden.delete(name);
}

// The row for all figures: a series counts as shown if any figure shows it.
function drawEverywhere() {
  const box = document.getElementById("everywhere");
  if (!box) return;
  const used = report.series.filter(({ label }) => figures.some(figure => figure.names.includes(label)));
  document.getElementById("hint").hidden = false;
  box.hidden = used.length < 2;
  const buttons = used.map(({ label }) => {
    const having = figures.filter(figure => figure.names.includes(label));
    const isOn = having.some(figure => !figure.hidden.has(label));
    return toggle(label, sample(styleOf(label, themeNow()), "mean"), isOn, () => {
      for (const figure of having) flip(figure, label, isOn);
      having.forEach(draw);
      drawEverywhere();
    });
  });
  refill(box, [element("span", { class: "name" }, "All figures:"), ...buttons]);
  // A heading that a link leads to must not be under the row.
  const isAbove = getComputedStyle(box).position === "sticky";
  document.documentElement.style.scrollPaddingTop = isAbove ? `${box.offsetHeight + 16}px` : "";
}

function controlButton(text, label, act) {
  const button = element("button", { type: "button", "aria-label": label, title: label }, text);
  button.addEventListener("click", act);
  return button;
}

function addControls(figure) {
  const updates = [];
  const { chart } = figure;
  for (const axis of Object.keys(figure.scales)) {
    if (chart.kind === "bars" || chart.kind === "intervals" || chart[axis].scales.length < 2) continue;
    const group = element("span", { class: "group", role: "group", "aria-label": `Scale of ${chart[axis].label}` }, `${chart[axis].label}:`);
    for (const scale of chart[axis].scales) {
      const button = controlButton(scale, `${chart[axis].label}: ${scale} scale`, () => {
        figure.scales[axis] = scale;
        if (axis === "x") figure.window = null;
        draw(figure);
      });
      button.dataset.scale = `${axis}-${scale}`;
      updates.push(() => button.setAttribute("aria-pressed", String(figure.scales[axis] === scale)));
      group.append(button);
    }
    figure.controls.append(group);
  }
  if (chart.kind === "lines") figure.files.append(zoomControls(figure, updates));
  const files = element("span", { class: "group away", role: "group", "aria-label": "Save as" }, "Save:");
  for (const [name, act, what] of [["SVG", exportSvg, "Picture"], ["PNG", exportPng, "Picture"], ["CSV", exportCsv, "Data"]]) {
    files.append(controlButton(name, `${what} as ${name}`, () => act(figure)));
  }
  figure.files.append(files);
  figure.updates = updates;
}

// A window of the horizontal axis, by shares of what is shown now: 0 to 1 is all of it.
function zoom(figure, from, to) {
  const whole = lineFrames({ ...figure, window: null }).x;
  const frame = figure.frame.x;
  const ends = [valueAt(frame, from), valueAt(frame, to)].map(value => shareOf(whole, value));
  if (ends[1] - ends[0] < 1e-6) return;
  // Whoever moves over the edge stays at the edge with as wide a window.
  const over = ends[0] < 0 ? ends[0] : Math.max(0, ends[1] - 1);
  ends.forEach((share, at) => { ends[at] = Math.min(Math.max(share - over, 0), 1); });
  figure.window = ends[0] < 1e-9 && ends[1] > 1 - 1e-9 ? null : ends.map(share => valueAt(whole, share));
  draw(figure);
}

function zoomControls(figure, updates) {
  const box = element("span", { class: "group", role: "group", "aria-label": `Zoom along ${figure.chart.x.label}` }, "Zoom:");
  const reset = controlButton("reset", "Show the whole axis", () => { figure.window = null; draw(figure); });
  const back = controlButton("‹", "To lower values", () => zoom(figure, -0.25, 0.75));
  const forth = controlButton("›", "To higher values", () => zoom(figure, 0.25, 1.25));
  box.append(controlButton("+", "Zoom in", () => zoom(figure, 0.25, 0.75)), controlButton("−", "Zoom out", () => zoom(figure, -0.5, 1.5)), back, forth, reset);
  updates.push(() => [back, forth, reset].forEach(button => { button.disabled = figure.window === null; }));
  listenToPointer(figure);
  return box;
}

// Dragging with a mouse chooses a window; fingers scroll the page. A bare wheel does, too.
function listenToPointer(figure) {
  const { plot } = figure;
  const shareAt = event => {
    const { left, right } = figure.frame;
    return Math.min(Math.max((event.clientX - plot.getBoundingClientRect().left - left) / (right - left), 0), 1);
  };
  let start = null;
  let selection = null;
  const end = () => { selection?.remove(); selection = start = null; };
  plot.addEventListener("pointerdown", event => {
    if (event.pointerType !== "mouse" || event.button !== 0) return;
    start = shareAt(event);
    event.preventDefault();
  });
  window.addEventListener("pointermove", event => {
    if (start === null) return;
    const { left, right, top, bottom } = figure.frame;
    if (!selection) plot.append(selection = element("div", { class: "selection" }));
    const [from, to] = [start, shareAt(event)].sort((one, other) => one - other).map(share => left + share * (right - left));
    Object.assign(selection.style, { left: `${from}px`, width: `${to - from}px`, top: `${top}px`, height: `${bottom - top}px` });
  });
  window.addEventListener("pointerup", event => {
    if (start === null) return;
    const [from, to] = [start, shareAt(event)].sort((one, other) => one - other);
    end();
    if (to - from > 0.01) zoom(figure, from, to);
  });
  window.addEventListener("pointercancel", end);
  plot.addEventListener("dblclick", () => { figure.window = null; draw(figure); });
  plot.addEventListener("wheel", event => {
    if (!event.ctrlKey) return;
    event.preventDefault();
    const [share, factor] = [shareAt(event), event.deltaY > 0 ? 1.3 : 1 / 1.3];
    zoom(figure, share - share * factor, share + (1 - share) * factor);
  }, { passive: false });
}

function drawAll() {
  figures.forEach(draw);
  drawEverywhere();
}

function addThemeButton() {
  const button = document.getElementById("theme");
  const show = () => {
    const isDark = themeNow() === THEMES.dark;
    button.textContent = isDark ? "Light" : "Dark";
    button.setAttribute("aria-label", isDark ? "Change to light colours" : "Change to dark colours");
  };
  button.hidden = false;
  button.addEventListener("click", () => {
    document.documentElement.dataset.theme = themeNow() === THEMES.dark ? "light" : "dark";
    show();
    drawAll();
  });
  darkSystem.addEventListener("change", () => { show(); drawAll(); });
  show();
}

function paper(isNow) {
  if (isNow === isPrinting) return;
  isPrinting = isNow;
  drawAll();
}

figures.forEach(addControls);
document.querySelectorAll(".choices").forEach(addChoices);
addThemeButton();
unpack(document.getElementById("library").textContent).then(() => {
  drawAll();
  window.addEventListener("beforeprint", () => paper(true));
  window.addEventListener("afterprint", () => paper(false));
  new ResizeObserver(() => {
    if (!isPrinting) figures.filter(figure => figure.root.clientWidth !== figure.width).forEach(draw);
  }).observe(document.body);
}, () => {
  document.getElementById("old").hidden = false;
  for (const { plot } of figures) plot.hidden = true;
});
