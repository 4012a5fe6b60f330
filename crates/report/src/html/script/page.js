// The page: finds the pictures and listens to buttons, pointer and keyboard.
const figures = report.figures.map(data => {
  const root = document.getElementById(data.element);
  const plot = root.querySelector(".plot");
  const pictures = find(plot, ":scope > svg").map(svg => ({ svg, frame: frameOf(svg), height: svg.viewBox.baseVal.height }));
  const scales = Object.fromEntries(["x", "y", "value"].filter(axis => data.chart[axis]).map(axis => [axis, data.chart[axis].scales[0] ?? "linear"]));
  return { ...data, root, plot, pictures, scales, hidden: new Set(), window: null, spot: null };
});

// Alternatives: the figures of a family, of which one is shown.
function listenForChoices(box) {
  const family = figures.filter(({ root }) => root.parentElement === box.parentElement);
  const of = (figure, name) => new Map(figure.choice).get(name);
  let shown = family[0];
  // Of those with the wanted value the one that has most else in common with what is shown.
  const choose = (name, value) => {
    const common = figure => figure.choice.filter(([other, is]) => other !== name && of(shown, other) === is).length;
    shown = family.filter(figure => of(figure, name) === value).reduce((best, figure) => (common(figure) > common(best) ? figure : best));
    for (const figure of family) figure.root.hidden = figure !== shown;
    for (const button of find(box, "button")) button.setAttribute("aria-pressed", String(of(shown, button.dataset.of) === button.value));
    for (const select of find(box, "select")) select.value = of(shown, select.dataset.of);
  };
  box.addEventListener("click", ({ target }) => target.matches("button") && choose(target.dataset.of, target.value));
  box.addEventListener("change", ({ target }) => choose(target.dataset.of, target.value));
}

// What is shown takes the first places.
function fill(nodes) {
  for (const node of nodes) node.place ??= node.getAttribute("transform");
  const shown = nodes.filter(node => !node.classList.contains("gone"));
  shown.forEach((node, index) => node.setAttribute("transform", nodes[index].place));
  return shown.length;
}

// Rows and panels take the places of hidden ones, and what is below moves up.
function stack({ svg, height }) {
  const [across, pitch] = svg.querySelector(".items").dataset.items.split(" ").map(Number);
  const items = find(svg, ".item");
  const [lines, all] = [fill(items), items.length].map(count => Math.max(1, Math.ceil(count / across)));
  const less = (all - lines) * pitch;
  svg.viewBox.baseVal.height = height - less;
  svg.dataset.less = less;
  svg.querySelector(".foot").setAttribute("transform", `translate(0 ${-less})`);
  find(svg, ".aside").forEach((aside, line) => aside.classList.toggle("gone", line >= lines));
}

// Shows a figure with its present scales, hidden names and part of the axis.
function refresh(figure) {
  const { root, chart, hidden, scales, pictures } = figure;
  tell(figure, null);
  figure.names.forEach((name, index) => {
    find(root, `.n${index}`).forEach(node => node.classList.toggle("gone", hidden.has(name)));
    root.querySelector(`[data-n="${index}"]`)?.setAttribute("aria-pressed", String(!hidden.has(name)));
  });
  for (const { svg } of pictures) fill(find(svg, ".entry"));
  if (chart.kind === "lines") project(figure);
  else pictures.forEach(stack);
  for (const { svg } of pictures) svg.classList.toggle("off", (svg.dataset.scale ?? scales.value) !== scales.value);
  for (const button of find(root, "[data-axis]")) button.setAttribute("aria-pressed", String(scales[button.dataset.axis] === button.value));
  for (const note of find(root, ".beyond")) note.classList.toggle("gone", scales.y === "log");
  for (const button of find(root, "[data-zoom]").slice(2)) button.disabled = figure.window === null;
}

function hide(having, label, isHidden) {
  having.forEach(({ hidden }) => hidden[isHidden ? "add" : "delete"](label));
  having.forEach(refresh);
  const isOn = name => figures.some(({ names, hidden }) => names.includes(name) && !hidden.has(name));
  for (const button of find(document, "#everywhere button")) button.setAttribute("aria-pressed", String(isOn(button.textContent)));
}

// A window of the horizontal axis, by shares of what is shown now: 0 to 1 is all of it.
function zoom(figure, from, to) {
  const whole = fitted({ ...figure, window: null }).x;
  const now = seen(figure).frame.x;
  const ends = [from, to].map(share => (now.low + (now.high - now.low) * share - whole.low) / (whole.high - whole.low));
  if (ends[1] - ends[0] < 1e-6) return;
  // A move over the edge stops at the edge, with as wide a window.
  const over = ends[0] < 0 ? ends[0] : Math.max(0, ends[1] - 1);
  const [low, high] = ends.map(share => Math.min(Math.max(share - over, 0), 1));
  figure.window = low < 1e-9 && high > 1 - 1e-9 ? null : [low, high].map(share => whole.low + (whole.high - whole.low) * share);
  refresh(figure);
}

// Dragging with a mouse chooses a window; fingers scroll the page, and so does a bare wheel.
function listenForZoom(figure) {
  const { plot } = figure;
  const selection = element("div", { class: "selection" });
  let start = null;
  const shareAt = (event, { frame, inside } = seen(figure)) => Math.min(Math.max((inside(event)[0] - frame.left) / (frame.right - frame.left), 0), 1);
  const chosen = event => [start, shareAt(event)].sort((one, other) => one - other);
  plot.addEventListener("pointerdown", event => {
    if (event.pointerType !== "mouse" || event.button !== 0) return;
    start = shareAt(event);
    plot.setPointerCapture(event.pointerId);
  });
  plot.addEventListener("pointermove", event => {
    if (start === null) return;
    const { frame: { left, right, top, bottom }, scale, above } = seen(figure);
    const [from, to] = chosen(event).map(share => (left + share * (right - left)) * scale);
    plot.append(selection);
    selection.style.inset = `${(top - above) * scale}px auto auto ${from}px`;
    Object.assign(selection.style, { width: `${to - from}px`, height: `${(bottom - top) * scale}px` });
  });
  plot.addEventListener("lostpointercapture", event => {
    if (start === null) return;
    const [from, to] = chosen(event);
    start = null;
    selection.remove();
    if (to - from > 0.01) zoom(figure, from, to);
  });
  plot.addEventListener("dblclick", () => { figure.window = null; refresh(figure); });
  plot.addEventListener("wheel", event => {
    if (!event.ctrlKey) return;
    event.preventDefault();
    const [share, factor] = [shareAt(event), event.deltaY > 0 ? 1.3 : 1 / 1.3];
    zoom(figure, share - share * factor, share + (1 - share) * factor);
  }, { passive: false });
}

function listen(figure) {
  figure.root.querySelector(".files").append(document.getElementById("controls").content.cloneNode(true));
  if (figure.chart.kind !== "lines") figure.root.querySelector(".files .group").remove();
  figure.root.addEventListener("click", event => {
    const button = event.target.closest("button");
    const { n, axis, zoom: ends, save: ending } = button?.dataset ?? {};
    if (n !== undefined) hide([figure], figure.names[n], !figure.hidden.has(figure.names[n]));
    if (ending) save(figure, ending);
    if (ends) zoom(figure, ...ends.split(" ").map(Number));
    if (axis) figure.scales[axis] = button.value;
    if (axis === "x" || ends === "") figure.window = null;
    if (axis || ends === "") refresh(figure);
  });
  if (figure.pictures.length) listenForTips(figure);
  if (figure.pictures.length && figure.chart.kind === "lines") listenForZoom(figure);
}

// The row for all figures: a series counts as shown if any figure shows it.
function showEverywhere(box) {
  document.getElementById("hint").hidden = false;
  box.hidden = find(box, "button").length < 2;
  box.addEventListener("click", event => {
    const button = event.target.closest("button");
    if (button) hide(figures.filter(({ names }) => names.includes(button.textContent)), button.textContent, button.getAttribute("aria-pressed") === "true");
  });
  // A heading that a link leads to must not be under the row.
  if (getComputedStyle(box).position === "sticky") document.documentElement.style.scrollPaddingTop = `${box.offsetHeight + 16}px`;
}

function listenForTheme(button) {
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (document.documentElement.dataset.theme ?? (system.matches ? "dark" : "light")) === "dark";
  const show = () => Object.assign(button, { hidden: false, textContent: isDark() ? "Light colours" : "Dark colours" });
  button.addEventListener("click", () => { document.documentElement.dataset.theme = isDark() ? "light" : "dark"; show(); });
  system.addEventListener("change", show);
  show();
}

figures.forEach(listen);
find(document, ".choices").forEach(listenForChoices);
listenForTheme(document.getElementById("theme"));
find(document, "#everywhere").forEach(showEverywhere);
