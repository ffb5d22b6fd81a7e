// Makes elements. Whatever comes from a node becomes text, never HTML.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : String(child));
  }
  return element;
}

/** An HTML element: its name, its attributes, its children; texts are children too. */
export function el(name, attributes = {}, ...children) {
  return fill(document.createElement(name), attributes, children);
}

/** An SVG element. */
export function svg(name, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, name), attributes, children);
}

/** Change a text only if it is another one: screen readers would read it again. */
export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** Change a class only if it is another one. */
export function dress(element, name) {
  if (element.getAttribute("class") !== name) element.setAttribute("class", name);
}

/** A number for people: three digits that mean something. */
export function number(value, unit = "") {
  if (value === null || value === undefined) return "–";
  const size = Math.abs(value);
  const text =
    size >= 100 || Number.isInteger(value)
      ? Math.round(value).toLocaleString("en")
      : value.toPrecision(size >= 10 ? 3 : 2).replace(/\.?0+$/, "");
  return unit ? `${text} ${unit}` : text;
}

/** Seconds for people. */
export function duration(seconds) {
  if (seconds < 120) return `${Math.floor(seconds)} s`;
  if (seconds < 7200) return `${Math.floor(seconds / 60)} min`;
  return `${Math.floor(seconds / 3600)} h`;
}

/** Names in a sentence. */
export function names(all) {
  return all.length ? all.join(", ") : "nobody";
}
