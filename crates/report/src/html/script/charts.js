// Heat maps, stacked bars, intervals; and which of the four a figure is.
"use strict";

// Viridis (N. Smith, S. van der Walt, 2015): even steps to every eye, also in grey.
const HEAT = ["#440154", "#482475", "#414487", "#355f8d", "#2a788e", "#21918c", "#22a884", "#44bf70", "#7ad151", "#bddf26", "#fde725"];

// Parts of bars are told apart by lightness and by hatching; their colours are none of the series'.
const PARTS = [
  { fill: "#3b4d61", hatch: null, drawn: "" },
  { fill: "#b9c4cf", hatch: { rotation: -Math.PI / 4, dashArrayX: [1, 0], dashArrayY: [2, 5] }, drawn: "M-2,6L8,-4M0,12L14,-2M8,14L20,2" },
  { fill: "#7c90a4", hatch: { symbol: "circle", symbolSize: 0.6, dashArrayX: [[0, 7], [3.5, 3.5]], dashArrayY: [7, 0] }, drawn: "M3,3h2M9,3h2M6,8h2M12,8h2" },
  { fill: "#d8d3c7", hatch: { rotation: Math.PI / 4, dashArrayX: [1, 0], dashArrayY: [2, 5] }, drawn: "M-2,4L10,16M2,-2L16,12M10,-2L20,8" },
  { fill: "#5f6b5c", hatch: { dashArrayX: [1, 0], dashArrayY: [2, 4] }, drawn: "M0,3h18M0,9h18" },
  { fill: "#a89f8c", hatch: { rotation: Math.PI / 2, dashArrayX: [1, 0], dashArrayY: [2, 4] }, drawn: "M4,0v14M9,0v14M14,0v14" },
];

function partOf(index) {
  return PARTS[index % PARTS.length];
}

function hatchColour(fill) {
  return isDark(fill) ? "rgba(255,255,255,.55)" : "rgba(30,40,50,.5)";
}

function isDark(hex) {
  return luminance([1, 3, 5].map(at => parseInt(hex.slice(at, at + 2), 16))) < 0.3;
}

function partSample(index) {
  const { fill, drawn } = partOf(index);
  const svg = svgElement("svg", { width: 18, height: 12, viewBox: "0 0 18 12", "aria-hidden": "true" });
  svg.append(svgElement("rect", { width: 18, height: 12, fill }));
  if (drawn) svg.append(svgElement("path", { d: drawn, stroke: hatchColour(fill), "stroke-width": 1.5, fill: "none" }));
  return svg;
}

function labelWidth(labels, most) {
  return Math.min(most, 18 + 7.4 * Math.max(1, ...labels.map(label => label.length)));
}

function heatScale(figure) {
  const { chart, scales } = figure;
  const isLog = scales.value === "log";
  const known = chart.panels.flatMap(panel => panel.cells.flat()).filter(value => value !== null && (!isLog || value > 0));
  const frame = frameOf(extreme(known), isLog, chart.value.range, 0);
  if (!isLog && chart.value.range[0] === null && known.length) frame.low = Math.min(...known);
  return frame;
}

// How panels are laid out in a width.
function heatLayout(figure, width, head) {
  const { chart, hidden } = figure;
  const panels = chart.panels.filter(panel => !hidden.has(panel.label));
  const left = labelWidth(chart.rows, Math.min(140, width / 4));
  const room = width - left - 12;
  const [columns, rows] = [Math.max(1, chart.columns.length), Math.max(1, chart.rows.length)];
  const wanted = Math.max(150, columns * 34);
  const across = Math.max(1, Math.min(Math.max(1, panels.length), Math.floor((room + 24) / (wanted + 24))));
  const panelWidth = Math.min((room - 24 * (across - 1)) / across, 90 * columns);
  const cellHeight = Math.max(16, Math.min(46, panelWidth / columns, 230 / rows));
  const panelHeight = cellHeight * rows;
  const top = head + 38;
  const line = panelHeight + 54;
  const rects = panels.map((panel, index) => ({
    panel,
    left: left + (index % across) * (panelWidth + 24),
    top: top + 20 + Math.floor(index / across) * line,
    isFirst: index % across === 0,
  }));
  const lines = Math.ceil(panels.length / across) || 1;
  return { rects, left, panelWidth, panelHeight, cellHeight, top, bottom: top + lines * line, height: top + lines * line + 92 };
}

function heatOption(figure, look) {
  const { chart } = figure;
  const { theme, width } = look;
  const layout = heatLayout(figure, width, look.isFile ? look.head : 0);
  const scale = heatScale(figure);
  const option = {
    title: [{ text: shortened(`↑ ${axisName(chart.y)}`, Math.floor(width / 7.5)), left: 0, top: layout.top - 34, padding: 0,
      textStyle: { color: theme.ink, fontSize: 13, fontWeight: "normal" } }],
    grid: [], xAxis: [], yAxis: [], series: [],
    tooltip: { trigger: "item" },
    visualMap: { show: false, min: 0, max: 1, dimension: 2, seriesIndex: "all", inRange: { color: HEAT } },
  };
  const contours = [];
  const quiet = { axisLine: { show: false }, axisTick: { show: false }, splitArea: { show: false }, splitLine: { show: false } };
  const columnWidth = layout.panelWidth / chart.columns.length;
  // As many labels as have room in full; a number that is cut off would be another number.
  const longest = Math.max(1, ...chart.columns.map(text => text.length));
  const skipped = Math.max(0, Math.ceil((7 * Math.min(longest, 24) + 10) / columnWidth) - 1);
  layout.rects.forEach(({ panel, left, top, isFirst }, index) => {
    option.title.push({ text: shortened(panel.label, Math.floor(layout.panelWidth / 6.8)), left, top: top - 20, padding: 0,
      textStyle: { color: theme.ink, fontSize: 13, fontWeight: 600 } });
    option.grid.push({ left, top, width: layout.panelWidth, height: layout.panelHeight, outerBoundsMode: "none", show: true, backgroundColor: theme.empty, borderWidth: 0 });
    const label = { color: theme.faint, fontSize: 11.5, hideOverlap: true };
    option.xAxis.push({ ...quiet, type: "category", gridIndex: index, data: chart.columns, axisLabel: { ...label, interval: skipped, formatter: text => shortened(text, 24) } });
    option.yAxis.push({ ...quiet, type: "category", gridIndex: index, data: chart.rows, axisLabel: { ...label, show: isFirst, formatter: text => shortened(text, Math.floor(layout.left / 6.4)) } });
    const data = [];
    panel.cells.forEach((row, down) => row.forEach((value, across) => {
      if (value === null) return;
      // Zero is not on a logarithmic scale: it has no colour, but it is known.
      const isOff = scale.isLog && value <= 0;
      const share = isOff ? 0 : Math.max(0, Math.min(1, shareOf(scale, value)));
      const text = words(value, 3);
      const hasRoom = columnWidth > 8 + text.length * 6.4 && layout.cellHeight >= 18;
      const label = { show: hasRoom, formatter: () => text, fontSize: 11, color: share < 0.48 ? "#fff" : "#111" };
      if (isOff) data.push({ value: [across, down, share], visualMap: false, itemStyle: { color: theme.empty }, label: { ...label, color: theme.ink } });
      else data.push({ value: [across, down, share], label });
    }));
    option.series.push({ type: "heatmap", name: panel.label, xAxisIndex: index, yAxisIndex: index, data, animation: false,
      itemStyle: { borderColor: theme.paper, borderWidth: 1 }, emphasis: { itemStyle: { borderColor: theme.ink, borderWidth: 2 } } });
    const rect = { left, top, width: layout.panelWidth, height: layout.panelHeight };
    contours.push(...contour(panel.contour ?? [], rect));
  });
  option.title.push({ text: `${shortened(axisName(chart.x), Math.floor(width / 8))} →`, left: layout.left, top: layout.bottom - 8, padding: 0,
    textStyle: { color: theme.ink, fontSize: 13, fontWeight: "normal" } });
  option.graphic = [...contours, ...[colourBar(scale, axisName(chart.value), layout, width, theme)].flat()];
  return option;
}

// The edges between cells inside and outside: rows are counted from the bottom.
function contour(rows, { left, top, width, height }) {
  const isInside = (row, column) => rows[row]?.[column] ?? false;
  const lines = [];
  const line = (x1, y1, x2, y2) => lines.push({ type: "line", silent: true, z: 50, shape: { x1, y1, x2, y2 }, style: { stroke: "#d55e00", lineWidth: 3 } });
  rows.forEach((cells, row) => cells.forEach((inside, column) => {
    if (!inside) return;
    const [x, next] = [column, column + 1].map(place => left + (width * place) / cells.length);
    const [low, high] = [row, row + 1].map(place => top + height - (height * place) / rows.length);
    if (!isInside(row - 1, column)) line(x, low, next, low);
    if (!isInside(row + 1, column)) line(x, high, next, high);
    if (!isInside(row, column - 1)) line(x, low, x, high);
    if (!isInside(row, column + 1)) line(next, low, next, high);
  }));
  return lines;
}

function colourBar(scale, name, layout, width, theme) {
  const length = Math.min(360, width - layout.left - 30);
  const [left, top] = [layout.left, layout.bottom + 44];
  const stops = HEAT.map((color, index) => ({ offset: index / (HEAT.length - 1), color }));
  const text = (words, x, y, size, fill, align) => ({ type: "text", silent: true, x, y, style: { text: words, fill, font: `${size}px ${FONT}`, align, verticalAlign: "top" } });
  const ticks = (scale.isLog ? logTicks : linearTicks)(scale.low, scale.high, Math.max(3, Math.floor(length / 70)));
  const bar = { type: "rect", silent: true, shape: { x: left, y: top, width: length, height: 12 }, style: { fill: { type: "linear", x: 0, y: 0, x2: 1, y2: 0, colorStops: stops } } };
  const marks = ticks.flatMap(tick => {
    const x = left + length * shareOf(scale, tick);
    const line = { type: "line", silent: true, shape: { x1: x, y1: top + 12, x2: x, y2: top + 16 }, style: { stroke: theme.faint } };
    return [line, text(words(tick, 6), x, top + 19, 11.5, theme.faint, "center")];
  });
  return [text(shortened(name, Math.floor(width / 7.5)), left, top - 19, 13, theme.ink, "left"), bar, ...marks];
}

function barsHeight(figure, head) {
  const shown = figure.chart.categories.filter(name => !figure.hidden.has(name));
  return head + 8 + 36 * Math.max(1, shown.length) + 50;
}

function barsOption(figure, look) {
  const { chart, hidden } = figure;
  const { theme, width, height } = look;
  const shown = chart.categories.map((name, index) => ({ name, index })).filter(({ name }) => !hidden.has(name));
  const ends = shown.flatMap(({ index }) => [1, -1].map(side => chart.parts.reduce((sum, [, lengths]) => sum + Math.max(0, side * (lengths[index] ?? 0)), 0) * side));
  const frame = frameOf(extreme([0, ...ends]), false, chart.value.range, 0.02);
  if (Math.min(0, ...ends) === 0) frame.low = Math.max(0, chart.value.range[0] ?? 0);
  const left = labelWidth(shown.map(({ name }) => name), width * 0.36);
  const grid = { left, right: 20, top: (look.isFile ? look.head : 0) + 8, bottom: 46, outerBoundsMode: "none" };
  const room = width - left - 20;
  const value = axisOption(frame, Math.max(3, Math.round(room / 65)), theme);
  Object.assign(value, { name: shortened(axisName(chart.value), Math.floor(width / 9)), nameLocation: "middle", nameGap: 28, nameTextStyle: { color: theme.ink, fontSize: 13 } });
  const series = chart.parts.map(([label, lengths], index) => {
    const { fill, hatch } = partOf(index);
    const digits = length => words(length, 3);
    return {
      type: "bar", stack: "all", name: label, animation: false, barWidth: 22,
      data: shown.map(({ index }) => lengths[index] ?? 0),
      itemStyle: { color: fill, borderColor: theme.paper, borderWidth: 1, decal: hatch ? { symbol: "rect", symbolSize: 1, ...hatch, color: hatchColour(fill) } : undefined },
      emphasis: { disabled: true },
      label: { show: true, position: "inside", fontSize: 11.5, color: isDark(fill) ? "#fff" : "#111", textBorderColor: fill, textBorderWidth: 3,
        formatter: bar => (Math.abs(bar.value) / (frame.high - frame.low) * room > 8 + digits(bar.value).length * 6.6 ? digits(bar.value) : "") },
    };
  });
  return {
    grid,
    xAxis: value,
    yAxis: { type: "category", inverse: true, data: shown.map(({ name }) => name), axisTick: { show: false }, axisLine: { lineStyle: { color: theme.faint } },
      axisLabel: { color: theme.ink, fontSize: 12.5, interval: 0, width: left - 12, overflow: "break", lineHeight: 14, formatter: text => shortened(text, 2 * Math.floor((left - 12) / 7.2)) } },
    series,
    tooltip: { trigger: "axis", axisPointer: { type: "shadow", shadowStyle: { color: theme.faint, opacity: 0.12 } } },
  };
}

// Labels stand above their intervals where there is no room beside them.
function intervalRows(figure) {
  return figure.chart.rows.map(([label, series, value]) => ({ label, series, ...value })).filter(row => !figure.hidden.has(row.series));
}

function isNarrow(width) {
  return width < 600;
}

function intervalsHeight(figure, width, head) {
  return head + 8 + (isNarrow(width) ? 44 : 28) * Math.max(1, intervalRows(figure).length) + 50;
}

function intervalsOption(figure, look) {
  const { chart } = figure;
  const { theme, width } = look;
  const rows = intervalRows(figure);
  const frame = frameOf(extreme([0, ...rows.flatMap(row => [row.value, ...(row.ci95 ?? [])])]), false, chart.value.range, 0.05);
  const least = Math.min(0, ...rows.flatMap(row => [row.value, ...(row.ci95 ?? [])]));
  // The line at zero must not be lost in the frame.
  if (least === 0 && chart.value.range[0] === null) frame.low = -0.05 * frame.high;
  const narrow = isNarrow(width);
  const left = narrow ? 10 : labelWidth(rows.map(row => row.label), width * 0.42);
  const value = axisOption(frame, Math.max(3, Math.round((width - left) / 65)), theme);
  Object.assign(value, { name: shortened(axisName(chart.value), Math.floor(width / 9)), nameLocation: "middle", nameGap: 28, nameTextStyle: { color: theme.ink, fontSize: 13 } });
  const mark = (params, api) => {
    const row = rows[params.dataIndex];
    const style = figure.style(row.series, theme);
    const { fill, edge, width: edgeWidth } = markerPaint(style);
    const y = api.coord([0, params.dataIndex])[1] + (narrow ? 8 : 0);
    const at = number => api.coord([number, params.dataIndex])[0];
    const line = (x1, y1, x2, y2) => ({ type: "line", shape: { x1, y1, x2, y2 }, style: { stroke: style.colour, lineWidth: 2 } });
    const children = [];
    if (row.ci95) {
      const [low, high] = row.ci95.map(at);
      children.push(line(low, y, high, y), line(low, y - 5, low, y + 5), line(high, y - 5, high, y + 5));
    }
    children.push({ type: "path", shape: { pathData: style.marker, x: at(row.value) - 6, y: y - 6, width: 12, height: 12 }, style: { fill, stroke: edge, lineWidth: edgeWidth } });
    if (narrow) children.push({ type: "text", x: left + 4, y: y - 12, style: { text: shortened(row.label, Math.floor(width / 7)), fill: theme.ink, font: `12px ${FONT}`, verticalAlign: "bottom", backgroundColor: theme.paper, padding: [0, 3] } });
    return { type: "group", children };
  };
  return {
    grid: { left, right: 20, top: (look.isFile ? look.head : 0) + 8, bottom: 46, outerBoundsMode: "none" },
    xAxis: value,
    yAxis: { type: "category", inverse: true, data: rows.map(row => row.label), axisTick: { show: false }, axisLine: { lineStyle: { color: theme.faint } },
      splitLine: { show: false }, axisLabel: { show: !narrow, color: theme.ink, fontSize: 12.5, interval: 0, formatter: text => shortened(text, Math.floor(left / 6.4)) } },
    series: [{
      type: "custom", animation: false, clip: false, renderItem: mark, data: rows.map((row, index) => [row.value, index]), encode: { x: 0, y: 1 },
      markLine: { silent: true, symbol: "none", animation: false, label: { show: false }, lineStyle: { color: theme.ink, type: "solid", width: 1.2 }, data: [{ xAxis: 0 }] },
    }],
    tooltip: { trigger: "axis", axisPointer: { type: "shadow", shadowStyle: { color: theme.faint, opacity: 0.12 } } },
  };
}

const KINDS = {
  // The page's first picture leaves room for the table beside it on the first screen.
  lines: { option: lineOption, height: (figure, width, head) => head + (width < 520 ? 320 : head === 0 && figure.root.closest(".first") ? 300 : 420) },
  heat: { option: heatOption, height: (figure, width, head) => heatLayout(figure, width, head).height },
  bars: { option: barsOption, height: (figure, width, head) => barsHeight(figure, head) },
  intervals: { option: intervalsOption, height: intervalsHeight },
};
