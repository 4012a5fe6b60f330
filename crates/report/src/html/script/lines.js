// Line charts.
"use strict";

// The value of a line at a place, null outside of it; the same rule as in the tables.
function lineAt(chart, line, place) {
  return read(chart.places[line.places], line.values, line.is_staircase, place);
}

function bandAt(chart, line, place) {
  const places = chart.places[line.band_places];
  const ends = [line.low, line.high].map(values => read(places, values, line.is_staircase, place));
  return ends[0] === null ? null : ends;
}

function read(places, values, isStaircase, place) {
  let [low, high] = [0, places.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (places[middle] <= place) low = middle + 1;
    else high = middle;
  }
  if (low === 0) return null;
  const [left, value] = [places[low - 1], values[low - 1]];
  if (left === place) return value;
  if (low === places.length) return null;
  return isStaircase ? value : value + ((values[low] - value) * (place - left)) / (places[low] - left);
}

// What of a line is in the window, its values at the window's edges included.
function* inWindow(places, values, isStaircase, window) {
  for (const edge of window) {
    const value = read(places, values, isStaircase, edge);
    if (value !== null) yield value;
  }
  for (let point = 0; point < places.length; point++) {
    if (places[point] >= window[0] && places[point] <= window[1]) yield values[point];
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

// The axes of a line chart as they are to be drawn: { x, y, beyond }, the last of which says whether bounds leave the picture.
function lineFrames(figure) {
  const { chart, scales, hidden } = figure;
  const shown = chart.lines.filter(line => !hidden.has(line.series));
  const all = shown.length ? shown : chart.lines;
  const isLog = { x: scales.x === "log", y: scales.y === "log" };
  const places = all.flatMap(line => chart.places[line.places]);
  // Whiskers at the first and the last dot would be cut in half.
  const pad = all.some(line => line.has_dots) ? 0.04 : 0;
  const x = frameOf(extreme(places.filter(place => !isLog.x || place > 0)), isLog.x, chart.x.range, pad);
  if (figure.window) [x.low, x.high] = figure.window;
  const values = kinds => all.filter(kinds).flatMap(line => {
    const window = [x.low, x.high];
    const lists = [[line.places, line.values], [line.band_places, line.low], [line.band_places, line.high]];
    const found = lists.flatMap(([of, list]) => [...inWindow(chart.places[of], list, line.is_staircase, window)]);
    return isLog.y ? found.filter(value => value > 0) : found;
  });
  const measured = extreme(values(line => line.role !== "bound"));
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

function polygon(chart, line, frames) {
  const places = chart.places[line.band_places];
  const bottom = frames.y.isLog ? frames.y.low * 1e-3 : -Infinity;
  const ends = [[], []];
  places.forEach((place, point) => {
    if (frames.x.isLog && place <= 0) return;
    if (frames.y.isLog && line.high[point] <= 0) return;
    [line.low, line.high].forEach((values, end) => {
      if (line.is_staircase && point > 0) ends[end].push([place, Math.max(values[point - 1], bottom)]);
      ends[end].push([place, Math.max(values[point], bottom)]);
    });
  });
  return [...ends[1], ...ends[0].reverse()];
}

// A whisker at each dot that has an interval.
function whiskers(chart, line, frames, colour) {
  const places = chart.places[line.band_places];
  const bottom = frames.y.isLog ? frames.y.low * 1e-3 : -Infinity;
  const data = [];
  places.forEach((place, point) => {
    if ((frames.x.isLog && place <= 0) || (frames.y.isLog && line.high[point] <= 0)) return;
    data.push([place, line.high[point], Math.max(line.low[point], bottom)]);
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
  const [places, values] = [chart.places[line.places], line.values];
  const points = [];
  for (let step = 0; step < 6; step++) {
    const wanted = valueAt(frame, (step + (order + 0.5) / of) / 6);
    let nearest = -1;
    places.forEach((place, point) => {
      const isIn = place >= frame.low && place <= frame.high;
      if (isIn && (nearest < 0 || Math.abs(place - wanted) < Math.abs(places[nearest] - wanted))) nearest = point;
    });
    const beyond = nearest < 0 || Math.abs(shareOf(frame, places[nearest]) - shareOf(frame, wanted)) > 0.1;
    if (!beyond && !points.includes(nearest)) points.push(nearest);
  }
  return points.map(point => [places[point], values[point]]);
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
  const point = (place, value) => [place, frames.y.isLog && value <= 0 ? "-" : value];
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
      const outline = polygon(chart, line, frames);
      series.push({
        ...common, type: "custom", z: 1, data: [[frames.x.low, frames.y.high]], tooltip: { show: false },
        renderItem: (_, api) => ({
          type: "polygon", silent: true, shape: { points: outline.map(place => api.coord(place)) },
          style: { fill: style.colour, opacity: theme.veil },
        }),
      });
    }
    const data = chart.places[line.places].map((place, at) => point(place, line.values[at])).filter(([place]) => !frames.x.isLog || place > 0);
    series.push({
      ...common, type: "line", name: line.role === "mean" ? line.series : undefined, data, z: line.role === "mean" ? 4 : 2,
      step: line.is_staircase ? "end" : false, ...marker, symbolSize: 9, showSymbol: line.has_dots, showAllSymbol: true,
      lineStyle: { color: style.colour, width: { mean: 2.2, seed: 1, fit: 1.6, bound: 2 }[line.role], type: dashes.length ? dashes : "solid",
        opacity: line.role === "seed" ? 0.45 : 1, cap: line.role === "bound" ? "round" : "butt" },
    });
    if (line.role === "mean" && !line.has_dots) {
      const places = markedPoints(chart, line, frames.x, names.indexOf(line.series), names.length).filter(([, value]) => !frames.y.isLog || value > 0);
      series.push({ ...common, type: "scatter", name: line.series, data: places, ...marker, symbolSize: 9, z: 5, tooltip: { show: false } });
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
