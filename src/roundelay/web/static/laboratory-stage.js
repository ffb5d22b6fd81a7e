// The picture of a step: the nodes in a circle, and the frames between them.

import { element, shape } from "./laboratory-elements.js";

/** The sizes of the picture, for pages of any width and for narrow ones, where texts stay legible. */
const WIDE = { width: 720, height: 470, across: 265, down: 168 };
const NARROW = { width: 400, height: 430, across: 138, down: 150 };
const RADIUS = 27;
const VIEWS = 6;

/** A picture that shows one step after the other. */
export class Stage {
  constructor() {
    this.picture = shape("svg", {
      class: "lab-stage", role: "img", preserveAspectRatio: "xMidYMid meet",
    });
    this.legend = element("p", { class: "quiet lab-legend" });
    this.element = element("div", { class: "lab-stage-box" }, this.picture, this.legend);
    this.views = new Map();
  }

  /** Begin with another run. */
  begin(nodes) {
    this.nodes = nodes;
    this.views.clear();
    const size = window.matchMedia("(max-width: 40rem)").matches ? { ...NARROW } : { ...WIDE };
    if (nodes.length === 2) size.height /= 2;
    this.size = size;
    this.picture.setAttribute("viewBox", `0 0 ${size.width} ${size.height}`);
    // An odd number of nodes in a circle is higher than it is low: three stand in the middle too.
    const lowest = Math.max(...nodes.map((_, i) => -Math.cos((2 * Math.PI * i) / nodes.length)));
    const lift = nodes.length > 2 ? ((1 - lowest) * size.down) / 2 : 0;
    const middle = { x: size.width / 2, y: size.height / 2 - 10 + lift };
    this.places = new Map(nodes.map((node, i) => {
      const angle = -Math.PI / 2 + (2 * Math.PI * i) / nodes.length;
      // Two nodes stand beside each other.
      const turned = nodes.length === 2 ? angle - Math.PI / 2 : angle;
      return [node, {
        x: middle.x + size.across * Math.cos(turned),
        y: middle.y + size.down * Math.sin(turned),
      }];
    }));
  }

  /** Show a step: states of nodes, flights with what they are now, and links that are cut. */
  show({ said, states, flights, cuts, acting, witness, forward }) {
    const lines = shape("g");
    const labels = shape("g");
    const moving = [];
    for (const pair of cutPairs(cuts)) lines.append(this.#cut(...pair));
    const labelled = new Set();
    for (const flight of flights) {
      const from = this.places.get(flight.from);
      const to = this.places.get(flight.to);
      if (!from || !to || flight.from === flight.to) continue;
      const drawn = this.#flight(from, to, flight);
      lines.append(drawn.line);
      if (drawn.cross) labels.append(drawn.cross);
      const name = `${flight.frame} ${flight.now === "sent" ? "" : flight.to}`;
      if (flight.now !== "under way" && !labelled.has(name)) {
        labelled.add(name);
        labels.append(this.#label(drawn.text.x, drawn.text.y, flight.tag, `lab-tag ${flight.now}`));
      }
      if (flight.now === "arrived" && forward) moving.push(drawn.ends);
    }
    const nodes = this.nodes.map((node) =>
      this.#node(node, states.get(node) ?? new Map(), node === acting, witness.has(node)));
    this.picture.replaceChildren(
      shape("title", {}, said), shape("defs", {}, head("old"), head("new"), head("come")),
      lines, ...nodes, labels);
    for (const ends of moving) this.#move(ends);
    const waiting = flights.filter((flight) => flight.now === "under way").length;
    this.legend.textContent = waiting
      ? `${waiting} ${waiting === 1 ? "copy" : "copies"} of frames under way since earlier steps (thin lines)`
      : "no frame is under way since an earlier step";
  }

  #node(node, state, acts, proves) {
    const { x, y } = this.places.get(node);
    const is = state.get("is") ?? "not started";
    const view = (state.get("view") ?? "").split(" ")[0];
    const kind = is.startsWith("up") ? `up view-${this.#colour(view)}` : is === "paused" ? "paused" : "gone";
    const group = shape("g", { class: `lab-node ${kind}` });
    if (acts) group.append(shape("circle", { class: "lab-acts", cx: x, cy: y, r: RADIUS + 8 }));
    if (proves) group.append(shape("circle", { class: "lab-proves", cx: x, cy: y, r: RADIUS + 13 }));
    group.append(
      shape("circle", { class: "lab-body", cx: x, cy: y, r: RADIUS }),
      shape("text", { class: "lab-name", x, y: y + 6 }, short(node, 6)));
    if (state.get("token")) {
      group.append(
        shape("circle", { class: "lab-token", cx: x + RADIUS - 4, cy: y - RADIUS + 4, r: 9 },
          shape("title", {}, `${node} has the token`)));
    }
    const phase = (state.get("phase") ?? "").split(":")[0];
    const lines = [
      is.startsWith("up") ? (phase && phase !== "operational" ? `${view} ${phase}` : view) : is,
      lastOf(state.get("delivered") ?? ""),
    ].filter(Boolean);
    const below = y + RADIUS + (proves ? 30 : acts ? 24 : 18);
    lines.forEach((line, i) => group.append(this.#label(x, below + 16 * i, line, i ? "lab-got" : "lab-is")));
    return group;
  }

  #colour(view) {
    if (!view) return 0;
    if (!this.views.has(view)) this.views.set(view, this.views.size % VIEWS);
    return this.views.get(view);
  }

  #flight(from, to, flight) {
    const [dx, dy] = [to.x - from.x, to.y - from.y];
    const long = Math.hypot(dx, dy) || 1;
    const [ux, uy] = [dx / long, dy / long];
    // To the right of the straight line, so that two ways between two nodes are two lines.
    const [ox, oy] = [-uy * 7, ux * 7];
    const start = { x: from.x + ux * (RADIUS + 3) + ox, y: from.y + uy * (RADIUS + 3) + oy };
    const rest = long - 2 * RADIUS - 12;
    const share = { sent: 0.55, lost: 0.62, refused: 1 }[flight.now] ?? 1;
    const end = { x: start.x + ux * rest * share, y: start.y + uy * rest * share };
    const marker = { arrived: "come", sent: "new", lost: null }[flight.now];
    const line = shape("path", {
      class: `lab-flight ${flight.now.replace(" ", "-")}`,
      d: `M${start.x.toFixed(1)} ${start.y.toFixed(1)}L${end.x.toFixed(1)} ${end.y.toFixed(1)}`,
      "marker-end": marker === null ? null : `url(#lab-head-${marker ?? "old"})`,
    }, shape("title", {}, flight.text));
    const cross = flight.now === "lost" || flight.now === "refused"
      ? shape("path", { class: "lab-cross",
        d: `M${end.x - 6} ${end.y - 6}L${end.x + 6} ${end.y + 6}M${end.x - 6} ${end.y + 6}L${end.x + 6} ${end.y - 6}` })
      : null;
    const at = flight.now === "sent" ? 0.3 : 0.5;
    const text = { x: start.x + ux * rest * at + ox * 1.6, y: start.y + uy * rest * at + oy * 1.6 + 4 };
    return { line, cross, text, ends: [start, end] };
  }

  #cut(a, b) {
    const [from, to] = [this.places.get(a), this.places.get(b)];
    return shape("path", { class: "lab-cut", d: `M${from.x} ${from.y}L${to.x} ${to.y}` },
      shape("title", {}, `the link between ${a} and ${b} is cut`));
  }

  #label(x, y, text, kind) {
    // About 3.6 units for half a letter: a text must not begin or end outside.
    const half = text.length * 3.6 + 4;
    const within = Math.max(half, Math.min(x, this.size.width - half));
    return shape("text", { x: within.toFixed(1), y: y.toFixed(1), class: kind, "text-anchor": "middle" }, text);
  }

  /** A dot that goes where a frame went. */
  #move([start, end]) {
    if (window.matchMedia("(prefers-reduced-motion: reduce)").matches) return;
    const dot = shape("circle", { class: "lab-dot", r: 6 });
    this.picture.append(dot);
    dot.animate(
      [{ transform: `translate(${start.x}px, ${start.y}px)` },
        { transform: `translate(${end.x}px, ${end.y}px)` }],
      { duration: 320, easing: "ease-out" },
    ).onfinish = () => dot.remove();
  }
}

/** Pairs of nodes between which a link is cut, at least one way. */
function cutPairs(cuts) {
  const pairs = new Map();
  for (const cut of cuts) {
    const pair = cut.split(">").sort();
    pairs.set(pair.join(">"), pair);
  }
  return pairs.values();
}

function head(name) {
  return shape("marker", {
    id: `lab-head-${name}`, class: `lab-arrowhead ${name}`, viewBox: "0 0 10 10", refX: 8, refY: 5,
    markerWidth: 8, markerHeight: 8, markerUnits: "userSpaceOnUse", orient: "auto-start-reverse",
  }, shape("path", { d: "M0 0L10 5L0 10Z" }));
}

function short(text, most) {
  return text.length <= most ? text : `${text.slice(0, most - 1)}…`;
}

/** The end of what a node delivered. */
function lastOf(delivered) {
  const messages = delivered.split(" ").filter(Boolean);
  const last = messages.slice(-4).join(" ");
  return (messages.length > 4 ? "… " : "") + short(last, 26);
}
