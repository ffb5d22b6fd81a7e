// The timeline: a lane for each node with the views it was in, and a mark for each entry.

import { svg, names } from "./dom.js";
import { short } from "./ring.js";

const LANE = 30;
const TOP = 30;
const HUES = [212, 160, 32, 282, 96, 340, 190, 52];

const SHAPES = {
  view: "M-5-6H5V6H-5Z", suspicion: "M0-7L7 6H-7Z", warning: "M0-7L7 0L0 7L-7 0Z",
  gone: "M-6-3L-3-6L0-3L3-6L6-3L3 0L6 3L3 6L0 3L-3 6L-6 3L-3 0Z", fault: "M1-8L-5 1H-1L-2 8L5-2H1Z",
  repeats: "M-7-4H3V-7L8-2.500L3 2V-1H-7ZM7 4H-3V1L-8 5.500L-3 8V7H7Z", other: "M-4-4H4V4H-4Z",
};

function shape(kind) {
  return svg("path", { d: SHAPES[kind] ?? SHAPES.other, class: `k-${kind in SHAPES ? kind : "other"}` });
}

/** The sign of a kind of entry, for lists and legends. */
export function glyph(kind) {
  return svg("svg", { viewBox: "-9 -9 18 18", width: 14, height: 14, "aria-hidden": "true" }, shape(kind));
}

/** What is shown as one kind. */
function drawnAs(entry) {
  if (entry.kind === "silent" || entry.kind === "back") return "gone";
  return entry.kind in SHAPES ? entry.kind : "other";
}

/** Stretches of time that a node was in a view, or did not run. */
export function bands(all, node, from, to) {
  const turns = [];
  for (const entry of all) {
    if (entry.kind === "view" && entry.at[node] !== undefined) turns.push({ t: entry.at[node], view: entry });
    if (entry.kind === "gone" && entry.at[node] !== undefined) turns.push({ t: entry.at[node], view: null });
  }
  turns.sort((a, b) => a.t - b.t);
  return turns
    .map((turn, i) => ({ view: turn.view, from: Math.max(turn.t, from), to: Math.min(turns[i + 1]?.t ?? to, to), begins: turn.t >= from }))
    .filter((band) => band.to > band.from);
}

export class Timeline {
  constructor(onChoose) {
    this.onChoose = onChoose;
    this.element = svg("svg", { class: "timeline", role: "img", "aria-label": "Timeline of the group" });
  }

  show({ nodes, all, marks, span_s, chosen }) {
    const width = Math.max(320, this.element.parentElement?.clientWidth - 34 || 800);
    const left = Math.min(90, 18 + 8.5 * Math.max(1, ...nodes.map((name) => Math.min(name.length, 8))));
    const height = TOP + LANE * nodes.length + 24;
    const to = Date.now();
    const from = to - span_s * 1000;
    const x = (t) => left + ((t - from) / (to - from)) * (width - left - 10);
    const y = (i) => TOP + LANE * i + LANE / 2;
    this.element.setAttribute("viewBox", `0 0 ${width} ${height}`);
    this.element.style.height = `${height}px`;
    const seen = marks.filter((entry) => entry.t_ms >= from);
    this.element.setAttribute("aria-label", `Timeline of ${names(nodes)}: ${seen.length} things happened; they are listed below.`);
    this.views = all.filter((entry) => entry.kind === "view").sort((a, b) => a.id - b.id).map((entry) => entry.view);
    const parts = this.axis(from, to, x, height);
    nodes.forEach((node, i) => {
      const name = node.length > 8 ? `${node.slice(0, 7)}…` : node;
      parts.push(svg("text", { class: "lane-name", x: 4, y: y(i) + 4 }, name), svg("path", { class: "lane", d: `M${left} ${y(i)}H${width - 10}` }));
      for (const band of bands(all, node, from, to)) parts.push(this.band(band, x, y(i)));
    });
    for (const entry of seen) parts.push(...this.marks(entry, nodes, x, y, height));
    if (chosen && chosen.t_ms >= from) parts.push(svg("path", { class: "chosen-line", d: `M${x(chosen.t_ms)} ${TOP - 12}V${height - 22}` }));
    this.element.replaceChildren(...parts);
  }

  axis(from, to, x, height) {
    const steps = [1, 2, 5, 10, 30, 60, 120, 300, 600].map((s) => s * 1000);
    const step = steps.find((s) => (to - from) / s <= 8) ?? 600000;
    const parts = [];
    for (let t = Math.ceil(from / step) * step; t < to; t += step) {
      parts.push(
        svg("path", { class: "grid", d: `M${x(t).toFixed(1)} ${TOP - 8}V${height - 22}` }),
        svg("text", { x: x(t).toFixed(1), y: height - 6, "text-anchor": "middle" }, new Date(t).toLocaleTimeString("en-GB")),
      );
    }
    return parts;
  }

  band(band, x, y) {
    const wide = x(band.to) - x(band.from);
    const at = { x: x(band.from).toFixed(1), y: y - 9, width: wide.toFixed(1), height: 18 };
    if (!band.view) return svg("rect", { ...at, class: "off" }, svg("title", {}, "does not run"));
    const hue = HUES[this.views.indexOf(band.view.view) % HUES.length];
    const about = `view ${band.view.view} of ${names(band.view.members ?? [])}, ${band.view.primary ? "primary" : "not primary"}`;
    const rect = svg("rect", { ...at, class: `band ${band.view.primary ? "primary" : "minor"}`, fill: `hsl(${hue} 55% 50%)` }, svg("title", {}, about));
    if (wide < 70) return rect;
    return svg("g", {}, rect, svg("text", { x: (x(band.from) + 8).toFixed(1), y: y + 4, style: "fill:#fff;font-weight:600;paint-order:stroke;stroke:#0008;stroke-width:2px" }, short(band.view.view)));
  }

  marks(entry, nodes, x, y, height) {
    const kind = drawnAs(entry);
    const parts = [];
    const mark = (at, level) => {
      const one = svg(
        "g",
        { class: "mark", transform: `translate(${x(at).toFixed(1)} ${level})`, "data-kind": kind },
        svg("title", {}, entry.sentence),
        svg("circle", { class: "hit", r: 12 }),
        shape(kind),
      );
      one.addEventListener("click", () => this.onChoose(entry));
      parts.push(one);
    };
    if (kind === "fault") {
      const at = x(entry.t_ms).toFixed(1);
      parts.push(svg("path", { class: "fault-line", d: `M${at} ${TOP - 6}V${height - 22}` }));
      mark(entry.t_ms, TOP - 14);
      return parts;
    }
    for (const [node, at] of Object.entries(entry.at)) {
      const lane = nodes.indexOf(node);
      if (lane >= 0) mark(at, y(lane));
    }
    return parts;
  }
}
