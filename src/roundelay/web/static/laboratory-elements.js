// Makes elements that several parts of the laboratory have.

import { el as element, svg as shape } from "./dom.js";

export { element, shape };

export function button(text, act, attributes = {}) {
  const made = element("button", { type: "button", class: "button", ...attributes }, text);
  made.addEventListener("click", act);
  return made;
}

let diagrams = 0;

/** A diagram of the server as an element, or a sentence if it is none. */
export function diagram(text) {
  diagrams += 1;
  // Patterns are found by their id in the whole page, where other diagrams have the same.
  const own = text.replaceAll("roundelay-h", `lab-${diagrams}-h`);
  const parsed = new DOMParser().parseFromString(own, "image/svg+xml").documentElement;
  if (parsed.localName !== "svg") return element("p", {}, "The diagram cannot be shown.");
  for (const odd of parsed.querySelectorAll("script, foreignObject")) odd.remove();
  return document.importNode(parsed, true);
}

/** A list of tabs and their panels. */
export function tabs(label, parts) {
  const bar = element("div", { class: "tabs lab-tabs", role: "tablist", "aria-label": label });
  const panels = parts.map((part) =>
    element("div", { role: "tabpanel", id: part.id, "aria-labelledby": `tab-${part.id}` },
      part.content));
  const buttons = parts.map((part, i) => {
    const tab = element("button",
      { type: "button", role: "tab", id: `tab-${part.id}`, "aria-controls": part.id }, part.name);
    tab.addEventListener("click", () => show(i));
    tab.addEventListener("keydown", (event) => {
      const to = { ArrowRight: i + 1, ArrowLeft: i - 1, Home: 0, End: parts.length - 1 }[event.key];
      if (to === undefined) return;
      event.preventDefault();
      show((to + parts.length) % parts.length, true);
    });
    return tab;
  });
  function show(at, focus = false) {
    buttons.forEach((tab, i) => {
      tab.setAttribute("aria-selected", String(i === at));
      tab.tabIndex = i === at ? 0 : -1;
      panels[i].hidden = i !== at;
    });
    if (focus) buttons[at].focus();
  }
  bar.append(...buttons);
  show(0);
  return [bar, ...panels];
}
