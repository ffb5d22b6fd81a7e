// The part Table: verdicts and measures of a table of the pipeline, live ones too.

import { el, svg, say, number } from "./dom.js";

const EVERY_MS = 2000;
const KINDS = { violated: "bad", "outside-envelope": "warn", inconclusive: "warn", vacuous: "quiet", ok: "good" };
const MEANING = {
  violated: "a promise was broken; the reason says by which messages",
  "outside-envelope": "broken, but under faults that the protocol does not promise to bear",
  inconclusive: "the trace does not show enough to tell",
  vacuous: "what it speaks of never happened, so nothing is known",
  ok: "held every time",
};
const CURVES = [
  { title: "Rows judged", unit: "rows/s", keys: ["rows_per_s"] },
  { title: "Deliveries", unit: "messages/s", keys: ["deliveries_per_s"] },
  { title: "Latency", unit: "ms", keys: ["latency_p50_ms", "latency_p90_ms", "latency_p99_ms"] },
  { title: "Behind", unit: "s", keys: ["behind_s"] },
];
const NAMES = { latency_p50_ms: "median", latency_p90_ms: "90 %", latency_p99_ms: "99 %" };

export async function mount(element, context) {
  const { tables } = await context.fetchJson("/api/tables");
  if (!tables.length) {
    element.replaceChildren(
      el(
        "div",
        { class: "card empty" },
        el("h2", {}, "No table was given"),
        el("p", {}, "Give the dashboard a directory with verdicts or measures of the pipeline, live ones of ", el("code", {}, "roundelay watch"), " too:"),
        el("pre", {}, "roundelay dashboard --table out/demo/table"),
      ),
    );
    return;
  }
  let seen = "";
  let data = null;
  const choice = el("select", { id: "table-choice", onchange: () => ((seen = ""), update()) }, tables.map((path, i) => el("option", { value: i }, path)));
  const trouble = el("p", { class: "bad", role: "status" });
  const tiles = el("ul", { class: "tiles" });
  const curves = el("div", { class: "curves" });
  const which = el(
    "select",
    { id: "table-verdicts", onchange: () => showVerdicts() },
    el("option", { value: "" }, "all"),
    Object.keys(KINDS).map((kind) => el("option", { value: kind }, kind)),
  );
  const verdicts = el("div", {}, el("p", { class: "quiet" }, "The table is being read."));
  const measures = el("div", {});
  const live = el("div", { class: "card", hidden: true }, el("h2", {}, "While it runs"), curves);
  const measured = el("div", { class: "card", hidden: true }, el("h2", {}, "Measures"), measures);
  element.replaceChildren(
    el(
      "div",
      { class: "grid" },
      el("div", { class: "row" }, el("label", { class: "choice", for: "table-choice" }, "Table"), choice, trouble),
      tiles,
      live,
      el("div", { class: "card" }, el("div", { class: "row" }, el("h2", {}, "Verdicts"), el("label", { class: "choice", for: "table-verdicts" }, "show"), which), verdicts),
      measured,
    ),
  );

  async function update() {
    try {
      const query = new URLSearchParams({ number: choice.value, seen });
      const told = await context.fetchJson(`/api/table?${query}`);
      say(trouble, "");
      if (!told.verdicts) return;
      seen = told.version;
      data = told;
      show();
    } catch (error) {
      say(trouble, error.message);
    }
  }

  function show() {
    tiles.replaceChildren(
      ...Object.entries(data.counts).map(([kind, count]) =>
        el("li", { title: MEANING[kind] }, el("span", {}, kind), el("b", { class: `number ${count ? (KINDS[kind] ?? "") : "quiet"}` }, number(count))),
      ),
    );
    live.hidden = !data.live;
    measured.hidden = data.live || !data.measures.length;
    if (data.live) curves.replaceChildren(...CURVES.map((curve) => chart(curve, data.measures)));
    else measures.replaceChildren(measureTable(data.measures));
    showVerdicts();
  }

  function showVerdicts() {
    if (!data) return;
    const shown = data.verdicts.filter((row) => !which.value || row.verdict === which.value);
    if (!shown.length) {
      verdicts.replaceChildren(el("p", { class: "quiet" }, data.verdicts.length ? "None of this kind." : "No verdicts yet."));
      return;
    }
    const runs = new Set(shown.map((row) => row.run)).size > 1;
    const head = [...(runs ? ["Run"] : []), "Verdict", "Property", "What it says", "Times", "Reason"];
    const rows = shown.map((row) =>
      el(
        "tr",
        {},
        runs ? el("td", {}, row.run) : "",
        el("td", {}, el("span", { class: `chip ${KINDS[row.verdict] ?? "warn"}`, title: MEANING[row.verdict] }, row.verdict)),
        el("th", { scope: "row" }, row.property),
        el("td", { class: "words" }, row.title),
        el("td", { class: "number" }, number(row.instances)),
        el("td", { class: "words" }, row.reason, row.witness.length ? el("div", { class: "quiet mono" }, `rows ${row.witness.join(" ")}`) : ""),
      ),
    );
    verdicts.replaceChildren(
      scroll("Verdicts", el("table", {}, headOf(head, ["Times"]), el("tbody", {}, rows))),
      ...(data.left_out ? [el("p", { class: "quiet" }, `${number(data.left_out)} more are left out.`)] : []),
    );
  }

  setInterval(() => !element.hidden && !document.hidden && update(), EVERY_MS);
  context.events.addEventListener("shown", (event) => event.detail === "table" && update());
  await update();
}

const scroll = (label, table) => el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": label }, table);
const headOf = (names, numbers) => el("thead", {}, el("tr", {}, names.map((name) => el("th", { scope: "col", class: numbers.includes(name) ? "number" : null }, name))));

function measureTable(rows) {
  const runs = new Set(rows.map((row) => row.run)).size > 1;
  const numbers = ["count", "mean", "p50", "p90", "p99", "max"];
  const body = rows.map((row) =>
    el(
      "tr",
      {},
      runs ? el("td", {}, row.run) : "",
      el("th", { scope: "row" }, row.measure),
      el("td", { class: "quiet words" }, row.about),
      el("td", {}, row.unit),
      numbers.map((key) => el("td", { class: "number" }, number(row[key]))),
    ),
  );
  return scroll("Measures", el("table", {}, headOf([...(runs ? ["Run"] : []), "Measure", "What it is", "Unit", ...numbers], numbers), el("tbody", {}, body)));
}

/** Lines over time; what is missing breaks a line. */
function chart({ title, unit, keys }, rows) {
  const [w, h, left, low] = [420, 130, 52, 20];
  const some = rows.slice(-300);
  const values = some.flatMap((row) => keys.map((key) => row[key])).filter((value) => typeof value === "number");
  const most = Math.max(1e-9, ...values);
  const from = some[0]?.time_s ?? 0;
  const to = Math.max(from + 1, some.at(-1)?.time_s ?? 1);
  const x = (t) => left + ((t - from) / (to - from)) * (w - left - 8);
  const y = (value) => h - low - (value / most) * (h - low - 10);
  const lines = keys.map((key, i) => {
    let pen = "M";
    let d = "";
    for (const row of some) {
      const value = row[key];
      if (typeof value !== "number") {
        pen = "M";
        continue;
      }
      d += `${pen}${x(row.time_s).toFixed(1)} ${y(value).toFixed(1)}`;
      pen = "L";
    }
    return svg("path", { class: `curve c${i}`, d });
  });
  const last = some.at(-1) ?? {};
  const now = keys.map((key) => `${NAMES[key] ? `${NAMES[key]} ` : ""}${number(last[key], unit)}`).join(", ");
  const clock = (t) => new Date(t * 1000).toLocaleTimeString("en-GB");
  return el(
    "figure",
    {},
    el("figcaption", {}, el("b", {}, title), ` ${now}`),
    svg(
      "svg",
      { viewBox: `0 0 ${w} ${h}`, role: "img", "aria-label": `${title}, at last ${now}` },
      svg("path", { class: "grid", d: `M${left} ${y(0)}H${w - 8}M${left} ${y(most)}H${w - 8}` }),
      svg("text", { x: left - 6, y: y(0) + 4, "text-anchor": "end" }, "0"),
      svg("text", { x: left - 6, y: y(most) + 4, "text-anchor": "end" }, number(most)),
      svg("text", { x: left, y: h - 4 }, clock(from)),
      svg("text", { x: w - 8, y: h - 4, "text-anchor": "end" }, clock(to)),
      lines,
    ),
  );
}
