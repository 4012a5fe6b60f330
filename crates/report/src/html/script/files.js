// Figures and their data as files.
function download(name, blob) {
  const url = URL.createObjectURL(blob);
  element("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

// The picture as it would be in a paper: light, with heading and legend, and only what is shown.
function svgOf(figure) {
  const { svg } = figure.pictures.find(({ svg }) => svg.matches(".broad:not(.off)"));
  const copy = svg.cloneNode(true);
  find(copy, ".gone, .here").forEach(node => node.remove());
  const [width, whole] = copy.dataset.size.split(" ").map(Number);
  const height = whole - Number(copy.dataset.less ?? 0);
  filled(copy, { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "font-family": getComputedStyle(svg).fontFamily });
  copy.prepend(svgElement("title", {}, figure.title));
  return { text: new XMLSerializer().serializeToString(copy), width, height };
}

// A cell. Spreadsheets take texts that begin with these signs for formulas; an apostrophe tells them that it is none.
function cell(value) {
  if (value === null || value === undefined) return "";
  if (typeof value === "number") return String(value);
  const text = value.split(";").map(part => (/^\s*[=+\-@＝＋－＠]/.test(part) ? `'${part}` : part)).join(";");
  return /[",\n\r']/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
}

const TABLES = {
  lines(chart) {
    const rows = chart.lines.flatMap(({ series, role, label, values, low, high, ...line }) => {
      const [xs, bands] = [chart.xs[line.xs], chart.xs[line.band_xs]];
      const all = [...new Set([...xs, ...bands])].sort((one, other) => one - other);
      return all.map(x => [series, role, label, x, values[xs.indexOf(x)], low[bands.indexOf(x)], high[bands.indexOf(x)]]);
    });
    const marks = chart.marks.map(mark => [null, "mark", mark.label, null, mark.value, null, null]);
    return [["series", "kind", "label", axisName(chart.x), axisName(chart.y), "ci95 low", "ci95 high"], ...rows, ...marks];
  },
  heat(chart) {
    const rows = chart.panels.flatMap(panel => panel.cells.flatMap((values, down) => values.map((value, across) => [panel.label, chart.columns[across], chart.rows[down], value])));
    return [["panel", axisName(chart.x), axisName(chart.y), axisName(chart.value)], ...rows];
  },
  bars(chart) {
    const rows = chart.categories.flatMap((category, index) => chart.parts.map(([part, lengths]) => [category, part, lengths[index]]));
    return [["bar", "part", axisName(chart.value)], ...rows];
  },
  intervals(chart) {
    const rows = chart.rows.map(([label, series, { value, ci95 }]) => [label, series, value, ...(ci95 ?? [null, null])]);
    return [["label", "series", axisName(chart.value), "ci95 low", "ci95 high"], ...rows];
  },
};

const csvOf = ({ chart }) => TABLES[chart.kind](chart).map(row => `${row.map(cell).join(",")}\n`).join("");

const SAVES = {
  CSV: figure => Promise.resolve(new Blob([csvOf(figure)], { type: "text/csv;charset=utf-8" })),
  SVG: figure => Promise.resolve(new Blob([svgOf(figure).text], { type: "image/svg+xml" })),
  async PNG(figure) {
    const { text, width, height } = svgOf(figure);
    const image = new Image(width, height);
    image.src = URL.createObjectURL(new Blob([text], { type: "image/svg+xml" }));
    await image.decode();
    const canvas = element("canvas", { width: 2 * width, height: 2 * height });
    canvas.getContext("2d").drawImage(image, 0, 0, 2 * width, 2 * height);
    URL.revokeObjectURL(image.src);
    return new Promise(done => canvas.toBlob(done, "image/png"));
  },
};

function save(figure, ending) {
  const name = `${figure.id.replace(/[^a-z0-9_-]/g, "") || "figure"}.${ending.toLowerCase()}`;
  SAVES[ending](figure).then(blob => download(name, blob));
}
