// Colours, signs, numbers and ticks: what all figures have in common.
"use strict";

const NONCE = document.currentScript.nonce;

// Runs the script that draws, which the page has compressed.
async function unpack(letters) {
  const bytes = Uint8Array.from(atob(letters), letter => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  const script = document.createElement("script");
  script.nonce = NONCE;
  script.textContent = await new Response(stream).text();
  document.head.append(script);
}

const THEMES = {
  light: { ink: "#1b1f24", faint: "#5a6470", rule: "#dfe3e8", paper: "#ffffff", empty: "#eceff2", veil: 0.16 },
  dark: { ink: "#e4e7eb", faint: "#a0a9b4", rule: "#2f363e", paper: "#15181c", empty: "#23282f", veil: 0.26 },
};
const FONT = "system-ui, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, 'Liberation Sans', 'DejaVu Sans', sans-serif";

const DASHES = { mean: [], seed: [], extreme: [], fit: [7, 4], bound: [1.5, 3.5] };
// Long enough not to be taken for a fitted curve.
const LONG_DASHES = [14, 4];

// The marker of what is no policy of the report.
const CIRCLE = "M0,-5A5,5,0,1,1,0,5A5,5,0,1,1,0,-5Z";

// Single seeds, and the lowest and highest of what a mean is of.
function isThin(role) {
  return role === "seed" || role === "extreme";
}

// The dashes of a line: those of its role, or for a mean those of its series.
function dashesOf(style, role) {
  return role === "mean" && style.isDashed ? LONG_DASHES : DASHES[role];
}

// How a marker is painted: filled with an edge of paper, or the other way round.
function markerPaint({ colour, paper, isHollow }) {
  return isHollow ? { fill: paper, edge: colour, width: 1.4 } : { fill: colour, edge: paper, width: 1 };
}

function luminance(colour) {
  const [red, green, blue] = colour.map(part => {
    const share = part / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

function contrast(one, other) {
  const [dark, light] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (light + 0.05) / (dark + 0.05);
}

// A series' colour. On dark paper those that would be lost become lighter: greys change sides, hues keep their hue.
function paint(colour, theme) {
  let seen = colour;
  if (theme === THEMES.dark) {
    const paper = [21, 24, 28];
    if (contrast(seen, paper) < 4) {
      const isGrey = Math.max(...seen) - Math.min(...seen) < 24;
      if (isGrey) seen = seen.map(part => Math.min(235, 255 - part));
      for (let step = 0; contrast(seen, paper) < 4.5 && step < 20; step++) seen = seen.map(part => part + (255 - part) * 0.1);
    }
  }
  return `rgb(${seen.map(Math.round).join(",")})`;
}

// What a text may have in it that no XML file may.
function clean(value) {
  if (typeof value === "string") return value.replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g, "\ufffd");
  if (Array.isArray(value)) return typeof value[0] === "number" ? value : value.map(clean);
  if (value && typeof value === "object") return Object.fromEntries(Object.entries(value).map(([key, of]) => [key, clean(of)]));
  return value;
}

function shortened(text, most) {
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}

function axisName(axis) {
  return axis.unit ? `${axis.label} [${axis.unit}]` : axis.label;
}

// A number for people.
function words(value, digits = 4) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  const rounded = Number(value.toPrecision(digits));
  const size = Math.abs(rounded);
  let text;
  if (size !== 0 && (size >= 1e7 || size < 1e-4)) {
    const [mantissa, power] = rounded.toExponential().split("e");
    text = `${mantissa === "1" ? "" : `${mantissa} × `}10${superscript(Number(power))}`;
  } else {
    text = String(rounded);
    if (size >= 1e4) text = text.replace(/\d(?=(\d{3})+(?!\d))/g, "$&\u202f");
  }
  return text.replace(/^-/, "−");
}

function superscript(power) {
  return String(power).replace(/[-\d]/g, sign => (sign === "-" ? "⁻" : "⁰¹²³⁴⁵⁶⁷⁸⁹"[Number(sign)]));
}

// Ticks at multiples of 1, 2, 5, or of 25 where that is what fits.
function linearTicks(low, high, most) {
  const rough = (high - low) / Math.max(1, most);
  const unit = 10 ** Math.floor(Math.log10(rough));
  const step = unit * (unit === 1 ? [1, 2, 5, 10] : [1, 2, 2.5, 5, 10]).find(factor => unit * factor >= rough * 0.999);
  const ticks = [];
  for (let count = Math.ceil(low / step - 1e-9); count * step <= high + step * 1e-9; count++) {
    ticks.push(Number((count * step).toPrecision(12)));
  }
  return ticks;
}

// Ticks at 1, 2, 5 times powers of ten, or at powers alone where there are many of them; like a linear axis' within one decade.
function logTicks(low, high, most) {
  const [first, last] = [Math.floor(Math.log10(low)), Math.ceil(Math.log10(high))];
  const within = list => list.filter(value => value >= low * 0.9999999 && value <= high * 1.0000001);
  const powers = [];
  for (let power = first; power <= last; power++) powers.push(power);
  for (const factors of [[1, 2, 3, 4, 5, 6, 7, 8, 9], [1, 2, 5], [1, 3], [1]]) {
    const ticks = within(powers.flatMap(power => factors.map(factor => Number((factor * 10 ** power).toPrecision(12)))));
    if (ticks.length <= most && ticks.length >= 3) return ticks;
  }
  const whole = within(powers.map(power => Number((10 ** power).toPrecision(12))));
  if (whole.length < 2) return linearTicks(low, high, most).filter(value => value > 0);
  const every = Math.ceil(whole.length / most);
  return whole.filter((_, index) => index % every === 0);
}

// Where an axis begins and ends, given what it must show: { low, high, isLog }.
function frameOf(values, isLog, range, pad) {
  const shown = values.filter(value => Number.isFinite(value) && (!isLog || value > 0));
  let low = Math.min(...shown);
  let high = Math.max(...shown);
  if (shown.length === 0) [low, high] = isLog ? [0.1, 1] : [0, 1];
  if (isLog) {
    const room = high > low ? (high / low) ** pad : 1.5;
    [low, high] = [low / room, high * room];
  } else {
    const room = high > low ? (high - low) * pad : Math.abs(high) * 0.1 || 1;
    // A line along the edge would be cut in half, and people look for zero.
    if (low >= 0 && low < high * 0.3 && pad > 0) low = 0;
    else low -= room;
    high += room;
  }
  if (range[0] !== null && (!isLog || range[0] > 0)) low = range[0];
  if (range[1] !== null && (!isLog || range[1] > 0)) high = range[1];
  if (!(high > low)) high = isLog ? low * 10 : low + 1;
  return { low, high, isLog };
}

// From 0 to 1 along an axis, and back.
function shareOf(frame, value) {
  if (!frame.isLog) return (value - frame.low) / (frame.high - frame.low);
  return Math.log(value / frame.low) / Math.log(frame.high / frame.low);
}

function valueAt(frame, share) {
  return frame.isLog ? frame.low * (frame.high / frame.low) ** share : frame.low + (frame.high - frame.low) * share;
}

// An SVG element; nothing of it is ever parsed from text.
function svgElement(name, attributes) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return element;
}

// How a series looks, for legends and tips.
function sample(style, role) {
  const svg = svgElement("svg", { width: 30, height: 12, viewBox: "0 0 30 12", "aria-hidden": "true" });
  const line = { x1: 0, y1: 6, x2: 30, y2: 6, stroke: style.colour, "stroke-width": isThin(role) ? 1 : 2.2 };
  const dashes = dashesOf(style, role);
  if (dashes.length) line["stroke-dasharray"] = dashes.join(" ");
  // A dash at each end, so that the marker does not cover the gap.
  if (dashes === LONG_DASHES) line["stroke-dasharray"] = "11 8";
  svg.append(svgElement("line", line));
  if (role === "mean") {
    const { fill, edge, width } = markerPaint(style);
    // The edge of a filled marker is behind it, so that nothing of a small one is covered.
    const order = style.isHollow ? "fill" : "stroke";
    svg.append(svgElement("path", { d: style.marker, fill, stroke: edge, "stroke-width": style.isHollow ? width : 2 * width, "paint-order": order, transform: "translate(15 6) scale(.95)" }));
  }
  return svg;
}

function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}
