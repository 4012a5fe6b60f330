// Moves the points of drawn lines to other axes: the elements, their styles and their order stay those of the picture.
// Where the axes of a picture have their pixels, and what they show; null if it has no lines.
function frameOf(svg) {
  const frame = svg.querySelector(".frame");
  if (!frame) return null;
  const [[left, right, top, bottom], x, y] = ["frame", "x", "y"].map(name => frame.dataset[name].split(" ").map(Number));
  const axis = ([low, high, isLog]) => ({ low, high, isLog: isLog === 1 });
  return { left, right, top, bottom, x: axis(x), y: axis(y) };
}

// The picture as it was drawn is kept, and comes back where nothing is changed.
function project(figure) {
  const isFirst = figure.window === null && figure.hidden.size === 0 && ["x", "y"].every(axis => figure.scales[axis] === figure.chart[axis].scales[0]);
  const axes = isFirst ? {} : fitted(figure);
  for (const picture of figure.pictures) {
    picture.drawn ??= find(picture.svg, "[data-l], .frame > g, [data-m]").map(node => [node, node.cloneNode(true)]);
    for (const [node, drawn] of picture.drawn) {
      for (const { name, value } of drawn.attributes) if (name !== "class") node.setAttribute(name, value);
      node.removeAttribute("display");
      if (drawn.children.length) node.replaceChildren(...drawn.cloneNode(true).children);
    }
    picture.frame = { ...frameOf(picture.svg), ...axes };
    if (!isFirst) move(figure, picture);
  }
}

function move({ chart }, { svg, frame }) {
  const { left, right, top, bottom } = frame;
  const pixel = value => String(Math.round(Math.min(Math.max(value, -1e5), 1e5) * 10) / 10);
  const across = x => left + (right - left) * shareOf(frame.x, x);
  const up = y => bottom - (bottom - top) * shareOf(frame.y, y);
  const has = ([x, y]) => (!frame.x.isLog || x > 0) && (!frame.y.isLog || y > 0);
  const isIn = ([x, y]) => [shareOf(frame.x, x), shareOf(frame.y, y)].every(share => share > -1e-9 && share < 1 + 1e-9);
  const path = points => (points.length ? `M${points.map(([x, y, aside]) => `${pixel(across(x) + (aside ?? 0))} ${pixel(up(y))}`).join("L")}` : "");
  const dotted = chart.lines.filter(line => line.role === "mean" || line.has_dots);
  for (const node of find(svg, "[data-l]")) {
    const line = chart.lines[node.dataset.l];
    const points = chart.xs[line.xs].map((x, point) => [x, line.values[point]]).filter(has);
    if (node.matches(".line")) node.setAttribute("d", path(corners(points, line.is_staircase)));
    else if (node.matches(".band")) node.setAttribute("d", (line.has_dots ? whiskers : outlines)(chart, line, has).map(path).join(""));
    else {
      const shown = points.filter(isIn);
      const places = line.has_dots ? shown : marked(shown, frame.x, dotted.indexOf(line), dotted.length);
      node.setAttribute("d", places.map(([x, y]) => `M${pixel(across(x))} ${pixel(up(y))}${node.dataset.d}`).join(""));
    }
  }
  for (const node of find(svg, "[data-m]")) {
    const { value } = chart.marks[node.dataset.m];
    const y = up(value);
    // A name stands above its line; `y` of a text is its foot.
    node.setAttribute("display", has([1, value]) && y >= top && y <= bottom ? "inline" : "none");
    if (node.tagName === "text") node.setAttribute("y", pixel(y - 4.8));
    else node.setAttribute("d", `M${left} ${pixel(y)}H${right}`);
  }
  for (const [name, most] of [["x", (right - left) / 75], ["y", (bottom - top) / 45]]) {
    const axis = frame[name];
    const whole = ([position]) => name === "y" || chart.x.label !== "round" || Math.abs((axis.isLog ? 10 ** position : position) % 1) < 1e-9;
    const ticks = (axis.isLog ? logTicks : linearTicks)(axis, Math.max(2, Math.floor(most))).filter(whole);
    const places = ticks.map(([position]) => (position - axis.low) / (axis.high - axis.low)).map(share => pixel(name === "x" ? left + (right - left) * share : bottom - (bottom - top) * share));
    const [line, first] = svg.querySelector(`.frame > .${name}`).children;
    line.setAttribute("d", places.map(place => (name === "x" ? `M${place} ${bottom}v5` : `M${left} ${place}H${right}`)).join(""));
    const group = line.parentElement;
    const texts = ticks.map(([, text], tick) => ({ [name]: name === "x" ? places[tick] : pixel(Number(places[tick]) + 4.2), text: chart.x.label === "round" && name === "x" ? text.split(".0")[0] : text }));
    if (first) group.replaceChildren(line, ...copies(first, texts));
  }
}

// Copies of an element, one for each set of attributes.
const copies = (first, all) => all.map(({ text, ...attributes }) => filled(first.cloneNode(), attributes, text ? [text] : []));

// The corners of a line that keeps each value until the next.
const corners = (points, isStaircase) => (isStaircase ? points.flatMap((point, index) => (index ? [[point[0], ...points[index - 1].slice(1)], point] : [point])) : points);

// On a logarithmic axis there is no place for an interval that reaches zero.
function outlines(chart, line, has) {
  const parts = [[]];
  for (const end of corners(chart.xs[line.band_xs].map((x, point) => [x, line.low[point], line.high[point]]), line.is_staircase)) {
    if (has(end)) parts.at(-1).push(end);
    else parts.push([]);
  }
  const closed = part => [...part.map(([x, , high]) => [x, high]), ...part.map(([x, low]) => [x, low]).reverse(), [part[0][0], part[0][2]]];
  return parts.filter(part => part.length > 1).map(closed);
}

function whiskers(chart, line, has) {
  const ends = chart.xs[line.band_xs].map((x, point) => [x, line.low[point], line.high[point]]).filter(([x, , high]) => has([x, high]));
  return ends.flatMap(([x, low, high]) => [[[x, high], [x, low]], [[x, high, -4], [x, high, 4]], [[x, low, -4], [x, low, 4]]]);
}

// Where a line has markers: at a few of its points, spread evenly over the picture, other ones for each series.
function marked(points, axis, order, count) {
  const found = Array.from({ length: 6 }, (_, step) => {
    const distance = point => Math.abs(shareOf(axis, point[0]) - (step + (order + 0.5) / count) / 6);
    return points.filter(point => distance(point) < 0.1).sort((one, other) => distance(one) - distance(other))[0];
  });
  return [...new Set(found.filter(point => point))];
}
