// Two engines under the same load: measures, orders and diagrams side by side.

import { diagram, element } from "./laboratory-elements.js";

const MEASURES = [
  ["delivered", "Deliveries", "of all that are owed, one of each message at each node", (side) => `${side.delivered} of ${side.owed}`],
  ["p50", "Latency, half", "half of all deliveries come within this time of the message being submitted", (side) => ms(side.latency_ms?.p50), (side) => side.latency_ms?.p50],
  ["p90", "Latency, 90 %", "nine of ten deliveries", (side) => ms(side.latency_ms?.p90), (side) => side.latency_ms?.p90],
  ["p99", "Latency, 99 %", "the slowest hundredth begins here", (side) => ms(side.latency_ms?.p99), (side) => side.latency_ms?.p99],
  ["all", "Everywhere, half", "half of all messages have been delivered by everybody within this time", (side) => ms(side.everywhere_ms?.p50), (side) => side.everywhere_ms?.p50],
  ["frames", "Frames per message", "all frames from the first message to the last delivery, tokens and acknowledgments included", (side) => String(side.frames_per_message), (side) => side.frames_per_message],
  ["bytes", "Bytes per message", "on the wire, counted in the same way; a broadcast counts once", (side) => String(side.bytes_per_message), (side) => side.bytes_per_message],
  ["types", "Frames by type", "", (side) => Object.entries(side.frames_by_type).map(([tag, count]) => `${count} ${tag}`).join(", ")],
  ["order", "One order", "whether all nodes delivered the same messages in the same order", (side) => (side.one_order ? "yes" : "no")],
  ["promises", "Promises", "of this engine, judged by the checker", (side) => side.broken.length
    ? `broken: ${side.broken.map((one) => `${one.property} (${one.reason})`).join("; ")}`
    : `none broken, ${side.kept} kept`],
];

export class Comparison {
  constructor(context, known) {
    this.context = context;
    this.known = known;
    this.results = element("div", { class: "lab-results" });
    this.state = element("p", { role: "status", class: "quiet" });
    this.form = this.#form();
    this.element = element("div", { class: "lab-comparison" },
      element("div", { class: "card" },
        element("h2", {}, "Two engines, the same messages"),
        element("p", {}, "Both are given the same messages at the same moments of virtual time, on the same network, without views. The group is in the simulator; nothing is measured on this machine."),
        this.form, this.state),
      this.results);
  }

  #form() {
    const { engines, networks, numbers } = this.known;
    const engine = (id, label, chosen) => {
      const select = element("select", { id: `lab-${id}`, name: id, "aria-describedby": `lab-${id}-what` },
        ...engines.map(({ name }) => element("option", { value: name }, name)));
      select.value = chosen;
      const what = element("span", { class: "quiet", id: `lab-${id}-what` });
      const tell = () => {
        what.textContent = engines.find(({ name }) => name === select.value)?.what ?? "";
      };
      select.addEventListener("change", tell);
      tell();
      return element("div", { class: "lab-field lab-wide" }, element("label", { for: `lab-${id}` }, label), select, what);
    };
    const form = element("form", { class: "lab-form" },
      engine("one", "First engine", "totem"), engine("two", "Second engine", "allack"),
      element("div", { class: "lab-field" }, element("label", { for: "lab-network" }, "network"),
        element("select", { id: "lab-network", name: "network" }, ...networks.map((name) => element("option", { value: name }, name)))),
      ...Object.entries(numbers).map(([name, b]) => element("div", { class: "lab-field" },
        element("label", { for: `lab-n-${name}` }, b.unit ? `${b.label}, ${b.unit}` : b.label),
        element("input", { type: "number", id: `lab-n-${name}`, name, min: b.low, max: b.high, value: b.usual, step: b.whole ? "1" : "any", required: "" }))),
      element("div", { class: "lab-field" }, element("button", { type: "submit", class: "button primary" }, "Compare")));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#compare();
    });
    return form;
  }

  async #compare() {
    const submit = this.form.querySelector("button");
    submit.disabled = true;
    this.state.textContent = "Both are running …";
    try {
      const query = new URLSearchParams(new FormData(this.form));
      this.#show(await this.context.fetchJson(`/api/laboratory/comparison?${query}`));
    } catch (error) {
      this.results.replaceChildren();
      this.state.textContent = `They cannot be compared: ${error.message}`;
    } finally {
      submit.disabled = false;
    }
  }

  #show({ sides }) {
    this.state.textContent = `Done: ${sides.map((side) => side.engine).join(" and ")}, ${sides[0].messages} messages each.`;
    this.results.replaceChildren(
      element("div", { class: "card" },
        element("h3", { id: "lab-measures-h" }, "Measures"),
        element("div", { class: "scroll", tabindex: "0", role: "region", "aria-labelledby": "lab-measures-h" }, measures(sides))),
      element("div", { class: "lab-two lab-sides" }, ...sides.map((side, i) => this.#side(side, i))));
  }

  #side(side, i) {
    const id = `lab-side-${i}`;
    return element("section", { class: "card lab-side", "aria-labelledby": `${id}-h` },
      element("h3", { id: `${id}-h` }, side.engine),
      element("p", { class: "quiet" }, side.what),
      element("h4", {}, "Order of deliveries"),
      element("p", { class: "quiet" }, side.one_order
        ? "The same at all nodes. A message is named by its sender and a number."
        : "Nodes differ; where a node differs from the first one is marked."),
      element("div", { class: "scroll lab-orders", tabindex: "0", role: "region", "aria-label": `Deliveries of ${side.engine}` }, orders(side)),
      element("h4", {}, "The first messages"),
      element("div", { class: "scroll lab-diagram", tabindex: "0", role: "region", "aria-label": `Diagram of ${side.engine}` }, diagram(side.svg)),
      element("details", {}, element("summary", {}, "This run as a scenario"),
        element("p", { class: "quiet" }, "Save it as a file, and `roundelay sim run FILE` repeats it."),
        element("pre", { class: "mono" }, side.scenario)));
  }
}

function measures(sides) {
  const rows = MEASURES.map(([, name, meaning, words, number]) => {
    const numbers = number ? sides.map((side) => number(side) ?? 0) : [];
    const most = Math.max(...numbers, 1e-9);
    return element("tr", {},
      element("th", { scope: "row" }, name, meaning ? element("span", { class: "quiet lab-meaning" }, meaning) : null),
      ...sides.map((side, i) => {
        const cell = element("td", {}, element("span", { class: "number" }, words(side)));
        if (number) {
          const bar = element("span", { class: `lab-bar side-${i}`, "aria-hidden": "true" });
          bar.style.width = `${(100 * numbers[i]) / most}%`;
          cell.append(bar);
        }
        return cell;
      }));
  });
  return element("table", { class: "lab-measures" },
    element("thead", {}, element("tr", {}, element("td", {}), ...sides.map((side) => element("th", { scope: "col" }, side.engine)))),
    element("tbody", {}, ...rows));
}

function orders(side) {
  const nodes = Object.keys(side.orders);
  const model = side.orders[nodes[0]];
  return element("table", { class: "lab-order" }, element("tbody", {},
    ...nodes.map((node) => element("tr", {},
      element("th", { scope: "row" }, node),
      ...side.orders[node].map((message, i) => element("td",
        { class: message === model[i] ? "mono" : "mono lab-differs" }, message)),
      side.left_out > 0 ? element("td", { class: "quiet" }, "…") : null))));
}

function ms(value) {
  return value === undefined ? "–" : `${value.toFixed(2)} ms`;
}
