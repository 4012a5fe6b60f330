// What axes of lines show and where their ticks are, by the rules of `svg/fit.rs` and `svg/axis.rs`. Ends of a logarithmic axis are logarithms.
// From 0 to 1 along an axis, and back.
function shareOf({ low, high, isLog }, value) {
  const position = isLog && value > 0 ? Math.log10(value) : isLog ? low : value;
  return (position - low) / (high - low);
}

function valueAt({ low, high, isLog }, share) {
  const position = low + (high - low) * share;
  return isLog ? 10 ** position : position;
}

// The value of a line at `x`, null outside of it; the same rule as in the tables.
function read(xs, values, isStaircase, x) {
  const after = xs.findIndex(other => other > x);
  const at = (after < 0 ? xs.length : after) - 1;
  if (at < 0 || (after < 0 && xs[at] !== x)) return null;
  if (xs[at] === x || isStaircase) return values[at];
  return values[at] + ((values[after] - values[at]) * (x - xs[at])) / (xs[after] - xs[at]);
}

// What of a line is between two ends, its values there included.
function between(xs, values, isStaircase, ends) {
  const there = ends.map(end => read(xs, values, isStaircase, end)).filter(value => value !== null);
  return [...there, ...values.filter((_, point) => xs[point] >= ends[0] && xs[point] <= ends[1])];
}

function withMargin([low, high], share) {
  const isWide = high - low > 1e-12 * Math.max(Math.abs(low), Math.abs(high));
  const margin = isWide ? share * (high - low) : Math.max(0.5, 1e-9 * Math.abs(high));
  return [low - margin, high + margin];
}

const axisBetween = ([low, high], isLog) => ({ low, high: high > low ? high : low + 1, isLog });

// The axes of a figure's lines, without those that are hidden.
function fitted({ chart, scales, hidden, window }) {
  const shown = chart.lines.filter(line => !hidden.has(line.series));
  const lines = shown.length ? shown : chart.lines;
  const measured = lines.filter(line => line.role !== "bound");
  const hasDots = measured.some(line => line.has_dots);
  const x = horizontal(chart, measured, scales.x === "log", hasDots, window);

  const isLog = scales.y === "log";
  const ends = window && [0, 1].map(share => valueAt(x, share));
  const of = (list, lists) => list.flatMap(line => lists(line).flatMap(([at, values]) => (ends ? between(chart.xs[at], values, line.is_staircase, ends) : values)));
  const values = list => of(list, line => [[line.xs, line.values]]);
  const isShown = value => !isLog || value > 0;
  let [low, high] = extreme([...values(measured), ...chart.marks.map(mark => mark.value)].filter(isShown));
  if (!Number.isFinite(low)) [low, high] = isLog ? [0.1, 1] : [0, 1];
  // One early interval may be a hundred times as wide as all that happens later.
  const [from, to] = isLog ? [Math.log10(low), Math.log10(high)] : [low, high];
  const beyond = [from - (to - from) / 4, to + (to - from) / 4].map(end => (isLog ? 10 ** end : end));
  const [floor, ceiling] = hasDots ? [-Infinity, Infinity] : beyond;
  const bands = of(measured, line => [[line.band_xs, line.low], [line.band_xs, line.high]]).filter(end => !hasDots || isShown(end));
  const [bottom, top] = extreme([low, high, ...bands.map(end => Math.min(Math.max(end, floor), ceiling))]);
  const bound = extreme(values(lines.filter(line => line.role === "bound")))[1];
  const highest = isLog || bound <= 3 * Math.max(top, 0) ? Math.max(top, bound) : top;
  const [least, most] = [chart.y.range[0] ?? -Infinity, chart.y.range[1] ?? Infinity];
  [low, high] = [Math.max(bottom, Math.min(least, low)), Math.min(highest, Math.max(most, high))];
  if (isLog) return { x, y: axisBetween([Math.log10(low), withMargin([low, high].map(Math.log10), 0.03)[1]], true) };
  const [beneath, above] = withMargin([low, high], 0.03);
  const start = (low >= 0 && low < 0.3 * high) || chart.y.begins ? 0 : beneath;
  return { x, y: axisBetween([Math.max(start, Math.min(least, low)), Math.min(above, Math.max(most, high))], false) };
}

// The ends of the horizontal axis, or of a part of it.
function horizontal(chart, measured, isLog, hasDots, window) {
  let ends = extreme(measured.flatMap(line => chart.xs[line.xs]).filter(x => !isLog || x > 0));
  if (!Number.isFinite(ends[0])) ends = isLog ? [0.1, 1] : [0, 1];
  if (hasDots || isLog) ends = withMargin(isLog ? ends.map(Math.log10) : ends, 0.04);
  else ends = [Math.min(0, ends[0]), ends[1] > 0 ? ends[1] : 1];
  return axisBetween(window ?? ends, isLog);
}

function tickText(count, exponent) {
  const value = count * 10 ** exponent;
  const isLong = count !== 0 && (exponent >= 6 || exponent < -6);
  const text = isLong ? Number(value.toPrecision(12)).toExponential().replace("e+", "e") : value.toFixed(count ? Math.max(0, -exponent) : 0);
  return text.replaceAll("-", "−");
}

// Positions and texts.
function linearTicks({ low, high }, most) {
  const rough = (high - low) / most;
  let exponent = Math.floor(Math.log10(rough));
  let factor = [1, 2, 5].find(factor => factor * 10 ** exponent >= rough * 0.75);
  if (!factor) [factor, exponent] = [1, exponent + 1];
  const step = factor * 10 ** exponent;
  const [first, last] = [Math.ceil(low / step - 1e-9), Math.floor(high / step + 1e-9)];
  return Array.from({ length: last - first + 1 }, (_, index) => [(first + index) * step, tickText((first + index) * factor, exponent)]);
}

function logTicks({ low, high }, most) {
  const all = (factors, every) => {
    const exponents = Array.from({ length: Math.ceil(high) - Math.floor(low) + 1 }, (_, index) => Math.floor(low) + index);
    const ticks = exponents.filter(exponent => exponent % every === 0).flatMap(exponent => factors.map(factor => [Math.log10(factor) + exponent, tickText(factor, exponent)]));
    return ticks.filter(([position]) => position >= low - 1e-9 && position <= high + 1e-9);
  };
  const lists = [[1, 2, 3, 4, 5, 6, 7, 8, 9], [1, 2, 5], [1, 3], [1]].map(factors => all(factors, 1));
  const found = lists.find(ticks => ticks.length >= 3 && ticks.length <= most);
  if (found || high - low >= 1) return found ?? all([1], Math.max(1, Math.ceil((high - low) / most)));
  return linearTicks({ low: 10 ** low, high: 10 ** high }, most).filter(([value]) => value > 0).map(([value, text]) => [Math.log10(value), text]);
}
