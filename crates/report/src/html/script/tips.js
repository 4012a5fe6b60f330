// What is shown under the pointer: the values of all series at one coordinate. Built of elements and texts, never of HTML.
"use strict";

function tipBox(heading, rows) {
  const table = element("table");
  for (const { mark, name, text, isHere } of rows) {
    const row = element("tr", isHere ? { class: "here" } : {}, element("td", {}, mark ?? ""), element("td", {}, name), element("td", { class: "number" }, text));
    table.append(row);
  }
  return element("div", {}, element("p", { class: "heading" }, heading), table);
}

function withEnds(value, ends) {
  return ends ? `${words(value)}  [${words(ends[0])}, ${words(ends[1])}]` : words(value);
}

const TIPS = {
  lines(figure, theme, hovered) {
    const { chart, hidden } = figure;
    const x = Number(hovered[0].axisValue);
    const rows = [];
    for (const name of figure.names.filter(name => !hidden.has(name))) {
      const style = figure.style(name, theme);
      const lines = chart.lines.filter(line => line.series === name);
      for (const line of lines.filter(line => line.role !== "seed")) {
        const value = lineAt(chart, line, x);
        const label = line.label ?? { mean: "", fit: "fit", bound: "bound" }[line.role];
        if (value !== null) rows.push({ value, mark: sample(style, line.role), name: label ? `${name}: ${label}` : name, text: withEnds(value, bandAt(chart, line, x)) });
      }
      const seeds = lines.filter(line => line.role === "seed").map(line => lineAt(chart, line, x)).filter(value => value !== null);
      if (seeds.length > 0 && !lines.some(line => line.role === "mean")) {
        const [low, high] = extreme(seeds);
        rows.push({ value: (low + high) / 2, mark: sample(style, "seed"), name, text: seeds.length === 1 ? words(low) : `${words(low)} … ${words(high)}` });
      }
    }
    // In the order of the lines under the pointer.
    rows.sort((one, other) => other.value - one.value);
    const unit = chart.x.unit ? ` ${chart.x.unit}` : "";
    return tipBox(`${chart.x.label} ${words(x, 6)}${unit}`, rows);
  },
  heat(figure, theme, hovered) {
    const { chart, hidden } = figure;
    const [across, down] = hovered.value;
    const heading = `${chart.x.label} ${chart.columns[across]}, ${chart.y.label} ${chart.rows[down]}`;
    const panels = chart.panels.filter(panel => !hidden.has(panel.label));
    const rows = panels.map(panel => ({ name: panel.label, text: words(panel.cells[down]?.[across]), isHere: panel.label === hovered.seriesName }));
    return tipBox(`${heading}: ${axisName(chart.value)}`, rows);
  },
  bars(figure, theme, hovered) {
    const { chart } = figure;
    const bar = chart.categories.indexOf(hovered[0].name);
    const rows = chart.parts.map(([name, lengths], index) => ({ mark: partSample(index), name, text: words(lengths[bar]) }));
    rows.push({ name: "sum", text: words(chart.parts.reduce((sum, [, lengths]) => sum + (lengths[bar] ?? 0), 0)), isHere: true });
    return tipBox(`${hovered[0].name}: ${axisName(chart.value)}`, rows);
  },
  intervals(figure, theme, hovered) {
    const row = intervalRows(figure)[hovered[0].dataIndex];
    return tipBox(axisName(figure.chart.value), [{ mark: sample(figure.style(row.series, theme), "mean"), name: row.label, text: withEnds(row.value, row.ci95) }]);
  },
};
