// Exits by day as bars: plain SVG, with a table that says the same.

const SVG = "http://www.w3.org/2000/svg";
const HEIGHT = 220, LEFT = 40, RIGHT = 12, BOTTOM = 26, TOP = 10, LABEL = 48;
export const CLASSES = {
  clean: "answered", handed: "handed to a client", stopped: "stopped by a person", refused: "refused by the provider", limit: "at a limit",
  provider: "the provider failed", loop: "went in circles", ours: "our own fault", not_started: "not started", "": "unknown",
};

function shape(name, attributes, ...children) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

/** Counts by class of each day, and the classes that occur, in the order of CLASSES. */
export function byClass(exits) {
  const of = Object.fromEntries(exits.exits.map((e) => [e.exit, e.class]));
  const days = exits.days.map(({ day, counts }) => {
    const found = {};
    for (const [exit, count] of Object.entries(counts)) found[of[exit] ?? ""] = (found[of[exit] ?? ""] ?? 0) + count;
    return { day, found, total: Object.values(found).reduce((a, b) => a + b, 0) };
  });
  return { days, classes: Object.keys(CLASSES).filter((name) => days.some((d) => d.found[name])) };
}

/** The next round number: 1, 2 or 5 with zeros, at least 4. */
export function roundUp(most) {
  let step = 1;
  for (;;) for (const factor of [1, 2, 5]) { const top = factor * step; if (top >= Math.max(4, most)) return top; if (factor === 5) step *= 10; }
}

/** How turns ended, for a box of so many pixels, so that its letters are as large as all others. */
export function chart(exits, width) {
  const { days, classes } = byClass(exits);
  return bars(days, classes, CLASSES, width, "Exits by day", "turns");
}

/** Bars by day, of pieces that are counted: `names` of the pieces, what each is called, and its colour if that is not its name. */
export function bars(days, names, called, width, title, what, colours = {}) {
  const classes = names;
  const top = roundUp(Math.max(...days.map((d) => d.total), 0));
  const room = HEIGHT - TOP - BOTTOM, wide = (width - LEFT - RIGHT) / days.length, every = Math.max(1, Math.ceil(LABEL / wide));
  const y = (count) => TOP + room - (count / top) * room;
  const parts = [];
  for (const count of [0, top / 2, top]) {
    if (!Number.isInteger(count)) continue;
    parts.push(shape("line", { x1: LEFT, x2: width, y1: y(count), y2: y(count) }), shape("text", { x: LEFT - 8, y: y(count) + 4, "text-anchor": "end" }, String(count)));
  }
  days.forEach(({ day, found, total }, index) => {
    const x = LEFT + index * wide + wide * 0.16;
    let below = 0;
    const bars = classes.filter((name) => found[name]).map((name) => {
      const bar = shape("rect", { x, width: wide * 0.68, y: y(below + found[name]), height: Math.max(1, y(below) - y(below + found[name])), class: `k-${colours[name] ?? name}` });
      below += found[name];
      return bar;
    });
    const words = classes.filter((name) => found[name]).map((name) => `${found[name]} ${called[name] ?? name}`).join(", ");
    parts.push(shape("g", {}, shape("title", {}, `${day}: ${total} ${what}${words ? `: ${words}` : ""}`), ...bars));
    if ((days.length - 1 - index) % every === 0) parts.push(shape("text", { x: x + wide * 0.34, y: HEIGHT - 8, "text-anchor": "middle" }, day.slice(5)));
  });
  const sum = days.reduce((a, d) => a + d.total, 0);
  return shape("svg", { class: "chart", viewBox: `0 0 ${width} ${HEIGHT}`, width, height: HEIGHT, role: "img", "aria-label": `${title}: ${sum} ${what} in ${days.length} days. The table below says the same.` }, ...parts);
}

/** Lines over the days, for figures that are not added up: `series` of [name, class, values], of which some may be missing. */
export function lines(days, series, width, title) {
  const top = roundUp(Math.max(...series.flatMap(([, , values]) => values.map((one) => one ?? 0)), 0));
  const room = HEIGHT - TOP - BOTTOM, wide = (width - LEFT - RIGHT) / days.length, every = Math.max(1, Math.ceil(LABEL / wide));
  const x = (index) => LEFT + (index + 0.5) * wide, y = (value) => TOP + room - (value / top) * room;
  const parts = [0, top / 2, top].flatMap((value) => [shape("line", { x1: LEFT, x2: width, y1: y(value), y2: y(value) }), shape("text", { x: LEFT - 8, y: y(value) + 4, "text-anchor": "end" }, String(value))]);
  for (const [name, kind, values] of series) {
    const there = values.map((value, index) => [value, index]).filter(([value]) => value !== null);
    parts.push(shape("polyline", { class: `l-${kind}`, points: there.map(([value, index]) => `${x(index)},${y(value)}`).join(" ") }));
    parts.push(...there.map(([value, index]) => shape("circle", { cx: x(index), cy: y(value), r: 3, class: `k-${kind}` }, shape("title", {}, `${days[index]}: ${name} ${value} s`))));
  }
  days.forEach((day, index) => { if ((days.length - 1 - index) % every === 0) parts.push(shape("text", { x: x(index), y: HEIGHT - 8, "text-anchor": "middle" }, day.slice(5))); });
  return shape("svg", { class: "chart", viewBox: `0 0 ${width} ${HEIGHT}`, width, height: HEIGHT, role: "img", "aria-label": `${title}. The table below says the same.` }, ...parts);
}
