// Drawings as SVG: cords with knots, bars by day. Labelled directly; colour only for the accent and for errors.

import { el } from "./text.js";

const SVG = "http://www.w3.org/2000/svg";

/** An element of a drawing. Attributes are numbers and words of ours, never text of a transcript. */
export function draw(tag, attributes = {}, ...children) {
  const node = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) if (value !== null && value !== undefined) node.setAttribute(name, String(value));
  node.append(...children);
  return node;
}

/** The words of a drawing for those who do not see it. */
export function named(svg, label) {
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", label);
  return svg;
}

/**
 * Bars, one for each item `{ label, value, note?, href?, isNow? }`; a value of null is unknown and drawn as such.
 * `format` says a value in words; the highest is labelled.
 */
export function bars(label, items, format, { height = 120 } = {}) {
  const most = Math.max(0, ...items.map((item) => item.value ?? 0));
  const wide = 100 / Math.max(1, items.length);
  const svg = named(draw("svg", { class: "bars", viewBox: `0 0 100 ${height}`, preserveAspectRatio: "none", height }), label);
  svg.append(draw("line", { class: "cord-line", x1: 0, y1: 1, x2: 100, y2: 1 }));
  items.forEach((item, n) => {
    const x = n * wide + wide / 2;
    const tall = most > 0 ? Math.max(item.value ? 3 : 0, ((item.value ?? 0) / most) * (height - 22)) : 0;
    const group = draw("g", { class: item.isNow ? "bar-item is-now" : "bar-item" }, draw("title", {}, `${item.label}: ${item.value === null ? "unknown" : format(item.value)}${item.note ? `, ${item.note}` : ""}`));
    group.append(draw("rect", { class: "bar-hit", x: n * wide, y: 0, width: wide, height }));
    // Nothing hangs where nothing was.
    if (item.value !== 0) group.append(draw("line", { class: item.value === null ? "bar-unknown" : "bar-string", x1: x, y1: 1, x2: x, y2: 1 + Math.max(tall, item.value === null ? 8 : 0), "stroke-width": Math.min(8, wide * 5), "vector-effect": "non-scaling-stroke" }));
    svg.append(group);
  });
  const highest = items.reduce((best, item, n) => ((item.value ?? -1) > (items[best]?.value ?? -1) ? n : best), 0);
  const box = el("figure", "chart", svg);
  const axis = el("figcaption", "axis", el("span", "", items[0]?.label ?? ""), el("span", "peak", most > 0 ? `most: ${format(items[highest].value)}, ${items[highest].label}` : ""), el("span", "", items.at(-1)?.label ?? ""));
  box.append(axis);
  return box;
}

/**
 * A bundle of cords: one cord for each `{ label, href, knots: [{ at, size, isError, isAccent, title, href }] }`.
 * `at` is from 0 to 1 along the cord, `size` from 0 to 1.
 */
export function bundle(label, cords) {
  const node = el("ol", "bundle");
  node.setAttribute("aria-label", label);
  for (const cord of cords) {
    const svg = draw("svg", { class: "cord", viewBox: "0 0 1000 30", preserveAspectRatio: "none", "aria-hidden": "true" }, draw("line", { class: "cord-line", x1: 0, y1: 6, x2: 1000, y2: 6, "vector-effect": "non-scaling-stroke" }));
    const knots = el("span", "knots");
    for (const knot of cord.knots) {
      const it = el(knot.href ? "a" : "span", `string${knot.isError ? " is-error" : ""}${knot.isAccent ? " is-accent" : ""}`);
      it.style.left = `${(knot.at * 100).toFixed(2)}%`;
      it.style.setProperty("--long", (0.25 + 0.75 * Math.min(1, knot.size)).toFixed(2));
      if (knot.href) it.href = knot.href;
      it.title = knot.title;
      it.setAttribute("aria-label", knot.title);
      knots.append(it);
    }
    const name = cord.href ? el("a", "cord-name", cord.label) : el("span", "cord-name", cord.label);
    if (cord.href) name.href = cord.href;
    node.append(el("li", "cord-row", name, el("div", "cord-box", svg, knots), el("span", "cord-sum", cord.sum ?? "")));
  }
  return node;
}
