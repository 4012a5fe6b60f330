// Elements, and numbers as texts. All scripts together are one, in the order of their files.
"use strict";

const report = JSON.parse(document.getElementById("data").textContent);

const find = (root, selector) => [...root.querySelectorAll(selector)];

// Elements are never parsed from text.
const element = (name, attributes = {}, ...children) => filled(document.createElement(name), attributes, children);
const svgElement = (name, attributes, ...children) => filled(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);

function filled(made, attributes, children = []) {
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

const axisName = axis => (axis.unit ? `${axis.label} [${axis.unit}]` : axis.label);
// A number for people.
function words(value, digits = 4) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  const rounded = Number(value.toPrecision(digits));
  const size = Math.abs(rounded);
  if (size === 0 || (size >= 1e-4 && size < 1e4)) return String(rounded).replace("-", "−");
  if (size >= 1e4 && size < 1e7) return String(rounded).replace(/\d(?=(\d{3})+(?!\d))/g, "$&\u202f").replace("-", "−");
  const [mantissa, power] = rounded.toExponential().split("e");
  const raised = String(Number(power)).replace(/[-\d]/g, sign => (sign === "-" ? "⁻" : "⁰¹²³⁴⁵⁶⁷⁸⁹"[Number(sign)]));
  return `${mantissa.replace("-", "−")} × 10${raised}`.replace(/^(−?)1 × /, "$1");
}

const withEnds = (value, ends) => (ends ? `${words(value)}  [${words(ends[0])}, ${words(ends[1])}]` : words(value));

const extreme = list => list.reduce(([low, high], value) => [Math.min(low, value), Math.max(high, value)], [Infinity, -Infinity]);
