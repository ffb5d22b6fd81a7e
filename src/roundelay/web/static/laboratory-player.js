// Steps through a run: forwards and backwards, with the state of each node beside it.

import { button, diagram, element } from "./laboratory-elements.js";
import { Stage } from "./laboratory-stage.js";

const DIAGRAM_AFTER_MS = 180;
const DIAGRAMS_KEPT = 60;
const BREACHES_SHOWN = 3;
const SPEEDS = { slow: 1800, normal: 900, fast: 300 };
const STOPS = [
  ["", "every step"], ["deliver", "deliveries"], ["view", "new views"],
  ["fault", "faults and suspicions"], ["loss", "lost frames"], ["submit", "new messages"],
];
/** The order of what is known of a node; what is not named here is of its engine, and timers come last. */
const FIRST_FIELDS = ["is", "life", "token", "phase", "view", "packets to send", "log", "delivered"];

export class Player {
  constructor(context, first, open) {
    this.context = context;
    this.run = null;
    this.at = 0;
    this.asked = 0;
    this.element = element("section", { class: "lab-player", tabindex: "-1", "aria-label": "The run" },
      welcome(first, open));
    this.element.addEventListener("keydown", (event) => this.#onKey(event));
    this.open_ = open;
    this.#build();
  }

  /** Fetch a run and show its first step. */
  async open(scenario) {
    this.pause();
    this.asked += 1;
    const asked = this.asked;
    this.run = null;
    this.element.replaceChildren(element("p", { role: "status" }, `Playing ${scenario.name} …`));
    try {
      const query = new URLSearchParams({ scenario: scenario.name });
      const run = await this.context.fetchJson(`/api/laboratory/walkthrough?${query}`);
      if (asked !== this.asked) return;
      if (run.steps.length) this.#begin(scenario, run);
      else this.#say(`Nothing happens in ${scenario.name}.`);
    } catch (error) {
      if (asked === this.asked) this.#say(`${scenario.name} cannot be shown: ${error.message}`);
    }
  }

  /** Play what the reader made of a scenario. */
  async #playOwn() {
    this.pause();
    this.asked += 1;
    const asked = this.asked;
    const { scenario } = this;
    this.editorSays.textContent = "Playing …";
    try {
      const body = { text: this.editor.value };
      const run = await this.context.fetchJson("/api/laboratory/play", { body });
      if (asked !== this.asked) return;
      if (!run.steps.length) throw new Error("nothing happens in it");
      this.#begin({ ...scenario, changed: true }, run);
    } catch (error) {
      if (asked === this.asked) this.editorSays.textContent = `It cannot be played: ${error.message}`;
    }
  }

  /** Show the text of the scenario, or let the reader change it. */
  #edit(on) {
    this.textBox.hidden = on;
    this.changeButton.hidden = on;
    this.editing.hidden = !on;
    this.editorSays.textContent = "";
    if (!on) {
      this.changeButton.focus();
      return;
    }
    this.pause();
    this.editor.value = this.run.text.join("\n");
    this.editor.focus();
    this.editor.setSelectionRange(0, 0);
    this.editor.scrollTop = 0;
  }

  pause() {
    clearInterval(this.timer);
    this.timer = null;
    this.playButton.textContent = "Play";
    this.playButton.setAttribute("aria-pressed", "false");
  }

  #say(sentence) {
    this.element.replaceChildren(element("p", { class: "card", role: "alert" }, sentence));
  }

  // What the page is made of

  #build() {
    this.stage = new Stage();
    this.heading = element("h2", { class: "lab-title" });
    this.badges = element("p", { class: "row lab-badges" });
    this.story = element("div", { class: "lab-story" });
    this.others = element("p", { class: "row lab-others" });
    this.violated = element("section", { class: "card lab-violated", "aria-labelledby": "lab-violated-h" });
    this.where = element("p", { class: "quiet number lab-where" });
    this.said = element("h3", { class: "lab-said" });
    this.proof = element("div", {});
    this.then = element("ul", { class: "lab-then" });
    this.caption = element("p", { class: "lab-caption" });
    this.table = element("table", { class: "lab-state" });
    this.whose = element("select", { id: "lab-whose" });
    this.whose.addEventListener("change", () => this.#showStates());
    this.constant = element("input", { type: "checkbox" });
    this.constant.addEventListener("change", () => this.#showStates());
    this.text = element("ol", { class: "lab-text" });
    this.textBox = element("div", { class: "scroll lab-text-box", tabindex: "0", role: "region", "aria-label": "The scenario" }, this.text);
    this.editor = element("textarea", { id: "lab-editor", class: "mono", rows: "22", spellcheck: "false", autocomplete: "off" });
    this.editorSays = element("p", { class: "warn", role: "status" });
    this.editing = element("div", { class: "lab-editing", hidden: "" },
      element("label", { for: "lab-editor" }, "Change commands, and play it. Each block of commands ends with a line of dashes; what the scenario file expects below the dashes does not matter."),
      this.editor,
      element("p", { class: "row" }, button("Play it", () => this.#playOwn(), { class: "button primary" }), button("Leave it", () => this.#edit(false))),
      this.editorSays);
    this.changeButton = button("Change it", () => this.#edit(true));
    this.diagramBox = element("div", { class: "scroll lab-diagram", tabindex: "0", role: "region", "aria-label": "The diagram" });
    this.diagramNote = element("p", { class: "quiet", role: "status" });
    this.slider = element("input", { type: "range", min: "0", value: "0", class: "lab-slider", "aria-label": "Step" });
    this.slider.addEventListener("input", () => {
      this.pause();
      this.#show(Number(this.slider.value));
    });
    this.marks = element("div", { class: "lab-marks", "aria-hidden": "true" });
    this.stops = element("select", { id: "lab-stops" });
    this.speed = element("select", { id: "lab-speed" }, ...Object.keys(SPEEDS).map((text) => element("option", { value: text }, text)));
    this.speed.value = "normal";
    this.speed.addEventListener("change", () => this.timer && this.#play());
    this.firstButton = button("First", () => this.#jump(0), { class: "button lab-end", title: "First step (Home)" });
    this.backButton = button("◀ Back", () => this.#move(-1), { title: "One step back (left arrow)", "aria-label": "Back" });
    this.playButton = button("Play", () => this.#toggle(), { "aria-pressed": "false", title: "Play or pause (space)" });
    this.nextButton = button("Next ▶", () => this.#move(1), { class: "button primary", title: "One step on (right arrow)", "aria-label": "Next" });
    this.lastButton = button("Last", () => this.#jump(Infinity), { class: "button lab-end", title: "Last step (End)" });
    this.position = element("span", { class: "number lab-position" });
    this.controls = element("div", { class: "card lab-controls", role: "group", "aria-label": "Steps" },
      element("div", { class: "row" }, this.firstButton, this.backButton, this.playButton,
        this.nextButton, this.lastButton, this.position,
        element("label", { class: "choice lab-stops" }, element("span", {}, "Stop at"), this.stops),
        element("label", { class: "choice lab-speed" }, "Speed", this.speed)),
      element("div", { class: "lab-track" }, this.slider, this.marks),
      element("p", { class: "quiet lab-keys" }, "Arrow keys step, Home and End go to the ends, space plays."));
    this.happens = element("div", { class: "lab-happens", "aria-live": "polite" },
      this.where, this.said, this.proof, this.then);
  }

  #begin(scenario, run) {
    this.run = run;
    this.scenario = scenario;
    this.diagrams = new Map();
    this.states = new Map();
    this.at = -1;
    this.stage.begin(run.nodes);
    this.varying = varyingFields(run.steps);
    this.proofs = proofsByStep(run.violated);
    this.#writeHead();
    this.#writeViolated();
    this.#writeText();
    this.whose.replaceChildren(
      element("option", { value: "" }, "all nodes"),
      element("option", { value: "*" }, "the node of this step"),
      ...run.nodes.map((node) => element("option", { value: node }, `node ${node}`)));
    this.whose.value = window.matchMedia("(max-width: 40rem)").matches ? "*" : "";
    const stops = run.violated.length ? [...STOPS, ["proof", "what breaks a promise"]] : STOPS;
    this.stops.replaceChildren(...stops.map(([value, text]) => element("option", { value }, text)));
    this.textBox.hidden = this.changeButton.hidden = false;
    this.editing.hidden = true;
    this.slider.max = String(run.steps.length - 1);
    this.#writeMarks();
    this.now = element("section", { class: "card lab-now", "aria-label": "This step" },
      this.caption, this.happens, this.stage.element);
    this.element.replaceChildren(
      element("div", { class: run.violated.length ? "lab-two" : "" },
        element("div", { class: "card lab-head" }, this.heading, this.badges, this.story, this.others,
          run.note ? element("p", { class: "warn" }, run.note) : null),
        ...(run.violated.length ? [this.violated] : [])),
      element("div", { class: "lab-two" },
        this.now,
        element("div", { class: "card" },
          element("div", { class: "row lab-state-head" },
            element("h3", { id: "lab-state-h" }, "What each node knows"),
            element("label", { class: "choice" }, "Show", this.whose),
            element("label", { class: "choice" }, this.constant, "what never changes too")),
          element("div", { class: "scroll lab-state-box", tabindex: "0", role: "region", "aria-labelledby": "lab-state-h" }, this.table))),
      element("div", { class: "lab-two" },
        element("div", { class: "card" },
          element("h3", { id: "lab-diagram-h" }, "Around this step, as a diagram"),
          this.diagramNote, this.diagramBox),
        element("div", { class: "card" },
          element("h3", { id: "lab-text-h" }, "The scenario"),
          element("p", { class: "quiet" }, "The line of this step is marked. ",
            ...(scenario.changed ? ["It is your own; saved as a file it can be run by: ", element("code", {}, "roundelay sim run FILE")]
              : ["To run it yourself: ", element("code", {}, `roundelay sim run ${run.name}`)])),
          this.textBox, this.changeButton, this.editing),
        this.#verdicts()),
      this.controls);
    this.#show(0);
    this.element.focus({ preventScroll: true });
    this.element.scrollIntoView({ block: "nearest" });
  }

  #writeHead() {
    const { run, scenario } = this;
    this.heading.textContent = `${scenario.name.split("/").pop().replaceAll("_", " ")}${scenario.changed ? ", changed by you" : ""}`;
    const rules = run.rules === "safe" ? [] : [`rules ${run.rules}`];
    this.badges.replaceChildren(
      ...[run.engine, ...rules, run.mode === "static" ? "fixed group" : "with views", `${run.nodes.length} nodes`]
        .map((text) => element("span", { class: "chip" }, text)),
      element("span", { class: `chip ${run.violated.length ? "bad" : "good"}` },
        run.violated.length ? `breaks ${run.violated.map((v) => v.property).join(" ")}` : "breaks no promise"));
    this.story.replaceChildren(...scenario.story.map((text) => element("p", {}, text)));
    this.others.replaceChildren(...(scenario.changed
      ? [button("As it was", () => this.open_(scenario.name))]
      : scenario.others.length ? [element("span", { class: "quiet" }, "The same story under other rules:"),
        ...scenario.others.map((name) => button(name.split("/").pop().replaceAll("_", " "), () => this.open_(name)))]
      : []));
  }

  #writeViolated() {
    const { violated } = this.run;
    const items = violated.map((verdict) => this.#breach(verdict));
    const rest = items.splice(BREACHES_SHOWN);
    this.violated.replaceChildren(
      element("h3", { id: "lab-violated-h" }, violated.length === 1
        ? "This run breaks a promise" : `This run breaks ${violated.length} promises`),
      element("ul", { class: "lab-breaches" }, ...items),
      ...(rest.length ? [element("details", {}, element("summary", {}, `${rest.length} more`),
        element("ul", { class: "lab-breaches" }, ...rest))] : []));
  }

  #breach(verdict) {
    const drawn = element("div", { class: "scroll lab-diagram lab-witness", tabindex: "0", role: "region", "aria-label": `How ${verdict.property} is broken`, hidden: "" });
    return element("li", {},
      element("p", {}, element("strong", { class: "bad" }, verdict.property), ` ${verdict.title}. `,
        element("span", { class: "lab-reason" }, verdict.reason)),
      element("p", { class: "row" },
        ...verdict.witness.map((place) => place.step === null
          ? element("span", { class: "quiet" }, `later: ${place.said}`)
          : button(`Step ${place.step + 1}: ${place.said}`, () => {
            this.#jump(place.step);
            this.now.scrollIntoView({ block: "start" });
          }, { class: "button lab-jump" })),
        button("Diagram", (event) => this.#drawWitness(verdict.property, drawn, event.currentTarget),
          { "aria-expanded": "false", "aria-label": `Diagram of ${verdict.property}` })),
      drawn);
  }

  async #drawWitness(property, box, opener) {
    box.hidden = !box.hidden;
    opener.setAttribute("aria-expanded", String(!box.hidden));
    if (box.hidden || box.childElementCount) return;
    box.textContent = "drawing …";
    try {
      const query = new URLSearchParams({ scenario: this.run.name, property });
      const told = await this.context.fetchJson(`/api/laboratory/witness?${query}`);
      box.replaceChildren(diagram(told.svg));
    } catch (error) {
      box.textContent = `No diagram: ${error.message}`;
    }
  }

  #verdicts() {
    const { others } = this.run;
    const rows = others.map((verdict) => element("tr", {},
      element("th", { scope: "row" }, verdict.property),
      element("td", {}, verdict.title), element("td", {}, verdict.verdict),
      element("td", {}, verdict.reason)));
    const of = (kind) => others.filter((verdict) => verdict.verdict === kind).length;
    const words = ["ok", "vacuous", "inconclusive", "outside-envelope"]
      .filter(of).map((kind) => `${of(kind)} ${kind}`).join(", ");
    return element("details", { class: "card lab-verdicts" },
      element("summary", {}, `All other verdicts: ${words}`),
      element("p", { class: "quiet" }, "Vacuous: what the property speaks of never happened. Inconclusive: the run ends too early to tell."),
      element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "All other verdicts" },
        element("table", {},
          element("thead", {}, element("tr", {}, ...["Property", "What it says", "Verdict", "Why"].map((text) => element("th", { scope: "col" }, text)))),
          element("tbody", {}, ...rows))));
  }

  #writeText() {
    const first = new Map();
    this.run.steps.forEach((step, i) => first.has(step.line) || first.set(step.line, i));
    let output = false;
    this.lines = this.run.text.map((text, i) => {
      if (!text.trim()) output = false;
      const kind = text.startsWith("#") ? "comment" : text.trim() === "----" ? "dashes" : output ? "output" : "command";
      if (kind === "dashes") output = true;
      const line = element("li", { class: kind }, text || " ");
      if (first.has(i + 1)) {
        line.classList.add("steps");
        line.title = `Go to step ${first.get(i + 1) + 1}`;
        line.addEventListener("click", () => this.#jump(first.get(i + 1)));
      }
      return line;
    });
    this.text.replaceChildren(...this.lines);
  }

  #writeMarks() {
    const last = Math.max(this.run.steps.length - 1, 1);
    const marks = [];
    this.run.steps.forEach((step, i) => {
      const kind = this.proofs.has(i) ? "proof" : (step.notable ?? []).includes("fault") ? "fault" : null;
      if (kind && (kind === "proof" || marks.length < 200)) {
        const mark = element("span", { class: `lab-mark ${kind}` });
        mark.style.left = `${(100 * i) / last}%`;
        marks.push(mark);
      }
    });
    this.marks.replaceChildren(...marks);
  }

  // Stepping

  #onKey(event) {
    if (!this.run || event.altKey || event.ctrlKey || event.metaKey) return;
    const target = event.target;
    if (target.closest("input, select, textarea, summary, .scroll")) return;
    if (event.key === " " && target.closest("button")) return;
    const act = {
      ArrowRight: () => this.#move(1), ArrowLeft: () => this.#move(-1),
      Home: () => this.#jump(0), End: () => this.#jump(Infinity), " ": () => this.#toggle(),
    }[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  }

  #jump(to) {
    this.pause();
    this.#show(Math.min(to, this.run.steps.length - 1));
  }

  #move(by) {
    this.pause();
    this.#show(this.#next(by));
  }

  /** The next step at which to stop, or the last one there is. */
  #next(by) {
    const { steps } = this.run;
    const kind = this.stops.value;
    const stops = (i) => !kind || i <= 0 || i >= steps.length - 1 ||
      (kind === "proof" ? this.proofs.has(i) : (steps[i].notable ?? []).includes(kind));
    let i = this.at + by;
    while (!stops(i)) i += by;
    return Math.max(0, Math.min(i, steps.length - 1));
  }

  #toggle() {
    if (this.timer) this.pause();
    else {
      if (this.at === this.run.steps.length - 1) this.#show(0);
      this.#play();
    }
  }

  #play() {
    clearInterval(this.timer);
    this.playButton.textContent = "Pause";
    this.playButton.setAttribute("aria-pressed", "true");
    this.timer = setInterval(() => {
      this.#show(this.#next(1));
      if (this.at === this.run.steps.length - 1) this.pause();
    }, SPEEDS[this.speed.value]);
  }

  // Showing

  #show(to) {
    const { run } = this;
    if (to === this.at) return;
    const forward = to > this.at;
    this.#bring(to);
    const step = run.steps[to];
    const proofs = this.proofs.get(to) ?? [];
    this.slider.value = String(to);
    this.slider.setAttribute("aria-valuetext", `step ${to + 1} of ${run.steps.length}: ${step.said}`);
    this.position.textContent = `${to + 1} / ${run.steps.length}`;
    this.firstButton.disabled = this.backButton.disabled = to === 0;
    this.nextButton.disabled = this.lastButton.disabled = to === run.steps.length - 1;
    this.where.textContent = `Step ${to + 1} of ${run.steps.length}, at ${step.at}, line ${step.line}: ${step.command}`;
    this.said.textContent = step.said;
    this.said.classList.toggle("proves", proofs.some((proof) => proof.said.has(step.said)));
    this.caption.textContent = commentAbove(run.text, step.line);
    this.caption.hidden = !this.caption.textContent;
    this.proof.replaceChildren(...proofs.map((proof) =>
      element("p", { class: "lab-proof" },
        element("strong", {}, `${proof.property} breaks: `), `${proof.title}. ${proof.reason}`)));
    const flight = step.flight === undefined ? null : run.flights[step.flight];
    this.then.replaceChildren(
      ...(flight && step.kind === "arrive"
        ? [element("li", { class: "is-arrive" }, run.frames[flight[0]].text)] : []),
      ...step.then.map((thing) =>
        element("li", { class: proofs.some((proof) => proof.said.has(thing.said)) ? `is-${thing.kind} proves` : `is-${thing.kind}` }, thing.said)),
      ...(step.then.length || flight ? [] : [element("li", { class: "quiet" }, "and nothing else follows at once")]));
    this.stage.show({
      said: `Step ${to + 1}: ${step.said}`,
      states: this.states,
      flights: this.#flights(to),
      cuts: this.cuts,
      acting: step.node,
      witness: new Set(proofs.flatMap((proof) => [...proof.nodes])),
      forward,
    });
    this.#showStates();
    this.#showLine(step.line);
    this.#showDiagram(to);
  }

  /** Bring the states of the nodes to those after a step. */
  #bring(to) {
    let from = this.at + 1;
    if (to < this.at || this.at < 0) {
      this.states = new Map();
      this.cuts = [];
      from = 0;
    }
    for (let i = from; i <= to; i += 1) {
      const step = this.run.steps[i];
      if (step.cuts) this.cuts = step.cuts;
      this.changed = new Map();
      for (const [node, changes] of Object.entries(step.changes ?? {})) {
        if (!this.states.has(node)) this.states.set(node, new Map());
        const state = this.states.get(node);
        const before = new Map();
        for (const [field, value] of Object.entries(changes)) {
          before.set(field, state.get(field) ?? null);
          if (value === null) state.delete(field);
          else state.set(field, value);
        }
        this.changed.set(node, before);
      }
    }
    this.at = to;
  }

  /** The copies of frames that are of interest at a step. */
  #flights(at) {
    const found = [];
    for (const [frame, to, sent, ended, fate] of this.run.flights) {
      if (sent > at || (ended !== null && ended < at)) continue;
      const { from, tag, text } = this.run.frames[frame];
      const now = ended === at ? fate : sent === at ? "sent" : "under way";
      found.push({ frame, from, to, tag, text, now });
    }
    const weight = { "under way": 0, sent: 1, lost: 2, refused: 2, arrived: 3 };
    return found.sort((a, b) => weight[a.now] - weight[b.now]);
  }

  #showStates() {
    const { run } = this;
    const step = run.steps[this.at];
    const whose = this.whose.value;
    const chosen = whose === "" ? run.nodes : whose === "*" ? [step.node || run.nodes[0]] : [whose];
    const fields = new Set();
    for (const node of chosen) {
      for (const field of this.states.get(node)?.keys() ?? []) {
        if (this.constant.checked || this.varying.has(field) || field === "is") fields.add(field);
      }
    }
    const place = (field) => {
      const at = FIRST_FIELDS.indexOf(field);
      return field === "timers" ? Infinity : at < 0 ? FIRST_FIELDS.length : at;
    };
    const ordered = [...fields].sort((a, b) => Math.sign(place(a) - place(b)) || (a < b ? -1 : 1));
    const rows = ordered.map((field) => element("tr", {},
      element("th", { scope: "row", class: field.startsWith("engine.") ? "lab-engine" : null }, field.replace(/^engine\./, "")),
      ...chosen.map((node) => this.#cell(node, field))));
    this.table.replaceChildren(
      element("caption", { class: "visually-hidden" }, "The state of each node after this step; what has changed is marked."),
      element("thead", {}, element("tr", {}, element("td", {}),
        ...chosen.map((node) => element("th", { scope: "col", class: node === step.node ? "lab-actor" : null }, node)))),
      element("tbody", {}, ...rows));
  }

  #cell(node, field) {
    const value = this.states.get(node)?.get(field) ?? "";
    const before = this.changed.get(node);
    if (!before?.has(field)) return element("td", {}, value);
    const old = before.get(field);
    return element("td", { class: "lab-changed" },
      element("span", { class: "visually-hidden" }, "changed: "),
      old ? element("del", {}, short(old)) : null, element("ins", {}, value || "–"));
  }

  #showLine(number) {
    this.lines.forEach((line, i) => {
      const current = i === number - 1;
      line.classList.toggle("current", current);
      if (current) line.setAttribute("aria-current", "step");
      else line.removeAttribute("aria-current");
    });
    const line = this.lines[number - 1];
    if (line) this.textBox.scrollTop = line.offsetTop - this.textBox.clientHeight / 2;
  }

  #showDiagram(at) {
    clearTimeout(this.drawing);
    const known = this.diagrams.get(at);
    if (known) {
      this.#placeDiagram(known);
      return;
    }
    this.diagramBox.classList.add("stale");
    this.drawing = setTimeout(async () => {
      const { run } = this;
      try {
        const query = new URLSearchParams({ scenario: run.name, step: String(at) });
        const told = await this.context.fetchJson(`/api/laboratory/diagram?${query}`);
        if (this.run !== run) return;
        const drawn = diagram(told.svg);
        this.diagrams.set(at, drawn);
        if (this.diagrams.size > DIAGRAMS_KEPT) this.diagrams.delete(this.diagrams.keys().next().value);
        if (this.at === at) this.#placeDiagram(drawn);
      } catch (error) {
        if (this.at === at) this.diagramNote.textContent = `No diagram: ${error.message}`;
      }
    }, DIAGRAM_AFTER_MS);
  }

  #placeDiagram(drawn) {
    this.diagramNote.textContent = "";
    this.diagramBox.replaceChildren(drawn);
    this.diagramBox.classList.remove("stale");
    const halo = drawn.querySelector(".halo");
    if (!halo) return;
    const box = this.diagramBox.getBoundingClientRect();
    const mark = halo.getBoundingClientRect();
    this.diagramBox.scrollTop += mark.top - box.top - box.height / 2;
    this.diagramBox.scrollLeft += mark.left - box.left - box.width / 2;
  }
}

/** What is shown before a scenario is chosen. */
function welcome(first, open) {
  return element("div", { class: "lab-welcome" },
    element("h2", {}, "See a protocol at work, one frame at a time"),
    element("p", {}, "Each scenario is played in the simulator, always in the same way. Step through it, forwards and backwards: what happens, which frames are under way, what each node knows, and which promise breaks, if one does."),
    element("h3", {}, "Begin with one of these"),
    element("ul", { class: "lab-first" }, ...first.map(({ name, why }) => {
      const card = element("button", { type: "button", class: "card lab-card" },
        element("strong", {}, name.split("/").pop().replaceAll("_", " ")),
        element("span", {}, why));
      card.addEventListener("click", () => open(name));
      return element("li", {}, card);
    })));
}

/** By step: the violated properties of whose witness it has a part. */
function proofsByStep(violated) {
  const found = new Map();
  for (const { property, title, reason, witness } of violated) {
    for (const { step, node, said } of witness) {
      if (step === null) continue;
      if (!found.has(step)) found.set(step, []);
      let proof = found.get(step).find((known) => known.property === property);
      if (!proof) {
        proof = { property, title, reason, said: new Set(), nodes: new Set() };
        found.get(step).push(proof);
      }
      proof.said.add(said);
      if (node) proof.nodes.add(node);
    }
  }
  return found;
}

/** The names of values that change at some node after they were first told. */
function varyingFields(steps) {
  const known = new Set();
  const varying = new Set();
  for (const step of steps) {
    for (const [node, changes] of Object.entries(step.changes ?? {})) {
      for (const field of Object.keys(changes)) {
        const name = `${node} ${field}`;
        if (known.has(name)) varying.add(field);
        else known.add(name);
      }
    }
  }
  return varying;
}

/** The comment above the commands to which a line belongs. */
function commentAbove(text, line) {
  let i = line - 2;
  while (i >= 0 && text[i].trim() && !text[i].startsWith("#")) i -= 1;
  const end = i;
  while (i >= 0 && text[i].startsWith("#")) i -= 1;
  if (i < 0) return ""; // The story of the whole scenario, which is above.
  return text.slice(i + 1, end + 1).map((words) => words.replace(/^#\s?/, "")).join(" ").trim();
}

function short(text) {
  return text.length <= 60 ? text : `${text.slice(0, 59)}…`;
}
