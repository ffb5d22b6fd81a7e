// The part "laboratory" of the page: scenarios step by step, and two engines side by side.

import { element, tabs } from "./laboratory-elements.js";
import { Player } from "./laboratory-player.js";
import { Comparison } from "./laboratory-comparison.js";

/** What a heading of the list is about, where its name does not say it. */
const ABOUT = {
  totem: "Totem: agreed and safe delivery on a token ring",
  dtp: "DTP: the token goes where it is needed",
  cm: "CM: the token goes round",
  pinwheel: "Pinwheel: the token goes round, and takes all that waits",
  atop: "ATOP: slots instead of a token",
  allack: "All-Ack: everybody's clock",
  causal: "Causal: causes before effects",
  fc: "FC: a token ring that goes on without a silent member",
  st: "ST: one order for messages to any subset",
  fifo: "Fifo: no order between senders",
  log: "The replicated log",
  sealed: "Sealed traffic, and attacks on it",
  template: "The template of an engine: it orders nothing",
};

export async function mount(panel, context) {
  const style = element("link", { rel: "stylesheet", href: "/static/laboratory.css" });
  const styled = new Promise((done) => {
    style.onload = style.onerror = done;
  });
  document.head.append(style);
  const known = await context.fetchJson("/api/laboratory/scenarios");
  await styled;
  const player = new Player(context, known.first, open);
  const list = makeList(known.scenarios, open);
  const comparison = new Comparison(context, known.comparison);
  const byName = new Map(known.scenarios.map((scenario) => [scenario.name, scenario]));

  function open(name) {
    list.choose(name);
    player.open(byName.get(name));
  }

  const scenarios = element("div", { class: "lab-columns" }, list.element, player.element);
  panel.replaceChildren(
    ...tabs("Parts of the laboratory", [
      { id: "lab-scenarios", name: "Scenarios", content: scenarios },
      { id: "lab-comparison", name: "Two engines", content: comparison.element },
    ]),
  );
  context.events.addEventListener("shown", (event) => {
    if (event.detail !== "laboratory") player.pause();
  });
}

/** The list of all scenarios, with a field to search it. */
function makeList(scenarios, open) {
  const search = element("input", {
    type: "text", id: "lab-search", autocomplete: "off", spellcheck: "false",
    placeholder: "loss, partition, token …",
  });
  const broken = element("input", { type: "checkbox", id: "lab-broken" });
  const found = element("p", { class: "quiet lab-found", role: "status" });
  const groups = element("div", { class: "lab-groups" });
  const items = [];
  const names = [...new Set(scenarios.map((scenario) => scenario.group))].sort();
  for (const name of names) {
    const members = scenarios.filter((scenario) => scenario.group === name);
    const rows = element("ul", {});
    for (const scenario of members) {
      const button = element("button", { type: "button", class: "lab-item" },
        element("span", { class: "lab-item-name" }, titleOf(scenario)),
        scenario.breaks.length
          ? element("span", { class: "lab-breaks" }, `breaks ${scenario.breaks.slice(0, 4).join(" ")}`)
          : null,
        element("span", { class: "lab-item-story" }, scenario.story[0] ?? ""));
      button.addEventListener("click", () => open(scenario.name));
      const row = element("li", {}, button);
      const words = [scenario.name, scenario.engine, scenario.rules, ...scenario.story,
        ...scenario.breaks].join(" ").toLowerCase();
      items.push({ scenario, row, button, words, name });
      rows.append(row);
    }
    const group = element("details", { class: "lab-group" },
      element("summary", {}, ABOUT[name] ?? name,
        element("span", { class: "quiet lab-count" }, String(members.length))), rows);
    group.dataset.group = name;
    groups.append(group);
  }

  function filter() {
    const wanted = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const narrowed = wanted.length > 0 || broken.checked;
    let shown = 0;
    for (const item of items) {
      const fits = wanted.every((word) => item.words.includes(word)) &&
        (!broken.checked || item.scenario.breaks.length > 0);
      item.row.hidden = !fits;
      shown += fits;
    }
    for (const group of groups.children) {
      const left = group.querySelectorAll("li:not([hidden])").length;
      group.hidden = left === 0;
      group.querySelector(".lab-count").textContent = left;
      if (narrowed) group.open = left > 0;
    }
    found.textContent = shown === items.length
      ? `${shown} scenarios`
      : `${shown} of ${items.length} scenarios`;
  }
  search.addEventListener("input", filter);
  broken.addEventListener("change", filter);
  filter();

  const box = element("details", { class: "card lab-list", open: "" },
    element("summary", {}, "Choose a scenario"),
    element("div", { class: "lab-search" },
      element("label", { for: "lab-search" }, "Search"), search,
      element("label", { class: "choice" }, broken, "only those that break a promise"), found),
    groups);
  return {
    element: box,
    choose(name) {
      for (const item of items) {
        const chosen = item.scenario.name === name;
        if (chosen) item.button.setAttribute("aria-current", "true");
        else item.button.removeAttribute("aria-current");
        if (chosen) item.row.closest("details").open = true;
      }
      // On a narrow page the list is above the run: it makes room.
      if (window.matchMedia("(max-width: 62rem)").matches) box.open = false;
    },
  };
}

/** A scenario's own name in words. */
function titleOf(scenario) {
  return scenario.name.split("/").pop().replaceAll("_", " ");
}
