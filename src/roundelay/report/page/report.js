// Draws the plots of the page. What each one shows is in the JSON of #plots; colours follow the
// scheme of the reader, and every curve has a marker and a dash of its own besides its colour.
(() => {
  "use strict";
  const plots = JSON.parse(document.getElementById("plots").textContent);
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const narrow = window.matchMedia("(max-width: 48rem)");
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
    if (plot.kind === "timeline") stack(plot, wide, axis);
    if (plot.categories) wide.xaxis.type = "category";
    return wide;
  }

  function curves(plot) {
    return plot.series.map((s) => {
      const colour = at(palette(), s.colour);
      const stepped = plot.kind !== "curves" && plot.kind !== "explorer";
      return {
        type: "scatter", mode: stepped ? "lines" : "lines+markers", name: s.name, x: s.x, y: s.y,
        line: { color: colour, dash: at(DASHES, s.dash), width: 2, shape: stepped ? "hv" : "linear" },
        marker: { color: colour, symbol: at(SYMBOLS, s.colour), size: 8 },
        error_y: stepped ? undefined : {
          type: "data", symmetric: false, color: colour, thickness: 1.2, width: 4,
          array: s.y.map((y, i) => s.high[i] - y), arrayminus: s.y.map((y, i) => y - s.low[i]),
        },
        visible: s.hidden ? "legendonly" : true,
        hovertemplate: "%{y:.3~g}<extra>%{fullData.name}</extra>",
      };
    });
  }

  // Views above, what nodes hold below, over one time axis; what was done crosses both.
  function stack(plot, wide, axis) {
    const held = plot.series.length > 0;
    const levels = notes(plot);
    wide.barmode = "overlay";
    wide.margin.t = 8 + 18 * (1 + Math.max(-1, ...levels.map((note) => note.level)));
    wide.uniformtext = { mode: "hide", minsize: 11 };
    wide.xaxis.anchor = held ? "y2" : "y";
    wide.yaxis = {
      ...axis, type: "category", autorange: "reversed", categoryarray: plot.rows, fixedrange: true,
      domain: held ? [0.38, 1] : [0, 1],
    };
    if (held) {
      wide.yaxis2 = {
        ...axis, domain: [0, 0.28], rangemode: "tozero", fixedrange: true,
        title: { text: narrow.matches ? "held" : "messages held" },
      };
    }
    wide.shapes = plot.faults.map((fault) => ({
      type: "line", xref: "x", yref: "paper", x0: fault.at, x1: fault.at, y0: 0, y1: 1,
      line: { color: css("--bad"), width: 1.5, dash: "dot" },
    }));
    wide.annotations = levels.map((note) => ({
      x: note.at, xref: "x", y: 1, yref: "paper", yanchor: "bottom", yshift: 18 * note.level,
      xanchor: note.left ? "right" : "left", xshift: note.left ? 4 : -4, text: note.text,
      showarrow: false, font: { color: css("--bad"), size: 12 },
    }));
  }

  // The words of the faults, on as many lines as they need beside each other.
  function notes(plot) {
    const place = document.getElementById(plot.id);
    const ends = Math.max(...plot.bars.map((bar) => bar.start + bar.length), 1e-9);
    const wide = place.clientWidth - 60;
    const taken = [];
    return plot.faults.map((fault) => {
      const text = narrow.matches ? `${fault.number}` : `${fault.number} ${plain(fault.told)}`;
      const need = 8 + 7 * text.length;
      const at = (fault.at / ends) * wide;
      const left = at + need > wide;
      const from = left ? at - need : at;
      let level = 0;
      while (taken[level] !== undefined && taken[level] > from && level < 3) level += 1;
      taken[level] = from + need;
      return { at: fault.at, text, level, left };
    });
  }

  const plain = (said) => said.replace(/[<>&]/g, " ");

  // A colour for each view, whatever their number: hues far apart, and dark or light enough that
  // the words on them can be read.
  function hue(number) {
    const angle = (205 + 137.508 * number) % 360;
    const step = dark.matches ? 2 : -2;
    for (let light = 46; light > 8 && light < 96; light += step) {
      if (contrast(angle, light) >= 4.7) return `hsl(${angle.toFixed(0)}, 58%, ${light}%)`;
    }
    return css("--ink");
  }

  function contrast(angle, light) {
    const part = (n) => {
      const k = (n + angle / 30) % 12;
      const l = light / 100;
      const c = l - 0.58 * Math.min(l, 1 - l) * Math.max(-1, Math.min(k - 3, 9 - k, 1));
      return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
    };
    const luminance = 0.2126 * part(0) + 0.7152 * part(8) + 0.0722 * part(4);
    return dark.matches ? (luminance + 0.05) / 0.058 : 1.05 / (luminance + 0.05);
  }

  function bars(plot) {
    const ground = css("--ground");
    const looks = {
      primary: (colour) => ({ color: colour, line: { color: ground, width: 1 } }),
      other: (colour) => ({ color: ground, line: { color: colour, width: 2 } }),
      transitional: (colour) => ({
        color: colour, line: { color: ground, width: 1 },
        pattern: { shape: "/", size: 6, fgcolor: ground },
      }),
      down: () => ({
        color: css("--raised"), line: { color: css("--line"), width: 1 },
        pattern: { shape: "x", size: 7, fgcolor: css("--line") },
      }),
      paused: () => ({ color: css("--ink"), line: { width: 0 } }),
    };
    return plot.bars.map((b) => {
      const colour = hue(b.colour);
      const thin = b.state === "paused";
      const inked = b.state === "other" || b.state === "down";
      return {
        type: "bar", orientation: "h", y: [b.row], base: [b.start], x: [b.length],
        ...(thin ? { width: 0.12, offset: 0.33 } : { width: 0.62 }),
        name: plain(b.name), text: [thin || b.state === "transitional" ? "" : plain(b.name)],
        textposition: "inside", insidetextanchor: "start", textangle: 0, constraintext: "inside",
        textfont: { color: inked ? css("--ink") : dark.matches ? "#14171a" : "#ffffff", size: 12 },
        marker: looks[b.state](colour),
        hovertemplate: `${b.told.replace(/[<>&%{}]/g, " ")}<br>%{base:.2f} s to %{customdata:.2f} s<extra></extra>`,
        customdata: [b.start + b.length],
      };
    });
  }

  function draw(plot) {
    const place = document.getElementById(plot.id);
    const lower = curves(plot).map((curve) => ({ ...curve, yaxis: "y2" }));
    const traces = plot.kind === "timeline" ? [...bars(plot), ...lower] : curves(plot);
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
    const known = plot.table.filter((row) => row[y] !== null && row[y] !== undefined);
    const differ = (name) => new Set(known.map((row) => String(row[name]))).size > 1;
    const others = by === "*" ? plot.varied.filter((name) => name !== x && differ(name)) : by ? [by] : [];
    for (const row of known) {
      const name = others.map((other) => `${plot.words[other]}: ${row[other] === "" ? "-" : row[other]}`).join(", ") || plot.words[y];
      if (!series.has(name)) series.set(name, new Map());
      const points = series.get(name);
      if (!points.has(row[x])) points.set(row[x], []);
      points.get(row[x]).push(row[y]);
    }
    const numeric = known.every((row) => typeof row[x] === "number");
    plot.categories = !numeric;
    plot.x = plot.words[x];
    document.getElementById(`${plot.id}-axis`).textContent = `${plot.words[y]}: mean, smallest and largest`;
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
      const y = plot.kind === "timeline" ? {} : { "yaxis.autorange": true };
      Plotly.relayout(plot.id, { "xaxis.autorange": true, ...y });
    });
    for (const word of ["y", "x", "by"]) {
      const select = document.getElementById(`${plot.id}-${word}`);
      if (select) select.addEventListener("change", () => show(plot));
    }
  }
  dark.addEventListener("change", () => plots.forEach(show));
  narrow.addEventListener("change", () => plots.forEach(show));

  // What can be scrolled is shaded where there is more of it.
  function shade(frame) {
    const inner = frame.firstElementChild;
    frame.classList.toggle("more-left", inner.scrollLeft > 1);
    frame.classList.toggle("more-up", inner.scrollTop > 1);
    frame.classList.toggle("more-right", inner.scrollLeft + inner.clientWidth < inner.scrollWidth - 1);
    frame.classList.toggle("more-down", inner.scrollTop + inner.clientHeight < inner.scrollHeight - 1);
  }
  const sizes = new ResizeObserver((seen) => seen.forEach((one) => shade(one.target.parentElement)));
  for (const frame of document.querySelectorAll(".scrolled")) {
    frame.firstElementChild.addEventListener("scroll", () => shade(frame), { passive: true });
    sizes.observe(frame.firstElementChild);
    for (const image of frame.querySelectorAll("img")) image.addEventListener("load", () => shade(frame));
    shade(frame);
  }
  document.documentElement.dataset.drawn = String(plots.length);
})();
