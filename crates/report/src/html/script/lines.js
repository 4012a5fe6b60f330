// Line charts.
"use strict";

// The value of a line at `x`, null outside of it; the same rule as in the tables.
function lineAt(chart, line, x) {
  return read(chart.xs[line.xs], line.values, line.is_staircase, x);
}

function bandAt(chart, line, x) {
  const xs = chart.xs[line.band_xs];
  const ends = [line.low, line.high].map(values => read(xs, values, line.is_staircase, x));
  return ends[0] === null ? null : ends;
}

function read(xs, values, isStaircase, x) {
  let [low, high] = [0, xs.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (xs[middle] <= x) low = middle + 1;
    else high = middle;
  }
  if (low === 0) return null;
  const [left, value] = [xs[low - 1], values[low - 1]];
  if (left === x) return value;
  if (low === xs.length) return null;
  return isStaircase ? value : value + ((values[low] - value) * (x - left)) / (xs[low] - left);
}

// What of a line is in the window, its values at the window's edges included.
function* inWindow(xs, values, isStaircase, window) {
  for (const edge of window) {
    const value = read(xs, values, isStaircase, edge);
    if (value !== null) yield value;
  }
  for (let point = 0; point < xs.length; point++) {
    if (xs[point] >= window[0] && xs[point] <= window[1]) yield values[point];
  }
}

function extreme(list) {
  let [low, high] = [Infinity, -Infinity];
  for (const value of list) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return [low, high];
}

// Ends a quarter of their distance further apart.
function quarterBeyond([low, high], isLog) {
  const [from, to] = isLog ? [Math.log(low), Math.log(high)] : [low, high];
  return [from - (to - from) / 4, to + (to - from) / 4].map(end => (isLog ? Math.exp(end) : end));
}

// The axes of a line chart as they are to be drawn: { x, y, beyond }, the last of which says whether bounds leave the picture.
function lineFrames(figure) {
  const { chart, scales, hidden } = figure;
  const shown = chart.lines.filter(line => !hidden.has(line.series));
  const all = shown.length ? shown : chart.lines;
  const isLog = { x: scales.x === "log", y: scales.y === "log" };
  const xs = all.flatMap(line => chart.xs[line.xs]);
  // Whiskers at the first and the last dot would be cut in half.
  const pad = all.some(line => line.has_dots) ? 0.04 : 0;
  const x = frameOf(extreme(xs.filter(x => !isLog.x || x > 0)), isLog.x, chart.x.range, pad);
  if (figure.window) [x.low, x.high] = figure.window;
  const within = (kinds, lists) => all.filter(kinds).flatMap(line => {
    const found = lists(line).flatMap(([of, list]) => [...inWindow(chart.xs[of], list, line.is_staircase, [x.low, x.high])]);
    return isLog.y ? found.filter(value => value > 0) : found;
  });
  const values = kinds => within(kinds, line => [[line.xs, line.values]]);
  const means = extreme(values(line => line.role !== "bound"));
  const dots = line => line.role !== "bound" && line.has_dots;
  const ends = within(line => line.role !== "bound", line => [[line.band_xs, line.low], [line.band_xs, line.high]]);
  // One early interval may be a hundred times as wide as all that happens later: of bands a quarter beyond the means is shown.
  const reach = quarterBeyond(means, isLog.y);
  const [low, high] = extreme(all.some(dots) ? ends : ends.map(end => Math.min(Math.max(end, reach[0]), reach[1])));
  const measured = [Math.min(means[0], low), Math.max(means[1], high)];
  const bounds = extreme(values(line => line.role === "bound"));
  // A bound may be a thousand times what was measured; on a linear axis that would leave a flat line of the measurements.
  const beyond = !isLog.y && bounds[1] > 3 * Math.max(measured[1], 0) && Number.isFinite(measured[1]);
  const must = [...measured, ...(beyond ? [] : bounds), ...chart.marks.map(mark => mark.value)];
  const y = frameOf(must, isLog.y, figure.window ? [null, null] : chart.y.range, 0.04);
  return { x, y, beyond };
}

// Ends at the outer ticks are told by the ticks; an axis in ECharts' terms, with our ticks.
function axisOption(frame, most, theme) {
  const ticks = (frame.isLog ? logTicks : linearTicks)(frame.low, frame.high, most);
  return {
    type: frame.isLog ? "log" : "value",
    min: frame.low,
    max: frame.high,
    nameMoveOverlap: false,
    axisLine: { show: true, onZero: false, lineStyle: { color: theme.faint } },
    axisTick: { show: true, customValues: ticks, lineStyle: { color: theme.faint } },
    axisLabel: { customValues: ticks, color: theme.faint, fontSize: 12, hideOverlap: true, formatter: value => words(Number(value), 6) },
    splitLine: { show: true, lineStyle: { color: theme.rule } },
    minorTick: { show: false },
    ticks,
  };
}

// There is no round 1.02.
function wholeTicks(axis) {
  axis.ticks = axis.ticks.filter(Number.isInteger);
  axis.axisTick.customValues = axis.axisLabel.customValues = axis.ticks;
}

// The outlines of a band: on a logarithmic axis there is no place for an interval that reaches zero.
function polygons(chart, line, frames) {
  const xs = chart.xs[line.band_xs];
  const outlines = [];
  let ends = [[], []];
  const close = () => {
    if (ends[0].length > 1) outlines.push([...ends[1], ...ends[0].reverse()]);
    ends = [[], []];
  };
  xs.forEach((x, point) => {
    if (frames.x.isLog && x <= 0) return;
    if (frames.y.isLog && line.low[point] <= 0) return close();
    [line.low, line.high].forEach((values, end) => {
      if (line.is_staircase && ends[end].length) ends[end].push([x, values[point - 1]]);
      ends[end].push([x, values[point]]);
    });
  });
  close();
  return outlines;
}

// A whisker at each dot that has an interval.
function whiskers(chart, line, frames, colour) {
  const xs = chart.xs[line.band_xs];
  const bottom = frames.y.isLog ? frames.y.low * 1e-3 : -Infinity;
  const data = [];
  xs.forEach((x, point) => {
    if ((frames.x.isLog && x <= 0) || (frames.y.isLog && line.high[point] <= 0)) return;
    data.push([x, line.high[point], Math.max(line.low[point], bottom)]);
  });
  return {
    type: "custom", z: 3, data, encode: { x: 0, y: [1, 2] }, tooltip: { show: false },
    renderItem: (_, api) => {
      const [x, high] = api.coord([api.value(0), api.value(1)]);
      const low = api.coord([api.value(0), api.value(2)])[1];
      const stroke = (x1, y1, x2, y2) => ({ type: "line", silent: true, shape: { x1, y1, x2, y2 }, style: { stroke: colour, lineWidth: 1.4 } });
      return { type: "group", silent: true, children: [stroke(x, low, x, high), stroke(x - 4, low, x + 4, low), stroke(x - 4, high, x + 4, high)] };
    },
  };
}

// Where a line has markers: at a few of its points, spread evenly over the picture, other ones for each series.
function markedPoints(chart, line, frame, order, of) {
  const [xs, values] = [chart.xs[line.xs], line.values];
  const points = [];
  for (let step = 0; step < 6; step++) {
    const wanted = valueAt(frame, (step + (order + 0.5) / of) / 6);
    let nearest = -1;
    xs.forEach((x, point) => {
      const isIn = x >= frame.low && x <= frame.high;
      if (isIn && (nearest < 0 || Math.abs(x - wanted) < Math.abs(xs[nearest] - wanted))) nearest = point;
    });
    const beyond = nearest < 0 || Math.abs(shareOf(frame, xs[nearest]) - shareOf(frame, wanted)) > 0.1;
    if (!beyond && !points.includes(nearest)) points.push(nearest);
  }
  return points.map(point => [xs[point], values[point]]);
}

// The picture. `look` has theme, width, height, and whether it is for a file, which needs heading and legend of its own.
function lineOption(figure, look) {
  const { chart, hidden } = figure;
  const { theme, width, height, isFile } = look;
  const frames = lineFrames(figure);
  const top = (isFile ? look.head : 0) + 32;
  const bottom = 46;
  const y = axisOption(frames.y, Math.max(3, Math.round((height - top - bottom) / 45)), theme);
  const widest = Math.max(...y.ticks.map(tick => words(tick, 6).length), 1);
  const left = Math.max(34, 14 + widest * 7);
  const right = 18;
  const x = axisOption(frames.x, Math.max(3, Math.round((width - left - right) / (frames.x.isLog ? 50 : 70))), theme);
  if (chart.x.label === "round") wholeTicks(x);
  Object.assign(x, { name: shortened(axisName(chart.x), Math.floor(width / 8)), nameLocation: "middle", nameGap: 28, nameTextStyle: { color: theme.ink, fontSize: 13 } });
  x.splitLine.show = false;
  figure.frame = { left, right: width - right, top, bottom: height - bottom, x: frames.x };
  figure.beyond = frames.beyond;

  const series = [];
  const names = figure.names.filter(name => !hidden.has(name));
  const point = (x, value) => [x, frames.y.isLog && value <= 0 ? "-" : value];
  for (const line of chart.lines) {
    if (hidden.has(line.series)) continue;
    const style = figure.style(line.series, theme);
    const { fill, edge, width: edgeWidth } = markerPaint(style);
    const dashes = dashesOf(style, line.role);
    const marker = { symbol: `path://${style.marker}`, symbolKeepAspect: true, itemStyle: { color: fill, borderColor: edge, borderWidth: edgeWidth, opacity: 1 } };
    const common = { silent: true, animation: false, emphasis: { disabled: true }, clip: true };
    if (line.has_dots && line.low.length > 0) {
      series.push({ ...common, ...whiskers(chart, line, frames, style.colour) });
    } else if (line.low.length > 1) {
      const outlines = polygons(chart, line, frames);
      series.push({
        ...common, type: "custom", z: 1, data: [[frames.x.low, frames.y.high]], tooltip: { show: false },
        renderItem: (_, api) => ({
          type: "group", silent: true,
          children: outlines.map(outline => ({
            type: "polygon", silent: true, shape: { points: outline.map(point => api.coord(point)) },
            style: { fill: style.colour, opacity: theme.veil },
          })),
        }),
      });
    }
    const data = chart.xs[line.xs].map((x, at) => point(x, line.values[at])).filter(([x]) => !frames.x.isLog || x > 0);
    series.push({
      ...common, type: "line", name: line.role === "mean" ? line.series : undefined, data, z: line.role === "mean" ? 4 : 2,
      step: line.is_staircase ? "end" : false, ...marker, symbolSize: 9, showSymbol: line.has_dots, showAllSymbol: true,
      lineStyle: { color: style.colour, width: { mean: 2.2, seed: 1, extreme: 1, fit: 1.6, bound: 2 }[line.role], type: dashes.length ? dashes : "solid",
        opacity: isThin(line.role) ? 0.45 : 1, cap: line.role === "bound" ? "round" : "butt" },
    });
    if (line.role === "mean" && !line.has_dots) {
      const marked = markedPoints(chart, line, frames.x, names.indexOf(line.series), names.length).filter(([, value]) => !frames.y.isLog || value > 0);
      series.push({ ...common, type: "scatter", name: line.series, data: marked, ...marker, symbolSize: 9, z: 5, tooltip: { show: false } });
    }
  }
  series.push({
    type: "line", data: [], silent: true, animation: false,
    markLine: {
      silent: true, symbol: "none", animation: false, lineStyle: { color: theme.ink, type: [10, 3, 2, 3], width: 1.2 },
      label: { position: "insideEndTop", color: theme.ink, fontSize: 12, formatter: mark => shortened(mark.name, Math.floor(width / 9)) },
      data: chart.marks.filter(mark => !frames.y.isLog || mark.value > 0).map(mark => ({ name: mark.label, yAxis: mark.value })),
    },
  });
  return {
    title: [{ text: shortened(axisName(chart.y), Math.floor(width / 7.5)), left: 0, top: top - 28, padding: 0, textStyle: { color: theme.ink, fontSize: 13, fontWeight: "normal" } }],
    grid: { left, right, top, bottom, outerBoundsMode: "none" },
    xAxis: x,
    yAxis: y,
    series,
    tooltip: { trigger: "axis", axisPointer: { type: "line", snap: true, animation: false, lineStyle: { color: theme.faint, width: 1, type: "solid" } } },
  };
}
