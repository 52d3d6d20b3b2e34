// Runs of workflows: which there are, and one of them as a cord with its steps hanging from it, while it goes on.

import { firstRaw, list, num, obj, str } from "./text.js";
import { at, get, getAsWriter, send, whoAmI } from "./api.js";
import { bundle, draw } from "./charts.js";
import { onAdvance, settled } from "./live.js";
import { chip, count, dollars, duration, el, empty, facts, grouped, heading, link, press, section, short, table, titleOf, to, visible, when } from "./parts.js";

const STATUS = {
  running: ["●", "runs"],
  paused: ["◆", "waits for an approval"],
  succeeded: ["✓", "succeeded"],
  failed: ["✕", "failed"],
  cancelled: ["⊘", "cancelled"],
  lost: ["?", "was lost"],
};
const OVER = new Set(["succeeded", "failed", "cancelled", "lost"]);

const runAddress = (id) => `/runs/${encodeURIComponent(id)}`;
const nameOf = (text) => visible(str(text)) || "a workflow without a name";
const span = (from, end) => {
  const ms = new Date(str(end)) - new Date(str(from));
  return Number.isNaN(ms) ? null : Math.max(0, ms);
};

function statusNode(status) {
  const [mark, words] = STATUS[status] ?? ["", visible(str(status))];
  return el("span", `runs-status is-${status}`, `${mark} `, words);
}

/* The list */

/** The screen of all runs. */
export async function runs({ main, query, signal, go }) {
  const status = Object.hasOwn(STATUS, query.get("status") ?? "") ? query.get("status") : "";
  const [first, workflows, recorded, me] = await Promise.all([
    get("/api/v1/executions", { status, limit: 50 }, signal),
    get("/api/v1/workflows", {}, signal).catch(() => []),
    get("/api/v1/transcripts", { agent: "quipu", limit: 200 }, signal).catch(() => ({ transcripts: [] })),
    whoAmI(),
  ]);
  let { items, next } = first;
  const body = el("div", "");
  const lede = el("p", "lede");
  const begin = press("Start a run…", "plain", "start-run", () => startDialog(workflows, go));
  const says = me.write && workflows.length > 0 ? el("p", "actions", begin) : el("p", "small", me.write ? "Runs can be started here once there are workflows: files in .quipu/workflows below the directory that the server works in." : "Whoever may only read cannot start runs.");
  const filters = el("div", "chips runs-chips");
  for (const [name, label] of [["", "all"], ["running", "running"], ["paused", "waiting"], ["succeeded", "succeeded"], ["failed", "failed"], ["cancelled", "cancelled"], ["lost", "lost"]]) filters.append(chip(label, null, `status-${name || "all"}`, name === status, () => go(at("/runs", { status: name }))));
  const drawAll = () => {
    const strong = (n) => el("strong", "", grouped.format(n));
    const of = (name) => items.filter((it) => it.status === name).length;
    // Runs of other programs have transcripts, and no workflow to steer.
    const known = new Set(items.map((it) => it.id));
    const others = status ? [] : recorded.transcripts.filter((it) => !known.has(it.run_id) && !it.received_from);
    const waits = of("paused");
    const tells = [of("running") === 0 ? "No run goes on" : strong(of("running")), of("running") === 0 ? "" : of("running") === 1 ? " run goes on" : " runs go on"];
    if (waits > 0) tells.push(", ", strong(waits), waits === 1 ? " waits for an approval" : " wait for an approval");
    if (of("lost") > 0) tells.push(", ", strong(of("lost")), of("lost") === 1 ? " was lost" : " were lost");
    lede.replaceChildren(...tells, next ? ", of the newest." : ".");
    const held = body.contains(document.activeElement) ? str(document.activeElement.dataset.uiid) : "";
    const parts = [];
    const rows = [
      ...items.map((it) => [link(runAddress(it.id), "runs-link", `run-${it.id}`, nameOf(it.workflow)), statusNode(it.status), when(it.started_at), took(it), visible(str(it.started_by))]),
      ...others.map((it) => [link(runAddress(it.run_id), "runs-link", `run-${it.run_id}`, titleOf(it)), el("span", "runs-status", "recorded"), when(it.started_at), took({ ...it, status: "" }), el("span", "unknown", "unknown")]),
    ];
    const cords = cordsOf(items, others).filter((cord) => cord.knots.length > 1);
    if (rows.length > 0) parts.push(section("Runs", table("Runs, the newest first", [{ name: "Run" }, { name: "Status" }, { name: "Started" }, { name: "Took", number: true }, { name: "By" }], rows)));
    else parts.push(empty(status ? "No run has this status." : "No workflow has run yet.", el("p", "small", "quipu run WORKFLOW starts one; so does this page where workflows are.")));
    if (cords.length > 0) parts.push(section("What runs often", bundle("Workflows that ran more than once: a knot for each run, in their order; longer strings took longer", cords)));
    if (next) parts.splice(1, 0, press("Show more", "plain find-more", "more", async (event) => {
      event.target.disabled = true;
      const page = await get("/api/v1/executions", { status, limit: 50, cursor: next }, signal);
      items = items.concat(page.items);
      next = page.next;
      drawAll();
    }));
    body.replaceChildren(...parts);
    if (held) body.querySelector(`[data-uiid="${CSS.escape(held)}"]`)?.focus({ preventScroll: true });
  };
  const again = settled(async () => {
    if (signal.aborted) return;
    try {
      const page = await get("/api/v1/executions", { status, limit: Math.min(200, Math.max(50, items.length)) }, signal);
      items = page.items;
      next = page.next;
      drawAll();
    } catch {
      // The next change tries again.
    }
  }, 500);
  onAdvance(again, signal);
  drawAll();
  main.replaceChildren(heading("Runs", lede, says), filters, body);
  const step = (by) => {
    const nodes = [...body.querySelectorAll(".runs-link")];
    const now = nodes.indexOf(document.activeElement);
    nodes[Math.max(0, Math.min(nodes.length - 1, now + by))]?.focus();
  };
  return { title: "Runs", keys: { j: () => step(1), k: () => step(-1), s: () => begin.isConnected && startDialog(workflows, go) }, help: [["j k", "next, previous run"], ["Enter", "open it"], ["s", "start a run"]] };
}

function took(it) {
  if (it.status === "running") return el("span", "runs-status is-running", "still runs");
  const ms = span(it.started_at, it.ended_at);
  return ms === null ? el("span", "unknown", "unknown") : duration(ms);
}

/** A cord for each workflow; its knots are its runs. */
function cordsOf(items, others) {
  const all = [...items.map((it) => ({ ...it, name: nameOf(it.workflow), ms: span(it.started_at, it.ended_at) })), ...others.map((it) => ({ id: it.run_id, name: titleOf(it), status: it.failures > 0 ? "failed" : "recorded", started_at: it.started_at, ms: span(it.started_at, it.ended_at) }))].reverse();
  const most = Math.max(1, ...all.map((it) => Math.log1p(it.ms ?? 0)));
  const byName = Map.groupBy(all, (it) => it.name);
  const longest = Math.max(1, ...[...byName.values()].map((it) => it.length));
  return [...byName].sort(([, a], [, b]) => b.length - a.length).slice(0, 12).map(([name, own]) => ({
    label: name,
    sum: count(own.length, "run"),
    knots: own.slice(-60).map((it, n) => ({
      at: (n + 0.5) / Math.max(8, Math.min(60, longest)),
      size: Math.log1p(it.ms ?? 0) / most,
      isError: it.status === "failed" || it.status === "lost",
      isAccent: it.status === "running" || it.status === "paused",
      title: `${name}: ${STATUS[it.status]?.[1] ?? it.status}${it.ms === null ? "" : `, ${duration(it.ms)}`}`,
      href: runAddress(it.id),
    })),
  }));
}

/* Dialogs */

function labelled(text, field, uiid, about = "") {
  field.id = uiid;
  field.dataset.uiid = uiid;
  const name = el("label", "", text);
  name.htmlFor = uiid;
  return el("div", "runs-field", name, field, about ? el("p", "small", about) : "");
}

function tick(text, uiid, isOn = false) {
  const box = el("input");
  Object.assign(box, { type: "checkbox", checked: isOn });
  box.dataset.uiid = uiid;
  return [box, el("label", "runs-tick", box, ` ${text}`)];
}

/** A form in a dialog. `act` is called when it is sent, and may throw what is shown. */
function dialogOf(title, verb, act, ...parts) {
  const said = el("p", "lock-said");
  said.setAttribute("role", "alert");
  const ok = el("button", "plain", verb);
  ok.type = "submit";
  ok.dataset.uiid = "dialog-ok";
  const dialog = el("dialog", "ask-words runs-dialog");
  const form = el("form", "", el("h2", "", title), ...parts, said, el("div", "dialog-row", press("Cancel", "plain", "dialog-cancel", () => dialog.close()), ok));
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    ok.disabled = true;
    try {
      await act();
      dialog.close();
    } catch (error) {
      said.textContent = visible(`${error.message} ${error.hint ?? ""}`);
    } finally {
      ok.disabled = false;
    }
  });
  dialog.append(form);
  dialog.setAttribute("aria-label", title);
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}

/** Fields for inputs, and what to send of them. */
function inputFields(inputs) {
  const fields = inputs.map((input) => {
    const about = [visible(str(input.description)), input.required ? "It has to be given." : ""].filter(Boolean).join(" ");
    if (input.kind === "boolean") {
      const [box, label] = tick(visible(input.name), `input-${input.name}`, input.default === "true");
      return { input, node: el("div", "runs-field", label, about ? el("p", "small", about) : ""), value: () => (box.checked !== (input.default === "true") || input.required ? box.checked : undefined) };
    }
    const field = el("input", "words");
    Object.assign(field, { type: input.secret ? "password" : input.kind === "integer" ? "number" : "text", required: input.required, autocomplete: "off", spellcheck: false, placeholder: input.default === null || input.secret ? "" : visible(input.default) });
    if (input.kind === "integer") field.step = "1";
    return { input, node: labelled(visible(input.name), field, `input-${input.name}`, about), value: () => (field.value === "" ? undefined : input.kind === "integer" ? Number(field.value) : field.value) };
  });
  return { nodes: fields.map((it) => it.node), values: () => Object.fromEntries(fields.map(({ input, value }) => [input.name, value()]).filter(([, value]) => value !== undefined)) };
}

function startDialog(workflows, go) {
  const pick = el("select", "", ...workflows.map((it) => Object.assign(el("option", "", it.name), { value: it.name })));
  const about = el("div", "");
  about.setAttribute("aria-live", "polite");
  const [stub, stubLabel] = tick("Do not ask agents: they answer with a fixed text", "start-stub");
  const budget = el("input", "words");
  Object.assign(budget, { type: "number", min: "0", step: "any", placeholder: "as the workflow says" });
  let inputs = inputFields([]);
  const look = async () => {
    const name = pick.value;
    about.replaceChildren(el("p", "quiet", "Reading…"));
    try {
      const flow = await get(`/api/v1/workflows/${encodeURIComponent(name)}`);
      if (pick.value !== name) return;
      inputs = inputFields(list(flow.inputs));
      const steps = list(flow.steps).filter((step) => step.kind !== "terminal");
      const findings = list(flow.findings).map((it) => el("li", it.severity === "error" ? "runs-finding is-error" : "runs-finding", `${it.line ? `line ${it.line}: ` : ""}${it.message}`));
      about.replaceChildren(flow.description ? el("p", "", flow.description) : "", el("p", "small", `${count(steps.length, "step")}: ${steps.slice(0, 12).map((step) => visible(step.name)).join(", ")}${steps.length > 12 ? " …" : ""}`), findings.length > 0 ? el("ul", "", ...findings) : "", ...inputs.nodes);
    } catch (error) {
      about.replaceChildren(el("p", "nothing", error.message));
    }
  };
  pick.addEventListener("change", look);
  dialogOf("Start a run", "Start", async () => {
    const body = { workflow: pick.value, inputs: inputs.values() };
    if (stub.checked) body.stub = true;
    if (budget.value !== "") body.budget_usd = Number(budget.value);
    const { id } = await send("POST", "/api/v1/executions", body);
    go(runAddress(id));
  }, labelled("Workflow", pick, "start-workflow"), about, labelled("It may cost, in dollars", budget, "start-budget"), stubLabel);
  look();
}

/* One run: what is known of it */

/** The ways between steps, as the workflow's text has them. */
function waysOf(flow) {
  const ways = new Map();
  let from = null;
  for (const line of str(flow?.graph).split("\n").slice(1)) {
    const way = /^ {2}[├└]([─┄]) (?:(.*) )?→ (.+)$/u.exec(line);
    if (way && from) ways.get(from).push({ isInner: way[1] === "┄", label: str(way[2]), target: way[3] });
    else {
      from = /^\S+ (.+) \([^()]*\)(?: ← .*)?$/u.exec(line)?.[1] ?? null;
      if (from) ways.set(from, []);
    }
  }
  return ways;
}

/** Sums of dollars are texts, exact to the last digit. */
function sumOf(texts) {
  const digits = Math.max(0, ...texts.map((text) => text.split(".")[1]?.length ?? 0));
  const scaled = (text) => {
    const [whole, part = ""] = text.split(".");
    return BigInt(whole + part.padEnd(digits, "0"));
  };
  if (!texts.every((text) => /^\d+(\.\d+)?$/.test(text))) return null;
  const sum = texts.reduce((all, text) => all + scaled(text), 0n).toString().padStart(digits + 1, "0");
  return digits > 0 ? `${sum.slice(0, -digits)}.${sum.slice(-digits)}` : sum;
}

/** What the steps of a run said when they ended, and what their calls cost. */
async function endingsOf(id, steps, signal) {
  const base = `/api/v1/transcripts/${encodeURIComponent(id)}`;
  const [ended, said, cost] = await Promise.all([
    get(`${base}/events`, { type: "step.completed", fields: "seq,payload,duration_ms", cut: 4000, limit: 1000 }, signal),
    get(`${base}/events`, { type: "message.assistant,model.call", fields: "seq,path", limit: 1000 }, signal),
    get(`${base}/cost`, {}, signal),
  ].map((it) => it.catch(() => null)));
  const results = new Map(list(ended?.events).map((event) => [event.seq, { result: event.payload?.result, ms: num(event.duration_ms) }]));
  const paths = new Map(list(said?.events).map((event) => [event.seq, str(event.path)]));
  const found = new Map();
  for (const step of steps) {
    const { result, ms } = results.get(step.ended_seq) ?? {};
    const inside = list(cost?.calls).filter((call) => call.seq >= (step.started_seq ?? Infinity) && call.seq <= (step.ended_seq ?? Infinity) && paths.get(call.seq) === step.path);
    const prices = inside.map((call) => call.usd ?? call.told_usd ?? null);
    const own = obj(result);
    const told = str(own?.cost_usd);
    const usd = prices.length > 0 && prices.every((price) => price !== null) ? sumOf(prices) : told && inside.length === 0 ? told : null;
    const tokens = inside.length > 0 ? inside.reduce((sum, call) => sum + (num(call.tokens?.total) ?? 0), 0) : null;
    found.set(step.step, { result, ms, calls: inside.length, usd, tokens });
  }
  return found;
}

/** The id of a run that can be steered, or nothing: other programs record runs as well. Asked for once. */
async function steeredId(id, detail, signal) {
  const names = new Set([id, detail?.transcript.run_id, detail?.transcript.id]);
  for (let cursor = ""; ; ) {
    const page = await get("/api/v1/executions", { limit: 200, cursor }, signal);
    const found = page.items.find((it) => names.has(it.id));
    if (found || !page.next) return found?.id ?? null;
    cursor = page.next;
  }
}

/** Everything that is shown of a run. */
async function read(id, before, signal) {
  const base = `/api/v1/transcripts/${encodeURIComponent(id)}`;
  const quiet = (promise) => promise.catch((error) => {
    if (signal.aborted || ![404, 400].includes(error.status)) throw error;
    return null;
  });
  // A run that has just begun may not be a transcript yet.
  const detail = await quiet(get(base, {}, signal));
  const steered = before ? before.steered : await steeredId(id, detail, signal);
  if (!detail && !steered) await get(base, {}, signal);
  const [execution, tree] = await Promise.all([steered ? getAsWriter(`/api/v1/executions/${encodeURIComponent(steered)}`, {}, signal) : null, detail ? quiet(get(`${base}/tree`, {}, signal)) : null]);
  const forest = list(tree?.run?.runs);
  const endings = await Promise.all(forest.slice(0, 8).map((it) => endingsOf(str(it.run_id), it.steps, signal)));
  return { steered, execution, forest, detail, endings, isWhole: !forest.some((it) => it.steps.some((step) => step.link?.missing)) };
}

/** The steps as nodes: what happened, and what has not happened yet. */
function nodesOf({ execution, forest, endings }, flow, unfolded) {
  const ways = waysOf(flow);
  const kinds = new Map(list(flow?.steps).map((step) => [step.name, step.kind]));
  const isOver = execution ? OVER.has(execution.status) : forest[0] ? forest[0].state !== "open" : true;
  const pending = (name, note, depth) => ({ id: `next/${name}/${depth}`, name, kind: str(kinds.get(name)), state: isOver ? "missed" : "pending", note, children: depth > 4 ? [] : (ways.get(name) ?? []).filter((way) => way.isInner).map((way) => pending(way.target, "", depth + 1)) });
  const seen = new Set();
  const build = (n, depth, prefix) => {
    const run = forest[n];
    if (!run || depth > 6) return [];
    const make = (place) => {
      const step = run.steps[place];
      const isWaiting = n === 0 && execution?.pause?.path === step.path && execution.status === "paused";
      const isAsked = n === 0 && list(execution?.questions).some((it) => it.path === step.path);
      const state = isWaiting || (isAsked && step.state === "open") ? "waits" : step.state === "open" && isOver && n === 0 ? "cut" : step.state;
      const id = `${prefix}${step.path}#${place}`;
      const node = { id, name: step.name, kind: step.kind, state, step, run, n, ending: endings[n]?.get(step.step), note: "", children: step.children.map(make) };
      if (n === 0 && step.parent === null) seen.add(step.name);
      const isIn = new Set(node.children.map((child) => child.name));
      if (n === 0 && step.kind === "parallel" && !isOver) node.children.push(...(ways.get(step.name) ?? []).filter((way) => way.isInner && !isIn.has(way.target)).map((way) => pending(way.target, "", 1)));
      const called = num(step.link?.run);
      if (called !== null) node.children.push(...build(called, depth + 1, `${id}/`));
      return folded(node, unfolded);
    };
    return run.roots.map(make);
  };
  const nodes = build(0, 0, "");
  // What may come: from the beginning along all ways.
  const rest = [];
  const queue = flow ? [[str(flow.initial), ""]] : [];
  const visited = new Set();
  while (queue.length > 0) {
    const [name, note] = queue.shift();
    if (visited.has(name)) continue;
    visited.add(name);
    if (!seen.has(name) && kinds.has(name)) rest.push(pending(name, note, 0));
    for (const way of ways.get(name) ?? []) if (!way.isInner) queue.push([way.target, way.label]);
  }
  return [...nodes, ...rest];
}

const IN_LOOP = 9;

/** Of many passes, the first, the last, and those that matter. */
function folded(node, unfolded) {
  const { children } = node;
  if (children.length <= IN_LOOP || unfolded.has(node.id)) return node;
  const kept = [];
  let left = 0;
  const more = () => {
    if (left > 0) kept.push({ id: `${node.id}/more${kept.length}`, kind: "more", name: `${grouped.format(left)} more`, state: "more", of: node.id, children: [], note: "" });
    left = 0;
  };
  let shown = 0;
  children.forEach((child, n) => {
    const matters = child.state === "failed" || child.state === "open" || child.state === "waits";
    if (n < 3 || n >= children.length - 3 || (matters && shown < 12)) {
      more();
      kept.push(child);
      shown += 1;
    } else left += 1;
  });
  more();
  return { ...node, children: kept };
}

/* One run: how it is drawn */

// A column is at least as wide as this.
const NARROWEST = 165;
const WIDEST = 200;
const ROW = 50;
const TOP = 44;
const INDENT = 15;

/** How wide and high a node is with all that hangs from it. Branches hang side by side while there is room. */
function measured(node, columns, depth = 0) {
  for (const child of node.children) measured(child, columns, depth + 1);
  const wide = node.children.reduce((sum, child) => sum + child.wide, 0);
  const isDeep = node.children.some((child) => child.children.length > 0);
  node.isSplit = (node.kind === "parallel" || isDeep) && node.children.length > 1 && wide <= columns;
  node.wide = node.isSplit ? wide : Math.max(1, ...node.children.map((child) => child.wide));
  const tall = node.children.map((child) => child.tall);
  node.tall = 1 + (node.isSplit ? Math.max(0, ...tall) : tall.reduce((sum, it) => sum + it, 0));
  return node;
}

function knot(state, x, y) {
  if (state === "failed") return draw("g", { class: "runs-knot is-failed" }, draw("rect", { x: x - 6, y: y - 6, width: 12, height: 12, rx: 2 }), draw("path", { d: `M${x - 3} ${y - 3}l6 6m0 -6l-6 6` }));
  if (state === "waits") return draw("rect", { class: "runs-knot is-waits", x: x - 6, y: y - 6, width: 12, height: 12, rx: 1, transform: `rotate(45 ${x} ${y})` });
  if (state === "open") return draw("g", { class: "runs-knot is-open" }, draw("circle", { class: "runs-ring", cx: x, cy: y, r: 10 }), draw("circle", { cx: x, cy: y, r: 6 }));
  if (state === "more") return draw("g", { class: "runs-knot is-more" }, ...[-4, 0, 4].map((by) => draw("circle", { cx: x, cy: y + by, r: 1.5 })));
  return draw("circle", { class: `runs-knot is-${state}`, cx: x, cy: y, r: state === "done" ? 5.5 : 4.5 });
}

const STATES = { done: "done", failed: "failed", open: "runs", waits: "waits for you", cut: "was cut off", pending: "not yet", missed: "not reached", unmarked: "no end is known" };

/** What stands below the name of a step. */
function wordsOf(node, now) {
  if (node.kind === "more") return "show all";
  if (node.state === "pending" || node.state === "missed") return [STATES[node.state], node.note && (node.note === "fails" ? "if that fails" : `if ${visible(node.note)}`)].filter(Boolean).join(", ");
  if (node.state === "open") {
    const since = span(node.step.span.from, now.toISOString());
    return since === null ? "runs" : `runs for ${going(since)}`;
  }
  if (node.state === "waits") return STATES.waits;
  const ms = node.ending?.ms ?? num(node.step.span.millis);
  const cost = node.ending?.usd && Number(node.ending.usd) > 0 ? dollars(node.ending.usd) : node.ending?.tokens ? `${short(node.ending.tokens)} tokens` : "";
  return [node.state === "done" ? "" : STATES[node.state], ms === null ? "" : duration(ms), cost].filter(Boolean).join(" · ") || STATES[node.state];
}

const passOf = (node) => (node.step && node.step.iteration > 0) || /for_each|while|loop/.test(str(node.up?.kind)) ? (node.step?.iteration ?? 0) + 1 : null;

/** The cord and what hangs from it, in as many lines as the width asks for. */
class Cord {
  constructor(choose, unfold) {
    this.node = el("div", "runs-cord");
    this.node.setAttribute("role", "group");
    this.node.setAttribute("aria-label", "The steps of this run");
    Object.assign(this, { choose, unfold, places: new Map(), chosen: "" });
    this.node.addEventListener("keydown", (event) => {
      const by = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] }[event.key];
      if (!by || event.ctrlKey || event.altKey || event.metaKey) return;
      event.preventDefault();
      this.move(...by);
    });
  }

  draw(nodes, width) {
    const held = this.node.contains(document.activeElement) ? str(document.activeElement.dataset.step) : "";
    const columns = Math.max(1, Math.floor(width / NARROWEST));
    this.column = Math.min(WIDEST, Math.floor(width / columns));
    this.places.clear();
    for (const node of nodes) measured(node, columns);
    const lines = [];
    for (const node of nodes) {
      const line = lines.at(-1);
      if (line && line.wide + node.wide <= columns) {
        line.nodes.push(node);
        line.wide += node.wide;
      } else lines.push({ nodes: [node], wide: node.wide });
    }
    this.labels = [];
    this.node.replaceChildren(...lines.map((line, n) => this.line(line, n, lines.length, columns)));
    // One of them is reached by Tab, the others by arrows.
    if (!this.places.has(this.chosen)) this.chosen = [...this.places.values()].find(({ node }) => ["waits", "open", "failed"].includes(node.state))?.node.id ?? nodes[0]?.id ?? "";
    this.mark();
    if (held) this.places.get(held)?.label.focus({ preventScroll: true });
  }

  line({ nodes, wide }, n, lines, columns) {
    const tall = Math.max(...nodes.map((node) => node.tall));
    const [width, height] = [(n < lines - 1 ? columns : wide) * this.column, TOP + tall * ROW - 12];
    const svg = draw("svg", { class: "runs-drawing", width, height, viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" });
    const box = el("div", "runs-line", svg);
    box.style.width = `${width}px`;
    box.style.height = `${height}px`;
    const isGoing = n < lines - 1;
    svg.append(draw("line", { class: "runs-main", x1: n > 0 ? 0 : 6, y1: 8, x2: isGoing ? width : width - this.column + 26, y2: 8 }));
    if (n === 0) svg.append(draw("circle", { class: "runs-end", cx: 7, cy: 8, r: 5 }));
    let column = 0;
    for (const node of nodes) {
      const x = column * this.column + 18;
      const isNext = node.state === "pending" || node.state === "missed";
      svg.append(draw("line", { class: isNext ? "runs-string is-next" : "runs-string", x1: x, y1: 8, x2: x, y2: TOP }));
      this.place(svg, box, node, x, TOP, 0, n, null);
      column += node.wide;
    }
    return box;
  }

  place(svg, box, node, x, y, indent, line, up) {
    node.up = up;
    const label = this.label(node);
    label.style.left = `${x + 12}px`;
    label.style.top = `${y - 17}px`;
    label.style.width = `${this.column - 40 - indent}px`;
    let below = y + ROW;
    const string = (child, path) => svg.append(draw("path", { class: child.state === "pending" || child.state === "missed" ? "runs-string is-next" : "runs-string", d: path }));
    const later = [];
    if (node.isSplit) {
      let left = x;
      for (const child of node.children) {
        string(child, left === x ? `M${x} ${y}V${below}` : `M${x} ${y + 24}H${left - 8}q8 0 8 8V${below}`);
        later.push([child, left, below, indent]);
        left += child.wide * this.column;
      }
    } else {
      for (const child of node.children) {
        string(child, `M${x} ${y}V${below - 12}q0 12 ${INDENT} 12`);
        later.push([child, x + INDENT, below, indent + INDENT]);
        below += child.tall * ROW;
      }
    }
    svg.append(knot(node.state, x, y));
    box.append(label);
    this.places.set(node.id, { node, label, x, y: y + line * 10000 });
    for (const [child, childX, childY, deep] of later) this.place(svg, box, child, childX, childY, deep, line, node);
  }

  label(node) {
    const pass = passOf(node);
    const words = el("span", "runs-words", wordsOf(node, new Date()));
    const label = press("", `runs-step is-${node.state}`, `step-${node.id}`, () => (node.kind === "more" ? this.unfold(node.of) : this.take(node.id)));
    label.append(el("span", "runs-name", node.name.startsWith("__inline_error_") ? "ends with an error" : node.name, pass === null ? "" : el("span", "runs-pass", ` ${pass}`)), words);
    label.dataset.step = node.id;
    label.title = visible(`${node.step?.path ?? node.name} (${node.kind || "step"})`);
    label.setAttribute("aria-label", visible(`${node.name}${pass === null ? "" : `, pass ${pass}`}, ${node.kind}, ${STATES[node.state] ?? ""} ${words.textContent}`));
    if (node.state === "open") this.labels.push([node, words]);
    return label;
  }

  /** Time goes on for what runs. */
  tick() {
    for (const [node, words] of this.labels ?? []) words.textContent = wordsOf(node, new Date());
  }

  take(id) {
    this.chosen = id;
    this.mark();
    this.choose(this.places.get(id)?.node ?? null);
  }

  mark() {
    for (const [id, { label }] of this.places) {
      label.tabIndex = id === this.chosen ? 0 : -1;
      label.setAttribute("aria-pressed", String(id === this.chosen));
    }
  }

  focus(id) {
    const place = this.places.get(id);
    if (!place) return;
    this.take(id);
    place.label.focus();
  }

  step(by) {
    const ids = [...this.places.keys()].filter((id) => this.places.get(id).node.kind !== "more");
    const now = ids.indexOf(this.chosen);
    const isIn = this.node.contains(document.activeElement);
    this.focus(ids[Math.max(0, Math.min(ids.length - 1, isIn ? now + by : Math.max(0, now)))]);
  }

  /** The nearest in a direction. */
  move(dx, dy) {
    const from = this.places.get(document.activeElement.dataset?.step ?? "");
    if (!from) return;
    let best = null;
    for (const place of this.places.values()) {
      const [x, y] = [place.x - from.x, place.y - from.y];
      const along = x * dx + y * dy;
      const aside = Math.abs(x * dy) + Math.abs(y * dx);
      if (along <= 4 || place === from) continue;
      const far = along + aside * 2.5;
      if (!best || far < best.far) best = { far, place };
    }
    if (best?.place.node.kind === "more") best.place.label.focus();
    else if (best) this.focus(best.place.node.id);
  }
}

/** What is known of one step. */
function stepPart(node, runId) {
  if (!node) return [];
  const { step, ending, run } = node;
  const pass = passOf(node);
  const title = el("h3", "runs-step-title", visible(step?.path ?? node.name), pass === null ? "" : el("span", "small", ` pass ${pass}`));
  if (!step) return [title, el("p", "small", `${node.kind ? `A step of the kind ${node.kind}; ` : ""}${STATES[node.state]}.`)];
  const id = str(run.run_id) || runId;
  const isGoing = node.state === "open" || node.state === "waits";
  const ms = ending?.ms ?? num(step.span.millis);
  const result = isGoing ? null : ending?.result;
  const own = obj(result);
  const output = typeof result === "string" ? result : str(own?.output);
  const unknown = (text = "unknown") => el("span", "unknown", text);
  const parts = [title, facts(
    ["Kind", visible(step.kind)],
    ["Status", el("span", node.state === "failed" ? "mark bad" : "", STATES[node.state])],
    ["Began", when(step.span.from)],
    ["Took", isGoing ? "goes on" : ms === null ? unknown() : duration(ms)],
    num(own?.exit_code) !== null && ["Exit code", String(own.exit_code)],
    ending?.calls > 0 && ["Calls of models", grouped.format(ending.calls)],
    (ending?.tokens ?? null) !== null && ["Tokens", short(ending.tokens)],
    (ending?.calls > 0 || ending?.usd) && ["Cost", ending.usd === null ? unknown("no price") : dollars(ending.usd)],
    step.tally.tool_calls > 0 && ["Tool calls", `${grouped.format(step.tally.tool_calls)}${step.tally.tool_failures > 0 ? `, ${step.tally.tool_failures} failed` : ""}`],
  )];
  if (step.error) parts.push(el("p", "runs-error", firstRaw(str(step.error), 2000)));
  if (output.trim()) parts.push(el("p", "label", "It gave back"), el("pre", "code runs-output", output));
  const links = [];
  if (step.started_seq !== null) links.push(link(to(id, "", step.started_seq), "more", "step-events", `Its events, from ${grouped.format(step.started_seq)}`));
  if (step.calls) links.push(link(runAddress(step.calls), "more", "step-called", "The run that it called"));
  if (step.link?.missing) parts.push(el("p", "small", `The run that it called is not here: ${visible(str(step.link.missing))}`));
  if (links.length > 0) parts.push(el("p", "actions", ...links));
  return parts;
}

/** How long something goes on, in whole seconds. */
const going = (ms) => (ms < 60000 ? `${Math.floor(ms / 1000)} s` : duration(ms));

/** How the run is, in a sentence. */
function tellRun(node, { execution, forest, detail }) {
  const strong = (text) => el("strong", "", text);
  const root = forest[0];
  const status = execution?.status ?? { done: "succeeded", failed: "failed", open: "running" }[root?.state] ?? "";
  const from = execution?.started_at ?? root?.span.from ?? detail?.transcript.started_at;
  const end = execution ? execution.ended_at : (root?.span.to ?? detail?.transcript.ended_at);
  const ms = span(from, end);
  const cost = execution?.cost;
  const spent = detail?.spent;
  const parts = [strong(status === "running" ? "It runs" : status === "paused" ? "It waits for an approval" : status === "lost" ? "It was lost: its process died before it could say how it ended" : status ? `It ${STATUS[status]?.[1] ?? status}` : "How it ended is not known")];
  if (OVER.has(status) && ms !== null) parts.push(" after ", strong(duration(ms)));
  parts.push("; started ", when(from), execution?.started_by ? ` by ${visible(execution.started_by)}` : "", ". ");
  const tokens = cost ? cost.tokens : num(spent?.tokens?.total);
  if (execution && OVER.has(status) && spent?.calls === 0 && !tokens) {
    parts.push("No model was asked.");
    node.replaceChildren(...parts);
    return;
  }
  if (tokens) parts.push(strong(short(tokens)), " tokens, ");
  const usd = cost ? cost.dollars : spent?.usd;
  const unpriced = num(cost?.calls_without_price) ?? 0;
  if (usd === null || usd === undefined) parts.push(el("span", "unknown", spent?.calls > 0 ? "no price" : "no cost is known"));
  else parts.push(strong(dollars(usd)), unpriced > 0 ? ` and ${count(unpriced, "call")} without a price` : "");
  parts.push(".");
  node.replaceChildren(...parts);
}

/** What waits for a person, and what can be done. */
function controls({ execution, flow, me, isAgain }) {
  if (!execution) return [];
  const path = `/api/v1/executions/${encodeURIComponent(execution.id)}`;
  if (!me.write) return execution.pause ? [el("aside", "person-note", el("p", "", execution.pause.message), el("p", "small", "Whoever may only read cannot answer."))] : [];
  const said = el("p", "lock-said");
  said.setAttribute("role", "alert");
  const doing = async (button, act) => {
    button.disabled = true;
    said.textContent = "";
    try {
      await act();
      await isAgain();
    } catch (error) {
      said.textContent = visible(`${error.message} ${error.hint ?? ""}`);
    } finally {
      button.disabled = false;
    }
  };
  const secrets = list(flow?.inputs).filter((input) => input.secret && Object.hasOwn(execution.inputs ?? {}, input.name));
  const parts = [];
  if (execution.status === "paused" && execution.pause) {
    const { pause } = execution;
    const fields = inputFields(secrets.map((input) => ({ ...input, required: false, description: "It is a secret and is not kept; give it again." })));
    const box = el("aside", "person-note runs-ask", el("p", "runs-question", pause.message.trim()), el("p", "small", `Step ${visible(pause.path)} asks`, pause.approvers.length > 0 ? `, and ${pause.approvers.map(visible).join(", ")} may answer` : "", "."));
    if (pause.refused) box.append(el("p", "runs-error", pause.refused));
    if (pause.token) {
      const answer = (verb) => (event) => doing(event.target, () => send("POST", `${path}/${verb}`, { token: pause.token, inputs: fields.values() }));
      box.append(...fields.nodes, el("p", "actions", press("Approve", "plain runs-yes", "approve", answer("approve")), press("Deny", "plain", "deny", answer("deny"))));
    } else box.append(el("p", "small", "The server that asked is not the one that runs now. Resume asks again."));
    parts.push(box);
  }
  for (const question of list(execution.questions)) {
    const field = el("textarea", "runs-answer");
    field.setAttribute("aria-label", `Answer to ${visible(question.path)}`);
    field.dataset.uiid = `answer-${question.path}`;
    const sayIt = (text) => (event) => doing(event.target, () => send("POST", `${path}/answer`, { text, step: question.path }));
    const answer = press("Answer", "plain runs-yes", `answer-send-${question.path}`, (event) => (field.value.trim() ? sayIt(field.value)(event) : field.focus()));
    field.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) answer.click();
    });
    parts.push(el("aside", "person-note runs-ask", el("p", "runs-question", question.text.trim()), el("p", "small", `Step ${visible(question.path)} asks since `, when(question.asked_at), "."), field, el("p", "actions", answer, press("End the conversation", "plain", `answer-end-${question.path}`, sayIt("")))));
  }
  const row = el("p", "actions");
  if (["running", "paused", "lost"].includes(execution.status)) {
    let isSure = false;
    const stop = press("Cancel the run", "more", "cancel", (event) => {
      if (!isSure) {
        isSure = true;
        stop.textContent = "Press again to cancel it";
        setTimeout(() => {
          isSure = false;
          stop.textContent = "Cancel the run";
        }, 4000);
        return;
      }
      doing(event.target, () => send("POST", `${path}/cancel?wait=5`, {}));
    });
    row.append(stop);
  }
  if (["failed", "cancelled", "lost", "paused"].includes(execution.status)) row.append(press("Resume…", "more", "resume", () => resumeDialog(execution, flow, secrets, path, isAgain)));
  parts.push(row, said);
  return parts;
}

function resumeDialog(execution, flow, secrets, path, isAgain) {
  const steps = list(flow?.steps).map((step) => step.name);
  const from = el("select", "", Object.assign(el("option", "", "where it stopped"), { value: "" }), ...steps.map((name) => Object.assign(el("option", "", name), { value: name })));
  const fields = inputFields(secrets.map((input) => ({ ...input, required: false, description: "It is a secret and is not kept; give it again." })));
  const [stub, stubLabel] = tick("Do not ask agents: they answer with a fixed text", "resume-stub");
  dialogOf("Resume this run", "Resume", async () => {
    const body = { inputs: fields.values() };
    if (from.value) body.from = from.value;
    if (stub.checked) body.stub = true;
    await send("POST", `${path}/resume`, body);
    await isAgain();
  }, el("p", "small", "Steps that ended answer from the transcript. From a step on, they run again."), labelled("Go on from", from, "resume-from"), ...fields.nodes, stubLabel);
}

/** The workflow of a run, where it is still there. */
async function flowOf(name, signal) {
  if (!name) return null;
  try {
    const all = await get("/api/v1/workflows", {}, signal);
    return all.some((it) => it.name === name) ? await get(`/api/v1/workflows/${encodeURIComponent(name)}`, {}, signal) : null;
  } catch {
    return null;
  }
}

/** The screen of one run. */
export async function run({ main, params, signal }) {
  const { id } = params;
  let state = await read(id, null, signal);
  const me = await whoAmI();
  if (!state.execution && state.forest.length === 0) {
    const { transcript } = state.detail;
    main.replaceChildren(heading(titleOf(transcript)), empty("This is a session, not a run: it has no steps.", el("p", "", link(to(transcript.id), "", "open-session", "Open the session"))));
    return { title: titleOf(transcript) };
  }
  const flow = await flowOf(state.execution?.workflow, signal);
  if (signal.aborted) return {};
  const unfolded = new Set();
  const lede = el("p", "lede");
  lede.setAttribute("role", "status");
  const now = el("p", "runs-now");
  const asks = el("div", "runs-asks");
  const outcome = el("div", "runs-outcome");
  const about = el("div", "runs-about");
  about.setAttribute("aria-live", "polite");
  const choose = (node) => about.replaceChildren(...stepPart(node, id));
  const cord = new Cord(choose, (of) => {
    unfolded.add(of);
    drawCord();
    cord.focus([...cord.places.keys()].find((key) => cord.places.get(key).node.up?.id === of) ?? "");
  });
  const name = nameOf(state.execution?.workflow ?? state.forest[0]?.name ?? state.detail?.transcript.title);
  const views = el("p", "actions");
  const holder = section("Steps", cord.node, about);
  const inputs = el("div", "");
  let shownAsks = null;
  const drawCord = () => {
    const nodes = nodesOf(state, flow, unfolded);
    const width = holder.clientWidth || main.clientWidth || 800;
    cord.draw(nodes, width);
    choose(cord.places.get(cord.chosen)?.node ?? null);
    if (nodes.length === 0) cord.node.replaceChildren(el("p", "nothing", "No step has begun."));
  };
  const drawNow = () => {
    const { execution } = state;
    const steps = list(execution?.steps).filter((step, _, all) => !all.some((other) => other !== step && other.path.startsWith(`${step.path}.`)));
    now.hidden = steps.length === 0;
    if (steps.length === 0) return;
    const words = steps.map((step) => `${visible(step.path)} for ${going(span(step.started_at, new Date().toISOString()) ?? 0)}`);
    const text = `Now: ${words.join(", ")}.`;
    if (now.textContent !== text) now.textContent = text;
  };
  const drawAll = () => {
    const { execution, detail, forest } = state;
    tellRun(lede, state);
    drawNow();
    // What somebody is writing stays.
    const asked = JSON.stringify([execution?.status, execution?.pause, execution?.questions]);
    if (asked !== shownAsks) {
      shownAsks = asked;
      asks.replaceChildren(...controls({ execution, flow, me, isAgain: again }));
    }
    const said = execution?.outcome;
    const error = str(said?.error ?? forest[0]?.error).trim();
    const message = str(said?.message).trim();
    outcome.replaceChildren(error ? el("p", "runs-error", error) : "", message && message !== error ? el("pre", "code runs-output", message) : "", num(said?.exit_code) !== null && said.exit_code !== 0 ? el("p", "small", `Exit code ${said.exit_code}.`) : "");
    const transcript = detail?.transcript.id ?? id;
    views.replaceChildren(...[["", "Transcript"], ["timeline", "Timeline"], ["tools", "Tools"], ["cost", "Cost"]].map(([view, label]) => link(to(transcript, view), "more", `run-${view || "transcript"}`, label)));
    drawCord();
  };
  let isBusy = false;
  let isLate = false;
  const again = async () => {
    if (isBusy) {
      isLate = true;
      return;
    }
    isBusy = true;
    try {
      do {
        isLate = false;
        state = await read(id, state, signal);
        if (signal.aborted) return;
        drawAll();
      } while (isLate);
    } catch {
      // The next change tries again.
    } finally {
      isBusy = false;
    }
  };
  const soon = settled(again, 120);
  const mine = () => new Set([state.detail?.transcript.id, ...list(state.detail?.lineage.children).map((child) => child.id)]);
  onAdvance((change) => {
    if (change.reload || !state.detail || mine().has(change.transcript)) soon();
  }, signal);
  const clock = setInterval(() => {
    cord.tick();
    drawNow();
  }, 1000);
  signal.addEventListener("abort", () => clearInterval(clock));
  let width = innerWidth;
  addEventListener("resize", settled(() => {
    if (signal.aborted || innerWidth === width) return;
    width = innerWidth;
    drawCord();
  }, 100), { signal });
  const { execution } = state;
  const given = Object.entries(execution?.inputs ?? {});
  if (given.length > 0) inputs.append(section("Inputs", facts(...given.map(([key, value]) => [visible(key), firstRaw(str(value), 400) || el("span", "unknown", "empty")]))));
  if (execution?.workflow_file || execution?.root) inputs.append(el("p", "small runs-where", [execution.workflow_file && `Workflow: ${visible(execution.workflow_file)}`, execution.root && `in ${visible(execution.root)}`].filter(Boolean).join(", ")));
  if (!state.execution && state.forest.length > 0) inputs.append(el("p", "small", "This run was recorded by another program. It can be looked at, not steered."));
  if (!state.isWhole) inputs.append(el("p", "small", "Not every run that it called is kept here."));
  main.replaceChildren(el("div", "runs-screen", heading(name, lede, now, views), asks, outcome, holder, inputs));
  drawAll();
  return {
    title: name,
    keys: { j: () => cord.step(1), k: () => cord.step(-1) },
    help: [["j k", "next, previous step"], ["→ ← ↓ ↑", "to the step that hangs there"], ["Ctrl-Enter", "send an answer"]],
  };
}
