// The shell of the page: its tabs, the stream of events, and what every part is given.

const parts = ["now", "history", "play", "laboratory", "table"];
const mounted = new Map();
const connection = document.getElementById("connection");
const token = takeToken();

/**
 * The token, which the address has at the first visit. This tab keeps it, for this port alone, and
 * what the address says from then on is no secret.
 */
function takeToken() {
  const told = location.hash.match(/^#token=(.+)$/);
  if (told) {
    sessionStorage.setItem("token", decodeURIComponent(told[1]));
    history.replaceState(null, "", "/");
  }
  return sessionStorage.getItem("token") ?? "";
}

/**
 * What the server tells, as events; `detail` is the parsed JSON. "groups": all groups; "group": the
 * one that the reader chose, or null; "shown": the name of the part that is shown now.
 */
const events = new EventTarget();

const authorization = { Authorization: `Bearer ${token}` };

/** The answer to a request, as JSON. What the server objects to becomes an Error with its sentence. */
async function fetchJson(path, options = {}) {
  const request = { ...options, headers: { ...authorization, ...(options.headers ?? {}) } };
  if (request.body !== undefined && typeof request.body !== "string") {
    request.body = JSON.stringify(request.body);
    request.headers["Content-Type"] = "application/json";
    request.method ??= "POST";
  }
  let answer;
  try {
    answer = await fetch(path, request);
  } catch {
    throw new Error("the dashboard does not answer; is the command still running?");
  }
  const isJson = (answer.headers.get("content-type") ?? "").startsWith("application/json");
  const told = isJson ? await answer.json() : { error: await answer.text() };
  if (!answer.ok) throw new Error(told.error ?? `the dashboard answered ${answer.status}`);
  return told;
}

const context = { fetchJson, events };

async function mount(name) {
  if (mounted.has(name)) return;
  const element = document.getElementById(name);
  mounted.set(name, element);
  try {
    const part = await import(`./${name}.js`);
    await part.mount(element, context);
  } catch (error) {
    const sentence = document.createElement("p");
    sentence.textContent = `This part does not load: ${error.message}`;
    element.replaceChildren(sentence);
  }
}

/** The part that the address names. */
function named() {
  return location.hash.replace(/^#\/?/, "");
}

function show(name, focus = false) {
  for (const part of parts) {
    const tab = document.getElementById(`tab-${part}`);
    const chosen = part === name;
    tab.setAttribute("aria-selected", String(chosen));
    tab.tabIndex = chosen ? 0 : -1;
    document.getElementById(part).hidden = !chosen;
    if (chosen && focus) tab.focus();
  }
  if (named() !== name) history.replaceState(null, "", `#/${name}`); // No element has that name.
  events.dispatchEvent(new CustomEvent("shown", { detail: name }));
  return mount(name);
}

function onKey(event) {
  const at = parts.indexOf(event.target.dataset.part);
  const to = {
    ArrowRight: (at + 1) % parts.length,
    ArrowLeft: (at + parts.length - 1) % parts.length,
    Home: 0,
    End: parts.length - 1,
  }[event.key];
  if (to === undefined) return;
  event.preventDefault();
  show(parts[to], true);
}

function say(text, kind) {
  if (connection.textContent === text) return;
  connection.textContent = text;
  connection.className = `chip ${kind}`;
}

const choice = document.getElementById("group");

/** Tell the parts of the group that the reader chose, or of the first one. */
function tell() {
  const groups = context.groups?.groups ?? [];
  const known = groups.map((group) => group.name);
  const options = [...choice.options].map((option) => option.value);
  if (JSON.stringify(known) !== JSON.stringify(options)) {
    const chosen = choice.value;
    choice.replaceChildren(...known.map((name) => new Option(name, name)));
    if (known.includes(chosen)) choice.value = chosen;
    document.getElementById("group-choice").hidden = known.length < 2;
  }
  context.group = groups.find((group) => group.name === choice.value) ?? null;
  events.dispatchEvent(new CustomEvent("group", { detail: context.group }));
}
choice.addEventListener("change", tell);

function stale(is) {
  document.body.classList.toggle("stale", is);
}

/** Listen to the server, and again when it has gone away. An `EventSource` could not send the token. */
async function listen() {
  try {
    const answer = await fetch("/api/events", { headers: authorization });
    if (answer.status === 403) {
      stale(true);
      return say("open the address that the command printed", "bad"); // Another token never comes.
    }
    if (!answer.ok) throw new Error(answer.statusText);
    say("live", "good");
    stale(false);
    await read(answer.body.pipeThrough(new TextDecoderStream()).getReader());
  } catch (error) {
    console.debug(error);
  }
  stale(true);
  say("not connected", "bad");
  setTimeout(listen, 3000);
}

/** Read events until the stream ends: each ends with an empty line, and has one line of data. */
async function read(reader) {
  let rest = "";
  for (let piece = await reader.read(); !piece.done; piece = await reader.read()) {
    const blocks = (rest + piece.value).split("\n\n");
    rest = blocks.pop();
    for (const block of blocks) {
      const data = block.split("\n").find((line) => line.startsWith("data: "));
      if (data) hear(JSON.parse(data.slice("data: ".length)));
    }
  }
}

function hear(told) {
  context.groups = told;
  say(told.left_out ? `live; ${told.left_out} more nodes are not shown` : "live", "good");
  events.dispatchEvent(new CustomEvent("groups", { detail: told }));
  tell();
}

for (const part of parts) {
  const tab = document.getElementById(`tab-${part}`);
  tab.addEventListener("click", () => show(part));
  tab.addEventListener("keydown", onKey);
}
window.addEventListener("hashchange", () => {
  if (location.hash.startsWith("#token=")) location.reload(); // A new address in the same tab.
  else if (parts.includes(named())) show(named());
});
show(parts.includes(named()) ? named() : "now");
listen();
