// The part Play: disturb a group, and see what it makes of it.

import { el, say, dress, names } from "./dom.js";
import { RingPicture, described, standing } from "./ring.js";

export function mount(element, context) {
  const picture = new RingPicture();
  const refusal = el("div", { class: "card empty" });
  const answer = el("p", { class: "answer", role: "status", "aria-live": "polite" });
  const nodes = new Nodes(act);
  const network = new Network(act);
  const load = new Load(act);
  const live = el("p", { class: "visually-hidden", role: "status", "aria-live": "polite" });
  const happened = el("ol", { class: "happened" });
  const whole = el(
    "div",
    { class: "play" },
    el("div", { class: "card ring-card" }, el("h2", {}, "The group"), picture.element, live),
    el(
      "div",
      { class: "side" },
      el("div", { class: "card" }, el("h2", {}, "Nodes"), nodes.element),
      el("div", { class: "card" }, el("h2", {}, "Network"), network.element),
      load.element,
      el("div", { class: "card" }, el("h2", {}, "What you did"), answer, el("div", { class: "long", tabindex: 0, role: "region", "aria-label": "What you did" }, happened)),
    ),
  );
  element.replaceChildren(refusal, whole);
  let group = null;

  /** One after the other: a slider that is moved quickly asks for several things at once. */
  let last = Promise.resolve();
  function act(request, sentence) {
    last = last.then(() => perform(request, sentence));
  }

  async function perform(request, sentence) {
    if (!group) return;
    try {
      await context.fetchJson("/api/play", { method: "POST", body: { group: group.name, ...request } });
      dress(answer, "answer good");
      say(answer, `Done: ${sentence}.`);
      const time = new Date().toLocaleTimeString("en-GB");
      happened.prepend(el("li", {}, el("span", { class: "quiet number" }, time), " ", sentence));
      while (happened.children.length > 20) happened.lastChild.remove();
    } catch (error) {
      dress(answer, "answer bad");
      say(answer, error.message);
    }
  }

  const show = (told) => {
    group = told;
    const allowed = Boolean(group?.play?.allowed);
    refusal.hidden = allowed;
    whole.hidden = !allowed;
    if (!allowed) {
      const why = group ? (group.play?.why ?? "") : "no node runs here";
      if (refusal.dataset.why === why) return;
      refusal.dataset.why = why;
      refusal.replaceChildren(
        el("h2", {}, "Nothing to play with"),
        el("p", {}, `${why[0]?.toUpperCase() ?? ""}${why.slice(1)}.`),
        el("p", {}, "Five nodes to play with, behind a relay:"),
        el("pre", {}, "roundelay demo --serve"),
      );
      return;
    }
    picture.show(group);
    say(live, described(group));
    nodes.show(group);
    network.show(group);
    load.show(group);
  };
  context.events.addEventListener("group", (event) => show(event.detail));
  show(context.group ?? null);
}

/** A line of buttons for each node. */
class Nodes {
  constructor(act) {
    this.act = act;
    this.rows = new Map();
    this.element = el("ul", { class: "node-list" });
  }

  show(group) {
    const known = group.nodes.map((node) => node.name);
    if (JSON.stringify(known) !== JSON.stringify([...this.rows.keys()])) this.build(group);
    for (const node of group.nodes) {
      const row = this.rows.get(node.name);
      say(row.state, standing(node));
      dress(row.state, `state ${node.state}`);
      row.kill.disabled = !["up", "silent"].includes(node.state);
      row.pause.disabled = node.state !== "up";
      row.resume.disabled = node.state !== "silent";
      row.restart.disabled = node.state !== "gone" || !group.play.restart;
      row.restart.title = group.play.restart ? "" : "start it again where you started it";
    }
  }

  build(group) {
    this.rows.clear();
    const items = group.nodes.map(({ name }) => {
      const button = (label, what, sentence) =>
        el("button", { class: "button", type: "button", "aria-label": `${label} ${name}`, onclick: () => this.act({ do: what, node: name }, sentence) }, label);
      const row = {
        state: el("span", { class: "state" }),
        kill: button("Kill", "kill", `${name} was killed (kill -9)`),
        pause: button("Pause", "pause", `${name} was stopped (SIGSTOP)`),
        resume: button("Go on", "resume", `${name} goes on (SIGCONT)`),
        restart: button("Restart", "restart", `${name} was started again`),
      };
      this.rows.set(name, row);
      return el("li", {}, el("b", {}, name), row.state, el("span", { class: "row" }, row.kill, row.pause, row.resume, row.restart));
    });
    this.element.replaceChildren(...items);
  }
}

/** Partition, loss and delay. */
class Network {
  constructor(act) {
    this.act = act;
    this.sides = new Map();
    this.state = el("p", {});
    this.boxes = el("div", { class: "row sides" });
    this.part = el("button", { class: "button", type: "button", onclick: () => this.partition() }, "Partition");
    this.heal = el("button", { class: "button primary", type: "button", onclick: () => act({ do: "network", line: "heal" }, "the network is whole again") }, "Heal all");
    this.loss = this.slider("Loss", "loss", [0, 1, 2, 5, 10, 20, 40], (value) => `loss ${value}%`, "%");
    this.delay = this.slider("Delay", "delay", [0, 1, 2, 5, 10, 20, 50], (value) => `delay ${value}ms ${value / 2}ms`, "ms");
    this.element = el(
      "div",
      {},
      this.state,
      el("fieldset", {}, el("legend", {}, "Cut these off from the others"), this.boxes),
      el("div", { class: "row" }, this.part, this.heal),
      this.loss.element,
      this.delay.element,
    );
  }

  slider(label, kind, steps, line, unit) {
    const shown = el("output", { for: `play-${kind}` }, `0 ${unit}`);
    const input = el("input", { type: "range", id: `play-${kind}`, min: 0, max: steps.length - 1, step: 1, value: 0 });
    const read = () => `${steps[input.value]} ${unit}`;
    input.addEventListener("input", () => say(shown, read()));
    input.addEventListener("change", () => this.act({ do: "network", line: line(steps[input.value]) }, `${label.toLowerCase()} is ${read()} now`));
    const set = (value) => {
      if (document.activeElement === input) return;
      const nearest = steps.reduce((best, step, i) => (Math.abs(step - value) < Math.abs(steps[best] - value) ? i : best), 0);
      input.value = nearest;
      say(shown, read());
    };
    return { element: el("p", { class: "slider" }, el("label", { for: `play-${kind}` }, label), input, shown), set };
  }

  partition() {
    const all = [...this.sides.keys()];
    const cut = all.filter((name) => this.sides.get(name).checked);
    const rest = all.filter((name) => !cut.includes(name));
    this.act({ do: "network", line: `partition ${rest.join(",")} ${cut.join(",")}` }, `${names(rest)} and ${names(cut)} cannot hear each other`);
  }

  show(group) {
    const known = group.nodes.map((node) => node.name);
    if (JSON.stringify(known) !== JSON.stringify([...this.sides.keys()])) {
      this.sides.clear();
      const last = known.slice(Math.ceil(known.length / 2));
      this.boxes.replaceChildren(
        ...known.map((name) => {
          const box = el("input", { type: "checkbox", onchange: () => this.check() });
          box.checked = last.includes(name);
          this.sides.set(name, box);
          return el("label", { class: "choice" }, box, name);
        }),
      );
      this.check();
    }
    const relay = group.play.relay;
    const faults = [];
    const parts = components(known, relay.cuts);
    if (parts.length > 1) faults.push(`parted into ${parts.map(names).join(" | ")}`);
    else if (relay.cuts.length) faults.push(`${relay.cuts.length} links cut`);
    for (const kind of ["loss", "duplicate", "reorder"]) if (relay[kind]) faults.push(`${Math.round(relay[kind] * 100)} % ${kind}`);
    if (relay.delay_s) faults.push(`${+(relay.delay_s * 1000).toFixed(1)} ms delay`);
    say(this.state, faults.length ? `Now: ${faults.join(", ")}.` : "Now: every datagram passes.");
    dress(this.state, faults.length ? "warn strong" : "quiet");
    this.loss.set(relay.loss * 100);
    this.delay.set(relay.delay_s * 1000);
  }

  check() {
    const chosen = [...this.sides.values()].filter((box) => box.checked).length;
    this.part.disabled = chosen === 0 || chosen === this.sides.size;
  }
}

/** The parts of the network: nodes that are not cut off from each other. */
export function components(all, cuts) {
  const cut = new Set(cuts.map(([a, b]) => JSON.stringify([a, b])));
  const parts = [];
  for (const name of all) {
    const part = parts.find(([first]) => !cut.has(JSON.stringify([first, name])));
    if (part) part.push(name);
    else parts.push([name]);
  }
  return parts;
}

/** How much the nodes of the demo send. */
class Load {
  constructor(act) {
    const choices = { none: "nothing", gentle: "a little", heavy: "as fast as they can" };
    this.boxes = Object.entries(choices).map(([value, label]) => {
      const box = el("input", { type: "radio", name: "load", value, onchange: () => act({ do: "load", line: value }, `the nodes send ${label}`) });
      return { value, box, element: el("label", { class: "choice" }, box, label) };
    });
    this.element = el(
      "div",
      { class: "card" },
      el("h2", {}, "Load"),
      el("fieldset", {}, el("legend", {}, "The nodes send"), el("div", { class: "row" }, this.boxes.map((one) => one.element))),
    );
  }

  show(group) {
    this.element.hidden = !group.play.load;
    for (const { value, box } of this.boxes) if (value === group.play.load && !box.checked) box.checked = true;
  }
}
