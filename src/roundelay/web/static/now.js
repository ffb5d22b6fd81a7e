// The part Now: how the chosen group is at this moment.

import { el, say, dress, number, duration, names } from "./dom.js";
import { RingPicture, described, standing } from "./ring.js";

const ROWS = [
  "messages_per_s", "p50_ms", "p99_ms", "rotation_ms", "visits_per_s", "packets_to_send",
  "packets_to_read", "repeats_per_s", "drops_per_s", "frames_per_s", "bytes_per_s", "views",
  "suspicions", "pauses",
];
const HISTORY = 120; // Points of the little curve of a node's rate.

export async function mount(element, context) {
  const words = await context.fetchJson("/api/words");
  const picture = new RingPicture();
  const tiles = el("ul", { class: "tiles" });
  const tile = (label, about) => {
    const value = el("b", { class: "number" }, "–");
    tiles.append(el("li", { title: about }, el("span", {}, label), value));
    return value;
  };
  const facts = {
    rate: tile("Delivered", "messages per second, at the busiest node"),
    latency: tile("Latency, 99 %", "of the slowest sender, in the last seconds"),
    rotation: tile("Rotation", "mean time between two visits of the token"),
    token: tile("Token", "where it is, or rests"),
    members: tile("Members", "of the largest view, of all nodes"),
    lost: tile("Repeats", "packets per second that came more than once, at all nodes"),
  };
  const heading = el("h2", {}, "No group yet");
  const engine = el("p", { class: "quiet" });
  const live = el("p", { class: "visually-hidden", role: "status", "aria-live": "polite" });
  const slow = el("div", { class: "slow" });
  const sentences = el("ul", { class: "sentences" });
  const table = new Numbers(words);
  const drops = el("div", {});
  const empty = el(
    "div",
    { class: "card empty" },
    el("h2", {}, "No node runs here yet"),
    el("p", {}, "This page shows groups as soon as a node with a control socket runs on this machine. To see one at once:"),
    el("pre", {}, "roundelay demo --serve"),
    el("p", { class: "quiet" }, "The laboratory needs no running node."),
  );
  const whole = el(
    "div",
    { class: "now" },
    el("div", { class: "card ring-card" }, heading, engine, picture.element, live),
    el(
      "div",
      { class: "side" },
      tiles,
      el("div", { class: "card" }, el("h2", {}, "What holds the group up"), slow),
      el("div", { class: "card" }, el("h2", {}, "What the nodes say"), el("div", { class: "long", tabindex: 0, role: "region", "aria-label": "What the nodes say" }, sentences)),
    ),
    el("div", { class: "card wide" }, el("h2", {}, "Numbers, node by node"), table.element),
    el("div", { class: "card wide" }, el("h2", {}, "Datagrams that were dropped, by reason"), drops),
  );
  element.replaceChildren(empty, whole);

  const show = (group) => {
    empty.hidden = Boolean(group);
    whole.hidden = !group;
    if (!group) return;
    say(heading, `Group ${group.name}`);
    say(engine, `Engine ${group.engine}; a node is given up after ${number(group.timeout_s * 1000, "ms")} of silence (timeout_s).`);
    picture.show(group);
    say(live, described(group));
    showFacts(facts, group);
    showSlow(slow, group);
    showSentences(sentences, group);
    table.show(group);
    showDrops(drops, group, words.drops);
  };
  context.events.addEventListener("group", (event) => show(event.detail));
  show(context.group ?? null);
}

const running = (group) => group.nodes.filter((node) => node.state === "up" && node.numbers);
const greatest = (all, key) => all.reduce((most, node) => Math.max(most, node.numbers[key] ?? 0), 0);

function showFacts(facts, group) {
  const up = running(group);
  const view = group.rings[0];
  const token = group.token[0];
  const latency = greatest(up, "p99_ms");
  say(facts.rate, `${number(greatest(up, "messages_per_s"))}/s`);
  say(facts.latency, latency ? `≤ ${number(latency, "ms")}` : "–");
  say(facts.rotation, token?.rotation_ms ? number(token.rotation_ms, "ms") : "–");
  say(facts.token, token ? (token.rests ? `rests at ${token.node}` : "goes round") : "none");
  say(facts.members, view ? `${view.members.length} of ${group.nodes.length}` : `0 of ${group.nodes.length}`);
  say(facts.lost, `${number(up.reduce((sum, node) => sum + (node.numbers.repeats_per_s ?? 0), 0))}/s`);
}

function showSlow(element, group) {
  const text = group.slow
    ? `${group.slow.node} ${group.slow.sentence}.`
    : "Nobody: every node answers, reads what is delivered and loses nothing to speak of.";
  const lookAt = group.slow ? `Look at: ${group.slow.look_at}` : "";
  if (element.dataset.text === text + lookAt) return;
  element.dataset.text = text + lookAt;
  const first = el("p", { class: group.slow ? "warn strong" : "good strong" }, text);
  element.replaceChildren(first, ...(lookAt ? [el("p", { class: "quiet" }, lookAt)] : []));
}

/** Why a view is not primary, what a node does besides running, and the warnings of its log. */
function toTell(group) {
  const told = [];
  for (const ring of group.rings) {
    if (!ring.primary) told.push({ who: names(ring.members), text: `not primary${ring.why ? `: ${ring.why}` : ""}` });
  }
  for (const node of group.nodes) {
    if (node.state === "gone") told.push({ who: node.name, text: `does not run any more, since ${duration(node.for_s)}` });
    if (node.state === "up" && node.gather) told.push({ who: node.name, text: `looks for others: ${node.gather}` });
    if (node.log && node.log.state !== "open") told.push({ who: node.name, text: `log ${node.log.state}: ${node.log.why}` });
    if (node.check?.violations) told.push({ who: node.name, text: `broke a promise: ${node.check.first}` });
    for (const warning of node.warnings ?? []) told.push({ who: node.name, text: warning });
  }
  // What many say in the same words is told once.
  const merged = new Map();
  for (const { who, text } of told) merged.set(text, [...(merged.get(text) ?? []), who]);
  return [...merged].map(([text, who]) => ({ who: names(who), text }));
}

function showSentences(element, group) {
  const told = toTell(group);
  const key = JSON.stringify(told.map(({ who, text }) => who + text.replace(/\d+ (s|min|h)$/, "")));
  if (element.dataset.key === key) return;
  element.dataset.key = key;
  const items = told.map(({ who, text }) => el("li", {}, el("b", {}, who), " ", text));
  element.replaceChildren(...(items.length ? items : [el("li", { class: "quiet" }, "Nothing: no warnings in the last minute.")]));
}

function showDrops(element, group, about) {
  const reasons = new Map();
  for (const node of running(group)) {
    for (const [reason, { count, lately }] of Object.entries(node.drops ?? {})) {
      const sum = reasons.get(reason) ?? { count: 0, lately: 0, nodes: [] };
      sum.count += count;
      sum.lately += lately;
      sum.nodes.push(node.name);
      reasons.set(reason, sum);
    }
  }
  const rows = [...reasons].sort(([, a], [, b]) => b.lately - a.lately || b.count - a.count);
  const key = JSON.stringify(rows);
  if (element.dataset.key === key) return;
  element.dataset.key = key;
  if (!rows.length) {
    element.replaceChildren(el("p", { class: "quiet" }, "None."));
    return;
  }
  const head = ["Reason", "Lately", "Since the start", "At", "Meaning"];
  element.replaceChildren(
    el(
      "div",
      { class: "scroll", tabindex: 0, role: "region", "aria-label": "Dropped datagrams" },
      el(
        "table",
        {},
        el("thead", {}, el("tr", {}, head.map((text, i) => el("th", { scope: "col", class: i === 1 || i === 2 ? "number" : null }, text)))),
        el(
          "tbody",
          {},
          rows.map(([reason, { count, lately, nodes }]) =>
            el(
              "tr",
              {},
              el("th", { scope: "row" }, reason),
              el("td", { class: "number" }, number(lately)),
              el("td", { class: "number" }, number(count)),
              el("td", {}, names(nodes)),
              el("td", { class: "quiet" }, about[reason] ?? "see docs/security.md, What the counters mean"),
            ),
          ),
        ),
      ),
    ),
  );
}

/** The table of numbers: a row for each number, a column for each node. */
class Numbers {
  constructor(words) {
    this.words = words.numbers;
    this.head = el("tr", {});
    this.body = el("tbody", {});
    this.rates = new Map();
    this.cells = new Map();
    this.nodes = "";
    this.element = el(
      "div",
      { class: "scroll numbers", tabindex: 0, role: "region", "aria-label": "Numbers, node by node" },
      el("table", {}, el("thead", {}, this.head), this.body),
    );
  }

  show(group) {
    const nodes = group.nodes.filter((node) => node.numbers);
    const key = JSON.stringify([group.name, nodes.map((node) => node.name)]);
    if (this.nodes !== key) this.build(nodes, key);
    for (const node of nodes) {
      const head = this.cells.get(`${node.name} state`);
      say(head, standing(node));
      dress(head, `state ${node.state}`);
      this.curve(node);
    }
    for (const row of ROWS) {
      const values = nodes.map((node) => (node.state === "up" ? node.numbers[row] : undefined));
      const most = Math.max(...values.map((value) => value ?? 0));
      const least = Math.min(...values.map((value) => value ?? 0));
      nodes.forEach((node, i) => {
        const cell = this.cells.get(`${node.name} ${row}`);
        say(cell, number(values[i]));
        const stands = ["p99_ms", "packets_to_read", "packets_to_send", "repeats_per_s", "drops_per_s"].includes(row) && values[i] === most && most > 2 * least && most > 5;
        dress(cell, `number${stands ? " stands-out" : ""}${values[i] === undefined ? " quiet" : ""}`);
      });
    }
  }

  build(nodes, key) {
    this.nodes = key;
    this.cells.clear();
    const heads = nodes.map((node) => {
      const state = el("span", { class: "state" }, "");
      this.cells.set(`${node.name} state`, state);
      return el("th", { scope: "col", class: "number" }, el("span", { class: "head-name" }, node.name), state);
    });
    this.head.replaceChildren(el("th", { scope: "col" }, "Number"), ...heads);
    const curves = nodes.map((node) => {
      const canvas = el("canvas", { width: 96, height: 26, role: "img", "aria-label": `messages per second of ${node.name} in the last half minute` });
      this.cells.set(`${node.name} curve`, canvas);
      return el("td", { class: "number" }, canvas);
    });
    const rows = ROWS.map((row) => {
      const word = this.words[row];
      const cells = nodes.map((node) => {
        const cell = el("td", { class: "number" });
        this.cells.set(`${node.name} ${row}`, cell);
        return cell;
      });
      const about = el(
        "details",
        {},
        el("summary", {}, word.label, word.unit ? el("span", { class: "quiet" }, ` ${word.unit}`) : ""),
        el("p", { class: "quiet" }, word.about),
        word.look_at ? el("p", { class: "quiet" }, "Look at: ", el("b", {}, word.look_at)) : "",
      );
      return el("tr", {}, el("th", { scope: "row" }, about), cells);
    });
    this.body.replaceChildren(el("tr", {}, el("th", { scope: "row" }, "Delivered, last 30 s"), curves), ...rows);
  }

  curve(node) {
    const points = this.rates.get(node.name) ?? [];
    points.push(node.state === "up" ? (node.numbers.messages_per_s ?? 0) : 0);
    if (points.length > HISTORY) points.shift();
    this.rates.set(node.name, points);
    const canvas = this.cells.get(`${node.name} curve`);
    if (document.hidden || !canvas.offsetParent) return;
    const pen = canvas.getContext("2d");
    const most = Math.max(10, ...points);
    pen.clearRect(0, 0, canvas.width, canvas.height);
    pen.strokeStyle = getComputedStyle(canvas).color;
    pen.lineWidth = 1.5;
    pen.beginPath();
    points.forEach((value, i) => {
      const x = canvas.width - (points.length - i) * (canvas.width / HISTORY);
      pen.lineTo(x, canvas.height - 2 - (value / most) * (canvas.height - 4));
    });
    pen.stroke();
  }
}
