// Figures and their data as files.
"use strict";

const FILE_WIDTH = 900;
const MARGIN = 12;

function download(name, blob) {
  const url = URL.createObjectURL(blob);
  const link = element("a", { href: url, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

function fileName(figure, ending) {
  return `${figure.id.replace(/[^a-z0-9_-]/g, "") || "figure"}.${ending}`;
}

// The picture as it would be in a paper: light, of a fixed size, with a heading and a legend, and only the series that are shown.
function svgOf(figure) {
  const theme = THEMES.light;
  const legend = fileLegend(figure, theme);
  const head = 34 + legend.height;
  const height = KINDS[figure.chart.kind].height(figure, FILE_WIDTH, head);
  // Drawn into an element that nobody sees, and written from its elements: no text is put together with markup anywhere.
  const box = element("div");
  const drawn = echarts.init(box, null, { renderer: "svg", width: FILE_WIDTH, height });
  const { frame } = figure;
  const option = KINDS[figure.chart.kind].option(figure, { theme, width: FILE_WIDTH, height, isFile: true, head });
  figure.frame = frame;
  const title = { text: shortened(figure.title, 110), left: 0, top: 4, padding: 0, textStyle: { color: theme.ink, fontSize: 15, fontWeight: 600 } };
  drawn.setOption({
    ...option, tooltip: { show: false }, animation: false, textStyle: { fontFamily: FONT }, backgroundColor: theme.paper,
    title: [title, ...(option.title ?? [])],
  });
  const root = box.querySelector("svg").cloneNode(true);
  drawn.dispose();
  root.removeAttribute("style");
  const name = document.createElementNS("http://www.w3.org/2000/svg", "title");
  name.textContent = figure.title;
  root.prepend(name);
  root.append(legend.group);
  // A margin, so that nothing is cut off at the edge of somebody's page.
  const outer = { width: FILE_WIDTH + 2 * MARGIN, height: height + 2 * MARGIN };
  const paper = svgElement("rect", { x: -MARGIN, y: -MARGIN, ...outer, fill: theme.paper });
  name.after(paper);
  for (const [key, of] of Object.entries({ ...outer, viewBox: `${-MARGIN} ${-MARGIN} ${outer.width} ${outer.height}` })) root.setAttribute(key, of);
  return { text: new XMLSerializer().serializeToString(root), ...outer };
}

// A legend that breaks its lines: { group, height }. It is made of the same samples as the page's.
function fileLegend(figure, theme) {
  const group = svgElement("g", { "font-family": FONT, "font-size": "12.5", fill: theme.ink });
  let [x, y] = [0, 34];
  const add = (label, drawn) => {
    const words = shortened(label, 70);
    const width = Number(drawn.getAttribute("width")) + 8;
    const needed = width + words.length * 7 + 20;
    if (x > 0 && x + needed > FILE_WIDTH) [x, y] = [0, y + 20];
    drawn.setAttribute("x", x);
    drawn.setAttribute("y", y + 1);
    const text = svgElement("text", { x: x + width, y: y + 11 });
    text.textContent = words;
    group.append(drawn, text);
    x += needed;
  };
  const { chart } = figure;
  if (chart.kind === "bars") chart.parts.forEach(([label], index) => add(label, partSample(index)));
  if (chart.kind === "lines" || chart.kind === "intervals") {
    for (const name of figure.names.filter(name => !figure.hidden.has(name))) {
      add(name, sample(figure.style(name, theme), "mean"));
    }
    for (const line of keyedLines(figure)) {
      add(keyOf(figure, line), sample(figure.style(line.series, theme), line.role));
    }
  }
  return { group, height: group.childElementCount ? y - 34 + 26 : 0 };
}

function exportSvg(figure) {
  download(fileName(figure, "svg"), new Blob([svgOf(figure).text], { type: "image/svg+xml" }));
}

function exportPng(figure) {
  const { text, width, height } = svgOf(figure);
  const url = URL.createObjectURL(new Blob([text], { type: "image/svg+xml" }));
  const image = new Image(width, height);
  image.addEventListener("load", () => {
    const canvas = element("canvas", { width: 2 * width, height: 2 * height });
    canvas.getContext("2d").drawImage(image, 0, 0, 2 * width, 2 * height);
    URL.revokeObjectURL(url);
    canvas.toBlob(blob => download(fileName(figure, "png"), blob), "image/png");
  });
  image.src = url;
}

// A cell. Spreadsheets take texts that begin with these signs for formulas; an apostrophe tells them that it is none.
function cell(value) {
  if (value === null || value === undefined) return "";
  if (typeof value === "number") return String(value);
  const text = value.split(";").map(part => /^\s*[=+\-@＝＋－＠]/.test(part) ? `'${part}` : part).join(";");
  return /[",\n\r']/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
}

const TABLES = {
  lines(chart) {
    const rows = [["series", "kind", "label", axisName(chart.x), axisName(chart.y), "ci95 low", "ci95 high"]];
    for (const line of chart.lines) {
      const [xs, bands] = [chart.xs[line.xs], chart.xs[line.band_xs]];
      const ends = new Map(bands.map((x, at) => [x, [line.low[at], line.high[at]]]));
      const values = new Map(xs.map((x, at) => [x, line.values[at]]));
      const all = [...new Set([...xs, ...bands])].sort((one, other) => one - other);
      for (const x of all) rows.push([line.series, line.role, line.label, x, values.get(x), ...(ends.get(x) ?? [null, null])]);
    }
    for (const mark of chart.marks) rows.push([null, "mark", mark.label, null, mark.value, null, null]);
    return rows;
  },
  heat(chart) {
    const rows = [["panel", axisName(chart.x), axisName(chart.y), axisName(chart.value)]];
    for (const panel of chart.panels) {
      panel.cells.forEach((values, down) => values.forEach((value, across) => rows.push([panel.label, chart.columns[across], chart.rows[down], value])));
    }
    return rows;
  },
  bars(chart) {
    const rows = [["bar", "part", axisName(chart.value)]];
    chart.categories.forEach((category, index) => chart.parts.forEach(([part, lengths]) => rows.push([category, part, lengths[index]])));
    return rows;
  },
  intervals(chart) {
    const rows = [["label", "series", axisName(chart.value), "ci95 low", "ci95 high"]];
    for (const [label, series, { value, ci95 }] of chart.rows) rows.push([label, series, value, ...(ci95 ?? [null, null])]);
    return rows;
  },
};

function csvOf(figure) {
  return TABLES[figure.chart.kind](figure.chart).map(row => `${row.map(cell).join(",")}\n`).join("");
}

function exportCsv(figure) {
  download(fileName(figure, "csv"), new Blob([csvOf(figure)], { type: "text/csv;charset=utf-8" }));
}
