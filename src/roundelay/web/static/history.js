// The part History: what happened, on a timeline, and the diagram of a moment.

import { el, say, names } from "./dom.js";
import { Timeline, glyph } from "./timeline.js";

const KEPT = 1500;
const KINDS = {
  view: "Views", fault: "Faults", gone: "Nodes that end", suspicion: "Suspicions",
  repeats: "Retransmissions", warning: "Warnings", other: "Other",
};

/** The kind by which an entry is shown and chosen. */
export function kindOf(entry) {
  if (entry.kind === "silent" || entry.kind === "back") return "gone";
  return entry.kind in KINDS ? entry.kind : "other";
}

export function mount(element, context) {
  const entries = new Map();
  let group = null;
  let changed = 0;
  let chosen = null;
  let asking = false;

  const timeline = new Timeline((entry) => choose(entry));
  const span = el(
    "select",
    { id: "history-span", onchange: () => redraw() },
    [[30, "30 seconds"], [120, "2 minutes"], [600, "10 minutes"], [3600, "1 hour"]].map(([value, text]) => el("option", { value, selected: value === 120 }, text)),
  );
  const filters = Object.entries(KINDS).map(([kind, label]) => {
    const box = el("input", { type: "checkbox", checked: true, onchange: () => redraw() });
    return { kind, box, element: el("label", { class: "choice" }, box, glyph(kind), label) };
  });
  const list = el("ol", { class: "entries", reversed: true });
  const about = el("p", { class: "quiet" }, "Choose a moment, on the timeline or in the list.");
  const events = el(
    "select",
    { id: "history-events", onchange: () => chosen && draw(chosen) },
    [80, 220, 500, 800].map((value) => el("option", { value, selected: value === 220 }, String(value))),
  );
  const diagram = el("div", { class: "diagram", hidden: true, tabindex: 0, role: "region", "aria-label": "Diagram of the chosen moment" });
  const shadow = diagram.attachShadow({ mode: "open" });
  const save = el("a", { class: "button", download: "moment.svg", hidden: true }, "Save as SVG");
  element.replaceChildren(
    el(
      "div",
      { class: "history" },
      el(
        "div",
        { class: "card timeline-card" },
        el("div", { class: "row" }, el("h2", {}, "What happened"), el("label", { class: "choice", for: "history-span" }, "in the last"), span),
        el("div", { class: "row", role: "group", "aria-label": "What to show" }, filters.map((one) => one.element)),
        timeline.element,
      ),
      el(
        "div",
        { class: "card" },
        el("div", { class: "row" }, el("h2", {}, "The moment"), el("label", { class: "choice", for: "history-events" }, "events"), events, save),
        about,
        diagram,
      ),
      el("div", { class: "card" }, el("h2", {}, "In words, newest first"), list),
    ),
  );

  const shown = () => {
    const kinds = new Set(filters.filter(({ box }) => box.checked).map(({ kind }) => kind));
    return [...entries.values()].filter((entry) => kinds.has(kindOf(entry)));
  };

  function redraw() {
    if (!group || element.hidden) return;
    const some = shown().sort((a, b) => a.t_ms - b.t_ms);
    timeline.show({ nodes: group.nodes.map((node) => node.name), all: [...entries.values()], marks: some, span_s: Number(span.value), chosen });
    const newest = some.slice(-120).reverse();
    const key = newest.map((entry) => `${entry.id}.${entry.changed}`).join() + (chosen?.id ?? "");
    if (list.dataset.key === key) return;
    list.dataset.key = key;
    const focused = document.activeElement?.dataset?.entry;
    list.replaceChildren(...newest.map((entry) => line(entry)));
    if (focused) list.querySelector(`[data-entry="${Number(focused)}"]`)?.focus();
  }

  function line(entry) {
    const time = new Date(entry.t_ms);
    const clock = `${time.toLocaleTimeString("en-GB")}.${String(Math.floor((entry.t_ms % 1000) / 100))}`;
    const who = Object.keys(entry.at).sort();
    return el(
      "li",
      {},
      el(
        "button",
        { type: "button", "data-entry": entry.id, "aria-pressed": String(chosen?.id === entry.id), onclick: () => choose(entry) },
        el("span", { class: "number quiet" }, clock),
        glyph(kindOf(entry)),
        el("span", {}, entry.sentence, who.length ? el("span", { class: "who" }, ` — told by ${names(who)}`) : ""),
      ),
    );
  }

  async function choose(entry) {
    chosen = entry;
    list.dataset.key = "";
    redraw();
    await draw(entry);
  }

  async function draw(entry) {
    say(about, `${entry.sentence}. The diagram is being drawn.`);
    const query = new URLSearchParams({ group: group.name, at_ns: entry.t_ns, entry: entry.id, events: events.value });
    try {
      const told = await context.fetchJson(`/api/history/moment?${query}`);
      if (chosen !== entry) return;
      say(about, `${entry.sentence}. ${told.sentence}`);
      place(told.svg, told.at);
    } catch (error) {
      say(about, error.message);
    }
  }

  /** The picture is made of elements by the parser of SVG, in a tree of its own: its style is its own. */
  function place(text, at = 0) {
    shadow.replaceChildren();
    save.hidden = diagram.hidden = !text;
    if (!text) return;
    const parsed = new DOMParser().parseFromString(text, "image/svg+xml");
    shadow.append(document.importNode(parsed.documentElement, true));
    diagram.scrollTo(0, diagram.scrollHeight * at - diagram.clientHeight / 3);
    URL.revokeObjectURL(save.href);
    save.href = URL.createObjectURL(new Blob([text], { type: "image/svg+xml" }));
  }

  async function update() {
    if (asking || !group) return;
    asking = true;
    try {
      const query = new URLSearchParams({ group: group.name, since: changed });
      const told = await context.fetchJson(`/api/history?${query}`);
      for (const entry of told.entries) entries.set(entry.id, entry);
      while (entries.size > KEPT) entries.delete(entries.keys().next().value);
      changed = told.changed;
      redraw();
    } catch {
      // The connection is shown above; it is tried again with the next news.
    } finally {
      asking = false;
    }
  }

  context.events.addEventListener("group", (event) => {
    const told = event.detail;
    if (told?.name !== group?.name) {
      entries.clear();
      changed = 0;
      chosen = null;
      place("");
    }
    group = told;
    if (group && group.history > changed) update();
  });
  context.events.addEventListener("shown", () => redraw());
  setInterval(redraw, 500);
  group = context.group ?? null;
  update();
}
