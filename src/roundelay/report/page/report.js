// Draws the plots of the page. What each one shows is in the JSON of #plots; colours follow the
// scheme of the reader, and every curve has a marker and a dash of its own besides its colour.
(() => {
  "use strict";
  const plots = JSON.parse(document.getElementById("plots").textContent);
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  // Okabe and Ito's colours, made darker or lighter where the ground asks for it.
  const LIGHT = ["#0072b2", "#c04f00", "#007a59", "#a8508a", "#8a6d00", "#3b3f45"];
  const DARK = ["#56b4e9", "#ff9d5c", "#2fc79b", "#e394c4", "#f0e442", "#d5d9de"];
  const DASHES = ["solid", "dash", "dot", "dashdot", "longdash", "longdashdot"];
  const STROKES = ["", "7 4", "2 3", "7 3 2 3", "11 4", "11 3 2 3"];
  const SYMBOLS = ["circle", "square", "diamond", "triangle-up", "x", "star"];

  const palette = () => (dark.matches ? DARK : LIGHT);
  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const at = (list, i) => list[i % list.length];

  function layout(plot) {
    const axis = {
      gridcolor: css("--line"), zerolinecolor: css("--line"), linecolor: css("--quiet"),
      automargin: true, ticks: "outside", tickcolor: css("--line"),
    };
    const wide = {
      paper_bgcolor: css("--ground"), plot_bgcolor: css("--ground"), showlegend: false,
      font: { family: "system-ui, sans-serif", size: 13, color: css("--ink") },
      margin: { l: 8, r: 12, t: 8, b: 8 }, hovermode: plot.kind === "timeline" ? "closest" : "x",
      hoverlabel: { bgcolor: css("--raised"), bordercolor: css("--quiet"), font: { color: css("--ink") } },
      xaxis: { ...axis, title: { text: plot.x } },
      yaxis: { ...axis, type: plot.log ? "log" : undefined, rangemode: "tozero" },
    };
    if (plot.kind === "timeline") {
      wide.barmode = "overlay";
      wide.yaxis = { ...axis, type: "category", autorange: "reversed", categoryarray: plot.rows };
    }
    if (plot.categories) wide.xaxis.type = "category";
    return wide;
  }

  function curves(plot) {
    return plot.series.map((s) => {
      const colour = at(palette(), s.colour);
      const plain = plot.kind === "lines";
      return {
        type: "scatter", mode: plain ? "lines" : "lines+markers", name: s.name, x: s.x, y: s.y,
        line: { color: colour, dash: at(DASHES, s.dash), width: 2, shape: plain ? "hv" : "linear" },
        marker: { color: colour, symbol: at(SYMBOLS, s.colour), size: 8 },
        error_y: plain ? undefined : {
          type: "data", symmetric: false, color: colour, thickness: 1.2, width: 4,
          array: s.y.map((y, i) => s.high[i] - y), arrayminus: s.y.map((y, i) => y - s.low[i]),
        },
        visible: s.hidden ? "legendonly" : true,
        hovertemplate: "%{y:.3~g}<extra>%{fullData.name}</extra>",
      };
    });
  }

  function bars(plot) {
    return plot.bars.map((b) => ({
      type: "bar", orientation: "h", y: [b.row], base: [b.start], x: [b.length], width: 0.6,
      name: b.name, text: [b.name], textposition: "inside", insidetextanchor: "start",
      textfont: { color: dark.matches ? "#14171a" : "#ffffff" },
      marker: {
        color: at(palette(), b.colour), line: { color: css("--ground"), width: 1 },
        pattern: b.passing ? { shape: "/", size: 6, fgcolor: css("--ground") } : undefined,
      },
      hovertemplate: `${b.told.replace(/[<>&%{}]/g, " ")}<extra></extra>`,
    }));
  }

  function draw(plot) {
    const place = document.getElementById(plot.id);
    const traces = plot.kind === "timeline" ? bars(plot) : curves(plot);
    const options = { responsive: true, displayModeBar: false, doubleClick: "reset" };
    return Plotly.react(place, traces, layout(plot), options);
  }

  // A curve's name with a piece of the curve, and a box to hide it.
  function key(plot) {
    const keys = document.getElementById(`${plot.id}-keys`);
    if (!keys) return;
    keys.querySelectorAll("label").forEach((old) => old.remove());
    plot.series.forEach((s) => {
      const label = document.createElement("label");
      const box = document.createElement("input");
      box.type = "checkbox";
      box.checked = !s.hidden;
      box.addEventListener("change", () => { s.hidden = !box.checked; draw(plot); });
      const piece = document.createElementNS("http://www.w3.org/2000/svg", "svg");
      piece.setAttribute("width", "34");
      piece.setAttribute("height", "10");
      piece.setAttribute("aria-hidden", "true");
      const line = document.createElementNS("http://www.w3.org/2000/svg", "line");
      Object.entries({ x1: 0, x2: 34, y1: 5, y2: 5, "stroke-width": 3, stroke: at(palette(), s.colour),
        "stroke-dasharray": at(STROKES, s.dash) }).forEach(([k, v]) => line.setAttribute(k, v));
      piece.append(line);
      label.append(box, piece, document.createTextNode(s.name));
      keys.append(label);
    });
  }

  // A plot to play with: any measure over any parameter.
  function group(plot) {
    const [y, x, by] = ["y", "x", "by"].map((w) => document.getElementById(`${plot.id}-${w}`).value);
    const series = new Map();
    for (const row of plot.table) {
      const value = row[y];
      if (value === null || value === undefined) continue;
      const name = by ? `${by} ${row[by]}` : y;
      if (!series.has(name)) series.set(name, new Map());
      const points = series.get(name);
      if (!points.has(row[x])) points.set(row[x], []);
      points.get(row[x]).push(value);
    }
    const numeric = plot.table.every((row) => typeof row[x] === "number");
    plot.categories = !numeric;
    plot.x = x;
    document.getElementById(`${plot.id}-axis`).textContent = `${y}: mean, smallest and largest`;
    plot.series = [...series].map(([name, points], i) => {
      const xs = [...points.keys()];
      if (numeric) xs.sort((a, b) => a - b);
      const of = (f) => xs.map((at) => f(points.get(at)));
      return {
        name, colour: i, dash: Math.floor(i / LIGHT.length), x: xs,
        y: of((v) => v.reduce((a, b) => a + b) / v.length),
        low: of((v) => Math.min(...v)), high: of((v) => Math.max(...v)),
      };
    });
  }

  function show(plot) {
    if (plot.kind === "explorer") group(plot);
    key(plot);
    return draw(plot);
  }

  for (const plot of plots) {
    show(plot);
    const reset = document.getElementById(`${plot.id}-reset`);
    if (reset) reset.addEventListener("click", () => {
      Plotly.relayout(plot.id, { "xaxis.autorange": true, "yaxis.autorange": plot.kind === "timeline" ? "reversed" : true });
    });
    for (const word of ["y", "x", "by"]) {
      const select = document.getElementById(`${plot.id}-${word}`);
      if (select) select.addEventListener("change", () => show(plot));
    }
  }
  dark.addEventListener("change", () => plots.forEach(show));
  document.documentElement.dataset.drawn = String(plots.length);
})();
