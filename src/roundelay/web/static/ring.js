// The picture of a group: its members on the ring of their view, the token, and who is away.

import { el, svg, dress, say, names } from "./dom.js";
import { Pace } from "./pace.js";

const NODE = 26; // Radius of a node.
const SMALL = 19; // On a narrow page.
const EASE = 0.14; // Part of the way that a node moves to its place with every drawing.

/** Where everybody stands: rings side by side, and a row of those that are away. */
export function places(group, width, height) {
  const node = width < 480 ? SMALL : NODE;
  const at = new Map();
  const rings = [];
  const placed = new Set();
  const shown = group.rings.length ? group.rings : [];
  const members = shown.map((ring) => {
    const here = ring.members.filter((name) => !placed.has(name));
    here.forEach((name) => placed.add(name));
    return here;
  });
  const away = group.nodes.map((node) => node.name).filter((name) => !placed.has(name));
  const low = away.length ? 84 : 0;
  const count = Math.max(shown.length, 1);
  const columns = width > height * 1.1 || count === 1 ? count : Math.ceil(count / 2);
  const lines = Math.ceil(count / columns);
  const cell = { w: width / columns, h: (height - low) / lines };
  shown.forEach((ring, i) => {
    const x = cell.w * ((i % columns) + 0.5);
    const y = cell.h * (Math.floor(i / columns) + 0.5);
    const most = Math.min(cell.w / 2 - node - 20, cell.h / 2 - node - 34);
    const r = members[i].length === 1 ? 0 : Math.max(24, Math.min(most, 185));
    rings.push({ ...ring, x, y, r, here: members[i] });
    members[i].forEach((name, n) => {
      const angle = (2 * Math.PI * n) / members[i].length - Math.PI / 2;
      at.set(name, { x: x + r * Math.cos(angle), y: y + r * Math.sin(angle) });
    });
  });
  const step = Math.min(90, width / Math.max(away.length, 1));
  away.forEach((name, n) => {
    at.set(name, { x: width / 2 + step * (n - (away.length - 1) / 2), y: height - node - 24 });
  });
  return { at, rings, away, node };
}

const STATES = { up: "runs", silent: "silent", gone: "gone", unknown: "unknown", elsewhere: "not seen" };

/** The end of a view's name: its beginning is a time, and the same for views of one day. */
export function short(id) {
  const [number, rep] = [id.slice(0, id.indexOf(".")), id.slice(id.indexOf("."))];
  return number.length > 6 ? `…${number.slice(-4)}${rep}` : id;
}

/** A node's state in a word. */
export function standing(node) {
  if (node.state === "up" && node.phase !== "operational") return node.phase;
  return STATES[node.state] ?? node.state;
}

export class RingPicture {
  constructor() {
    const still = matchMedia("(prefers-reduced-motion: reduce)");
    this.pace = new Pace({ still: still.matches });
    still.addEventListener("change", () => (this.pace = new Pace({ still: still.matches })));
    this.links = svg("g", { class: "rings" });
    this.tokens = svg("g", { class: "tokens" });
    this.bodies = svg("g", { class: "bodies" });
    this.svg = svg("svg", { class: "ring-picture", role: "img", "aria-label": "No group yet." }, this.links, this.tokens, this.bodies);
    this.note = el("p", { class: "quiet small" });
    this.element = el("div", { class: "ring-box" }, this.svg, this.note);
    this.nodes = new Map();
    this.ringShapes = [];
    this.tokenShapes = [];
    this.group = null;
    this.layout = null;
    this.size = { w: 640, h: 420 };
    this.angles = new Map();
    new ResizeObserver(() => this.resize()).observe(this.element);
    requestAnimationFrame((now) => this.frame(now));
  }

  resize() {
    const w = Math.max(280, this.element.clientWidth);
    const h = Math.max(300, Math.min(470, w * 0.75));
    if (Math.abs(w - this.size.w) < 1 && this.layout) return;
    this.size = { w, h };
    this.svg.setAttribute("viewBox", `0 0 ${w} ${h}`);
    this.svg.style.height = `${h}px`;
    if (this.group) this.show(this.group);
  }

  /** The group has changed, or nothing has. */
  show(group) {
    const first = !this.group || this.group.name !== group.name;
    this.group = group;
    this.layout = places(group, this.size.w, this.size.h);
    this.svg.setAttribute("aria-label", described(group));
    this.drawRings();
    this.drawNodes(first);
    if (this.pace.level === 2) this.draw(performance.now(), true);
  }

  drawRings() {
    const { rings } = this.layout;
    while (this.ringShapes.length > rings.length) {
      const shape = this.ringShapes.pop();
      shape.group.remove();
      this.tokenShapes.pop().remove();
    }
    rings.forEach((ring, i) => {
      if (!this.ringShapes[i]) {
        const circle = svg("circle", {});
        const title = svg("text", { class: "ring-title", "text-anchor": "middle" });
        const about = svg("text", { class: "ring-about", "text-anchor": "middle" });
        const shape = { group: svg("g", {}, circle, title, about), circle, title, about };
        this.links.append(shape.group);
        this.ringShapes[i] = shape;
        this.tokenShapes[i] = svg("circle", { class: "token", r: 8 });
        this.tokens.append(this.tokenShapes[i]);
      }
      const shape = this.ringShapes[i];
      dress(shape.group, `ring ${ring.primary ? "primary" : "minor"}`);
      shape.circle.setAttribute("cx", ring.x);
      shape.circle.setAttribute("cy", ring.y);
      shape.circle.setAttribute("r", Math.max(ring.r, 1));
      const inside = ring.r > 70; // Else the words have no room there.
      const below = ring.y + ring.r + this.layout.node + 34;
      for (const [text, dy] of [[shape.title, -2], [shape.about, 17]]) {
        text.setAttribute("x", ring.x);
        text.setAttribute("y", (inside ? ring.y : below) + dy);
      }
      say(shape.title, `view ${short(ring.id)}`);
      say(shape.about, ring.primary ? "primary" : "not primary");
    });
  }

  drawNodes(first) {
    const known = new Set();
    for (const node of this.group.nodes) {
      known.add(node.name);
      let shape = this.nodes.get(node.name);
      if (!shape) {
        const circle = svg("circle", {});
        const name = svg("text", { class: "node-name", "text-anchor": "middle", dy: "0.35em" });
        const state = svg("text", { class: "node-state", "text-anchor": "middle" });
        const body = svg("g", { "data-node": node.name }, svg("title", {}, node.name), circle, name, state);
        shape = { body, circle, name, state, x: null, y: null };
        this.bodies.append(body);
        this.nodes.set(node.name, shape);
      }
      const text = node.name.length > 6 ? `${node.name.slice(0, 5)}…` : node.name;
      say(shape.name, text);
      say(shape.state, standing(node) === "runs" ? "" : standing(node));
      dress(shape.body, `node ${node.state}${node.phase && node.phase !== "operational" ? " seeking" : ""}`);
      shape.circle.setAttribute("r", this.layout.node);
      shape.state.setAttribute("y", this.layout.node + 16);
      const to = this.layout.at.get(node.name);
      shape.to = to;
      if (shape.x === null || first) Object.assign(shape, { x: to.x, y: to.y });
    }
    for (const [name, shape] of this.nodes) {
      if (known.has(name)) continue;
      shape.body.remove();
      this.nodes.delete(name);
    }
  }

  frame(now) {
    if (this.group && !document.hidden && this.element.offsetParent && this.pace.frame(now)) {
      const start = performance.now();
      this.draw(now);
      this.pace.cost(performance.now() - start);
      say(this.note, this.pace.sentence);
    }
    requestAnimationFrame((next) => this.frame(next));
  }

  draw(now, atOnce = false) {
    const ease = atOnce || this.pace.level === 2 ? 1 : this.pace.level === 1 ? 0.5 : EASE;
    for (const shape of this.nodes.values()) {
      const dx = shape.to.x - shape.x;
      const dy = shape.to.y - shape.y;
      if (shape.drawn && Math.abs(dx) + Math.abs(dy) < 0.05) continue;
      shape.x += dx * ease;
      shape.y += dy * ease;
      shape.drawn = true;
      shape.body.setAttribute("transform", `translate(${shape.x.toFixed(1)} ${shape.y.toFixed(1)})`);
    }
    this.layout.rings.forEach((ring, i) => this.drawToken(ring, this.tokenShapes[i], now, atOnce));
  }

  /** The token goes round, slowed down so that eyes can follow, or stays where it rests. */
  drawToken(ring, shape, now, atOnce) {
    const token = this.group.token.find((one) => one.view === ring.id);
    const index = token ? ring.here.indexOf(token.node) : -1;
    if (!token || index < 0) {
      shape.setAttribute("visibility", "hidden");
      return;
    }
    shape.setAttribute("visibility", "visible");
    const r = ring.r + this.layout.node + 10;
    const home = (2 * Math.PI * index) / ring.here.length - Math.PI / 2;
    const known = this.angles.get(ring.id) ?? { angle: home, at: now };
    const elapsed = Math.min(now - known.at, 200);
    let angle = known.angle;
    if (token.rests || atOnce || this.pace.level === 2) {
      const gap = ((home - angle + Math.PI) % (2 * Math.PI) + 2 * Math.PI) % (2 * Math.PI) - Math.PI;
      angle = atOnce || this.pace.level === 2 ? home : angle + gap * Math.min(1, elapsed / 160);
    } else {
      angle += (elapsed / 1800) * 2 * Math.PI;
    }
    if (this.angles.size > 50) this.angles.clear();
    this.angles.set(ring.id, { angle, at: now });
    dress(shape, token.rests ? "token rests" : "token");
    shape.setAttribute("cx", (ring.x + r * Math.cos(angle)).toFixed(1));
    shape.setAttribute("cy", (ring.y + r * Math.sin(angle)).toFixed(1));
  }
}

/** The picture in words. */
export function described(group) {
  const rings = group.rings.map(
    (ring) => `view ${ring.id} of ${names(ring.members)}, ${ring.primary ? "primary" : "not primary"}`,
  );
  const others = group.nodes
    .filter((node) => node.state !== "up")
    .map((node) => `${node.name} ${standing(node)}`);
  return [rings.join("; ") || "no view", ...others].join("; ") + ".";
}
