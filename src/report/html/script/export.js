// Figures and their data as files.
"use strict";

const FILE_WIDTH = 900;

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
  const drawn = echarts.init(null, null, { renderer: "svg", ssr: true, width: FILE_WIDTH, height });
  const { frame } = figure;
  const option = KINDS[figure.chart.kind].option(figure, { theme, width: FILE_WIDTH, height, isFile: true, head });
  figure.frame = frame;
  const title = { text: shortened(figure.title, 110), left: 0, top: 4, padding: 0, textStyle: { color: theme.ink, fontSize: 15, fontWeight: 600 } };
  drawn.setOption({
    ...option, tooltip: { show: false }, animation: false, textStyle: { fontFamily: FONT }, backgroundColor: theme.paper,
    title: [title, ...(option.title ?? [])], graphic: [...(option.graphic ?? []), ...legend.graphic],
  });
  const parsed = new DOMParser().parseFromString(drawn.renderToSVGString(), "image/svg+xml");
  drawn.dispose();
  const root = parsed.documentElement;
  const name = document.createElementNS("http://www.w3.org/2000/svg", "title");
  name.textContent = figure.title;
  root.prepend(name);
  return { text: new XMLSerializer().serializeToString(root), width: FILE_WIDTH, height };
}

// A legend that breaks its lines: { graphic, height }.
function fileLegend(figure, theme) {
  const graphic = [];
  let [x, y] = [0, 34];
  const add = (label, width, drawn) => {
    const text = shortened(label, 70);
    const needed = width + 8 + text.length * 7 + 20;
    if (x > 0 && x + needed > FILE_WIDTH) [x, y] = [0, y + 20];
    graphic.push(...drawn(x, y), { type: "text", x: x + width + 8, y: y + 7, style: { text, fill: theme.ink, font: `12.5px ${FONT}`, verticalAlign: "middle" } });
    x += needed;
  };
  const line = (colour, sign, role) => (left, top) => {
    const stroke = { stroke: colour, lineWidth: role === "seed" ? 1 : 2, lineDash: DASHES[role].length ? DASHES[role] : null };
    const drawn = [{ type: "line", shape: { x1: left, y1: top + 7, x2: left + 30, y2: top + 7 }, style: stroke }];
    if (role === "mean") drawn.push({ type: "path", shape: { pathData: sign, x: left + 10.5, y: top + 2.5, width: 9, height: 9 }, style: { fill: colour } });
    return drawn;
  };
  const { chart } = figure;
  if (chart.kind === "bars") {
    chart.parts.forEach(([label], index) => {
      const { fill, hatch } = partOf(index);
      const decal = hatch ? { symbol: "rect", symbolSize: 1, ...hatch, color: hatchColour(fill) } : null;
      add(label, 18, (left, top) => [{ type: "rect", shape: { x: left, y: top + 1, width: 18, height: 12 }, style: { fill, decal } }]);
    });
  } else if (chart.kind !== "heat") {
    for (const name of figure.names.filter(name => !figure.hidden.has(name))) {
      const { colour, sign } = figure.style(name, theme);
      add(name, 30, line(colour, sign, "mean"));
    }
    for (const of of keyedLines(figure)) add(`${of.series}: ${of.label ?? of.role}`, 30, line(figure.style(of.series, theme).colour, "", of.role));
  }
  return { graphic, height: graphic.length ? y - 34 + 26 : 0 };
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
  const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
  return /[",\n\r']/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
}

const TABLES = {
  lines(chart) {
    const rows = [["series", "kind", "label", axisName(chart.x), axisName(chart.y), "ci95 low", "ci95 high"]];
    for (const line of chart.lines) {
      const [places, bands] = [chart.places[line.places], chart.places[line.band_places]];
      const ends = new Map(bands.map((place, at) => [place, [line.low[at], line.high[at]]]));
      const values = new Map(places.map((place, at) => [place, line.values[at]]));
      const all = [...new Set([...places, ...bands])].sort((one, other) => one - other);
      for (const place of all) rows.push([line.series, line.role, line.label, place, values.get(place), ...(ends.get(place) ?? [null, null])]);
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
    chart.categories.forEach((category, place) => chart.parts.forEach(([part, lengths]) => rows.push([category, part, lengths[place]])));
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
