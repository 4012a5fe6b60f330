// What is told of a place that pointer or arrow keys choose: of lines the values at one coordinate, else those of a row or a cell.
const TELLS = {
  lines(figure, { value: x }) {
    const { chart, hidden } = figure;
    const at = (line, xs, values) => read(chart.xs[xs], values, line.is_staircase, x);
    const rows = figure.names.filter(name => !hidden.has(name)).flatMap(name => {
      const lines = chart.lines.filter(line => line.series === name);
      const found = lines.filter(line => line.role !== "seed").map(line => {
        const [value, ...ends] = [[line.xs, line.values], [line.band_xs, line.low], [line.band_xs, line.high]].map(([xs, values]) => at(line, xs, values));
        const label = line.label ?? { mean: "", fit: "fit", bound: "bound" }[line.role];
        return { value, mark: markOf(figure, name, line), name: label ? `${name}: ${label}` : name, text: withEnds(value, ends[0] === null ? null : ends) };
      });
      if (lines.some(line => line.role === "mean")) return found;
      const [low, high] = extreme(lines.map(line => at(line, line.xs, line.values)).filter(value => value !== null));
      return [...found, { value: low <= high ? low : null, mark: markOf(figure, name), name, text: low === high ? words(low) : `${words(low)} … ${words(high)}` }];
    });
    // In the order of the lines under the pointer.
    const known = rows.filter(({ value }) => value !== null).sort((one, other) => other.value - one.value);
    return { heading: `${chart.x.label} ${words(x, 6)}${chart.x.unit ? ` ${chart.x.unit}` : ""}`, rows: known };
  },
  heat({ chart, hidden }, { item, row, column }) {
    const panels = chart.panels.filter(panel => !hidden.has(panel.label));
    const rows = panels.map(panel => ({ name: panel.label, text: words(panel.cells[row]?.[column]), isHere: panel === chart.panels[item] }));
    return { heading: `${chart.x.label} ${chart.columns[column]}, ${chart.y.label} ${chart.rows[row]}: ${axisName(chart.value)}`, rows };
  },
  bars({ chart, root }, { item }) {
    const rows = chart.parts.map(([name, lengths], index) => ({ mark: root.querySelector(`[data-part="${index}"] svg`).cloneNode(true), name, text: words(lengths[item]) }));
    const sum = chart.parts.reduce((sum, [, lengths]) => sum + (lengths[item] ?? 0), 0);
    return { heading: `${chart.categories[item]}: ${axisName(chart.value)}`, rows: [...rows, { name: "sum", text: words(sum), isHere: true }] };
  },
  intervals(figure, { item }) {
    const [label, series, { value, ci95 }] = figure.chart.rows[item];
    return { heading: axisName(figure.chart.value), rows: [{ mark: markOf(figure, series), name: label, text: withEnds(value, ci95) }] };
  },
};

// The sample of a line in the key.
function markOf({ root, chart, names }, name, line) {
  const own = line && root.querySelector(`.key[data-l="${chart.lines.indexOf(line)}"] svg`);
  return (own ?? root.querySelector(`[data-n="${names.indexOf(name)}"] svg`))?.cloneNode(true);
}

// The picture that is seen, the size of its pixels, and a pointer's place in it.
function seen(figure) {
  const picture = figure.pictures.find(({ svg }) => svg.getClientRects().length > 0) ?? figure.pictures[0];
  const box = picture.svg.getBoundingClientRect();
  const { x, y, width } = picture.svg.viewBox.baseVal;
  const scale = box.width / width;
  return { ...picture, scale, above: y, inside: ({ clientX, clientY }) => [x + (clientX - box.left) / scale, y + (clientY - box.top) / scale] };
}

// Everything that can be told of, and where it is: the coordinates of shown lines, or the cells of shown rows and panels.
function stops(figure, { svg, frame }) {
  const { chart, hidden } = figure;
  if (frame) {
    const { left, right, top, bottom, x: axis } = frame;
    const lines = chart.lines.filter(line => !hidden.has(line.series));
    const measured = lines.filter(line => line.role === "mean" || line.role === "seed");
    const xs = [...new Set((measured.length ? measured : lines).flatMap(line => chart.xs[line.xs]))].sort((one, other) => one - other);
    const isIn = share => share > -1e-9 && share < 1 + 1e-9;
    const shown = xs.filter(x => (!axis.isLog || x > 0) && isIn(shareOf(axis, x)));
    return shown.map(value => ({ value, left: left + (right - left) * shareOf(axis, value), top, width: 0, height: bottom - top }));
  }
  const [, , x, y, width, height] = svg.querySelector(".items").dataset.items.split(" ").map(Number);
  const [columns, rows] = chart.kind === "heat" ? [chart.columns.length, chart.rows.length] : [1, 1];
  const size = { width: width / columns, height: height / rows };
  return find(svg, ".item").flatMap((node, item) => {
    if (node.classList.contains("gone")) return [];
    const [right, down] = node.getAttribute("transform").match(/-?[\d.]+/g).map(Number);
    const place = (row, column) => ({ item, row, column, left: right + x + column * size.width, top: down + y + (rows - 1 - row) * size.height, ...size });
    return Array.from({ length: columns * rows }, (_, cell) => place(rows - 1 - Math.floor(cell / columns), cell % columns));
  });
}

// The stop under the pointer; of lines the nearest one.
function under(figure, event) {
  const picture = seen(figure);
  const [x, y] = picture.inside(event);
  const distance = stop => Math.max(stop.left - x, x - stop.left - stop.width, 0) + Math.max(stop.top - y, y - stop.top - stop.height, 0);
  const nearest = stops(figure, picture).reduce((best, stop) => (best && distance(best) <= distance(stop) ? best : stop), null);
  const { frame } = picture;
  const isIn = frame ? x > frame.left - 20 && x < frame.right + 20 : nearest && distance(nearest) < 1;
  return isIn ? nearest : null;
}

const DIRECTIONS = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] };

// The stop that a key leads to: the nearest in its direction.
function beside(figure, key) {
  const all = stops(figure, seen(figure));
  const now = figure.spot;
  if (!now || !(key in DIRECTIONS)) return (key === "End" ? all.at(-1) : all[0]) ?? null;
  const [right, down] = DIRECTIONS[key];
  const along = stop => (stop.left - now.left) * right + (stop.top - now.top) * down;
  const aside = stop => Math.abs((stop.left - now.left) * down) + Math.abs((stop.top - now.top) * right);
  const cost = stop => along(stop) + 4 * aside(stop);
  return all.filter(stop => along(stop) > 1e-6).sort((one, other) => cost(one) - cost(other))[0] ?? now;
}

// Tells of a stop, or of nothing.
function tell(figure, spot, isSaid) {
  figure.spot = spot;
  find(figure.plot, ".here").forEach(node => node.remove());
  const tip = figure.plot.querySelector(".tip");
  tip.hidden = !spot;
  if (!spot) return;
  const { heading, rows } = TELLS[figure.chart.kind](figure, spot);
  const row = ({ mark, name, text, isHere }) => element("tr", isHere ? { class: "mine" } : {}, element("td", {}, mark ?? ""), element("td", {}, name), element("td", { class: "number" }, text));
  tip.replaceChildren(element("p", { class: "heading" }, heading), element("table", {}, ...rows.map(row)));
  if (isSaid) figure.root.querySelector(".said").textContent = `${heading}. ${rows.map(({ name, text }) => `${name} ${text}`).join("; ")}`;
  const { svg, scale, above } = seen(figure);
  svg.append(svgElement("path", { class: "here", d: `M${spot.left} ${spot.top}v${spot.height}h${spot.width}v${-spot.height}z` }));
  const isWide = spot.width > 200;
  const [left, top] = [(spot.left + spot.width * (isWide ? 0.5 : 1)) * scale, (spot.top - above + (isWide ? spot.height : 20)) * scale];
  tip.style.left = `${Math.max(0, left + tip.offsetWidth + 14 > figure.plot.clientWidth ? left - spot.width * scale - tip.offsetWidth - 14 : left + 14)}px`;
  tip.style.top = `${top}px`;
}

function listenForTips(figure) {
  const { plot } = figure;
  for (const kind of ["pointermove", "pointerdown"]) plot.addEventListener(kind, event => tell(figure, under(figure, event)));
  plot.addEventListener("pointerleave", event => event.pointerType === "mouse" && tell(figure, null));
  plot.addEventListener("blur", () => tell(figure, null));
  plot.addEventListener("keydown", event => {
    if (event.key === "Escape") tell(figure, null);
    if (event.altKey || event.ctrlKey || event.metaKey || !(event.key in DIRECTIONS || event.key === "Home" || event.key === "End")) return;
    event.preventDefault();
    for (let step = 0; step < (event.shiftKey ? 10 : 1); step++) figure.spot = beside(figure, event.key);
    tell(figure, figure.spot, true);
  });
}
