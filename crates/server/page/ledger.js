// How tools were used: in one transcript, or over any selection.

import { at, get } from "./api.js";
import { onAdvance } from "./live.js";
import { size } from "./text.js";
import { count, duration, el, empty, failed, grouped, heading, link, num, press, section, str, titleOf, to, visible } from "./parts.js";
import { transcriptHead } from "./transcript.js";

/** The filters of a selection, by the names that the API has for them. */
export const FILTERS = ["agent", "project", "model", "branch", "title", "since", "until"];
const LABELS = { agent: "Agent", project: "Project", model: "Model", branch: "Branch", title: "Title", since: "Since", until: "Until" };
const HINTS = { agent: "any", project: "any", model: "any", since: "always", until: "now" };

/** The filters that an address has. */
export function filtersOf(query) {
  return Object.fromEntries(FILTERS.map((name) => [name, (query.get(name) ?? "").trim()]).filter(([, value]) => value));
}

/** A row of filters; the address has what they are set to. */
export function filterBar(path, query, go, suggestions = {}) {
  const now = filtersOf(query);
  const form = el("form", "ledger-filters");
  form.setAttribute("aria-label", "Which sessions");
  const fields = FILTERS.filter((name) => ["agent", "project", "model", "since", "until"].includes(name) || now[name]).map((name) => {
    const field = el("input", "words");
    Object.assign(field, { id: `filter-${name}`, name, value: now[name] ?? "", placeholder: HINTS[name] ?? "", autocomplete: "off", spellcheck: false });
    field.dataset.uiid = `filter-${name}`;
    const label = el("label", "", LABELS[name]);
    label.htmlFor = field.id;
    const known = name === "since" ? ["1d", "7d", "30d", "90d"] : (suggestions[name] ?? []);
    if (known.length === 0) return el("div", "", label, field);
    const list = el("datalist", "", ...known.slice(0, 200).map((value) => Object.assign(el("option"), { value })));
    list.id = `known-${name}`;
    field.setAttribute("list", list.id);
    return el("div", "", label, field, list);
  });
  const apply = () => {
    const wanted = Object.fromEntries([...new FormData(form)].map(([name, value]) => [name, String(value).trim()]));
    const next = at(path, wanted);
    if (next !== at(path, now) && next !== location.pathname + location.search) go(next);
  };
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    apply();
  });
  form.addEventListener("change", apply);
  const button = el("button", "off-screen", "Apply");
  button.type = "submit";
  button.dataset.uiid = "filter-apply";
  form.append(...fields, button);
  if (Object.keys(now).length > 0) form.append(link(path, "ledger-clear", "filter-clear", "Clear"));
  return form;
}

/**
 * A table that can be sorted by its heads. Columns are `{ name, title?, number?, value(row), cell(row) }`: `value` is what is
 * sorted by, null is last. A column without a `value` cannot be sorted by. `foot` is a row below, `id(row)` its stable name.
 */
export function sortable({ caption, uiid, columns, rows, by = 0, isDown = true, foot = null, className = "" }) {
  let [now, down] = [by, isDown];
  const body = el("tbody");
  const heads = columns.map((column, n) => {
    const cell = el("th", column.number ? "number" : "");
    cell.scope = "col";
    if (column.title) cell.title = column.title;
    if (!column.value) {
      cell.append(column.name);
      return cell;
    }
    cell.append(press(column.name, "ledger-sort", `${uiid}-by-${column.name.toLowerCase().replace(/[^a-z0-9]+/g, "-")}`, () => {
      if (now === n) down = !down;
      else [now, down] = [n, Boolean(column.number)];
      redraw();
    }));
    return cell;
  });
  const order = (one, other) => {
    const [a, b] = [columns[now].value(one), columns[now].value(other)];
    if (a === null || b === null) return (a === null) - (b === null);
    const way = typeof a === "string" ? a.localeCompare(b) : a - b;
    return down ? -way : way;
  };
  const cellsOf = (row, tag = "td") => columns.map((column) => el(tag, column.number ? "number" : "", column.cell(row) ?? ""));
  const redraw = () => {
    heads.forEach((cell, n) => (n === now ? cell.setAttribute("aria-sort", down ? "descending" : "ascending") : cell.removeAttribute("aria-sort")));
    const sorted = columns[now]?.value ? [...rows].sort(order) : rows;
    body.replaceChildren(...sorted.map((row) => el("tr", "", ...cellsOf(row))));
  };
  redraw();
  const node = el("table", `figures ${className}`, el("caption", "off-screen", caption), el("thead", "", el("tr", "", ...heads)), body);
  if (foot) node.append(el("tfoot", "", el("tr", "", ...cellsOf(foot))));
  const box = el("div", "scroll", node);
  box.tabIndex = 0;
  box.setAttribute("role", "region");
  box.setAttribute("aria-label", caption);
  return box;
}

/** Puts a row below that of a button, or takes it away again. `fill(cell)` draws it. */
export function unfold(button, fill) {
  const row = button.closest("tr");
  const isOpen = button.getAttribute("aria-expanded") === "true";
  button.setAttribute("aria-expanded", String(!isOpen));
  const next = row.nextElementSibling;
  if (isOpen) {
    if (next?.classList.contains("ledger-below")) next.remove();
    return;
  }
  for (const other of row.querySelectorAll('[aria-expanded="true"]')) if (other !== button) other.setAttribute("aria-expanded", "false");
  if (next?.classList.contains("ledger-below")) next.remove();
  const cell = el("td");
  cell.colSpan = row.cells.length;
  row.after(el("tr", "ledger-below", cell));
  fill(cell);
}

const unknown = (words = "unknown") => el("span", "unknown", words);
const figure = (value) => (num(value) === null ? unknown("–") : value === 0 ? el("span", "ledger-none", "0") : grouped.format(value));
const bytes = (value) => (num(value) === null ? unknown("–") : size(value));
const ms = (value) => (num(value) === null ? unknown("–") : value === 0 ? "<1 ms" : duration(value));
const eventLink = (it, uiid, words) => (it?.transcript ? link(to(it.transcript, "", it.seq), "", uiid, words) : words);

/** The table of tools. `one` is the id of the transcript, null over many. */
function toolTable(ledger, one, callsOf) {
  const most = Math.max(1, ...ledger.tools.map((row) => row.calls));
  const isFull = ledger.from_events;
  const name = (row) => (row.tool === null ? "All tools" : visible(row.tool) || "not named");
  const time = (key) => (row) => num(row.time?.[key]);
  const columns = [
    {
      name: "Tool", value: (row) => name(row).toLowerCase(), cell: (row) => {
        const bar = el("span", "ledger-bar");
        if (row.tool !== null) {
          bar.style.setProperty("--wide", `${((row.calls / most) * 100).toFixed(2)}%`);
          bar.style.setProperty("--bad-share", `${((row.failures / Math.max(1, row.calls)) * 100).toFixed(2)}%`);
        } else bar.hidden = true;
        return el("span", "ledger-tool", one || row.tool === null ? name(row) : link(at("/search", { q: `tool:${/^[\w.-]+$/.test(row.tool) ? row.tool : JSON.stringify(row.tool)}` }), "quiet-link", `tool-${row.tool}`, name(row)), bar);
      },
    },
    {
      name: "Calls", number: true, value: (row) => row.calls, cell: (row) => {
        if (!callsOf || row.tool === null) return figure(row.calls);
        const button = press(grouped.format(row.calls), "ledger-more", `calls-${row.tool}`, () => unfold(button, (cell) => callsOf(row, cell)));
        button.setAttribute("aria-expanded", "false");
        button.setAttribute("aria-label", `${count(row.calls, "call")} of ${name(row)}: show them`);
        return button;
      },
    },
    { name: "Failed", number: true, title: "Calls that failed, those that took too long included", value: (row) => row.failures, cell: (row) => (row.failures > 0 ? el("span", "ledger-bad", grouped.format(row.failures)) : figure(row.failures)) },
  ];
  if (isFull) {
    columns.push(
      { name: "Denied", number: true, title: "Calls that were not allowed", value: (row) => num(row.denials), cell: (row) => figure(row.denials) },
      { name: "Time", number: true, title: "How long the calls took of which that is known, all together", value: time("total_ms"), cell: (row) => {
        const node = el("span", "", ms(row.time?.total_ms));
        if (row.untimed > 0) node.title = `of ${count(row.untimed, "call")} nothing says how long`;
        if (row.untimed > 0 && row.time) node.append(el("span", "unknown", " +"));
        return node;
      } },
      { name: "Median", number: true, title: "Half of the calls took no longer", value: time("median_ms"), cell: (row) => ms(row.time?.median_ms) },
      { name: "95 %", number: true, title: "19 of 20 calls took no longer", value: time("p95_ms"), cell: (row) => ms(row.time?.p95_ms) },
      { name: "Slowest", number: true, title: "The slowest call", value: time("slowest_ms"), cell: (row) => (row.time ? eventLink(row.time.slowest, `slowest-${row.tool ?? "all"}`, ms(row.time.slowest_ms)) : unknown("–")) },
      { name: "In", number: true, title: "Bytes of arguments", value: (row) => num(row.bytes_in), cell: (row) => bytes(row.bytes_in) },
      { name: "Out", number: true, title: "Bytes of results", value: (row) => num(row.bytes_out), cell: (row) => bytes(row.bytes_out) },
      { name: "First failures", cell: (row) => (row.tool === null ? "" : el("span", "ledger-links", ...row.first_failures.map((it) => eventLink(it, `failure-${it.transcript}-${it.seq}`, one ? `#${it.seq}` : "✕")))) },
      { name: "Files", number: true, title: one ? "Files that arguments name" : "Files that arguments name; the same path in two sessions counts twice", value: (row) => num(row.files_total), cell: (row) => {
        if (!row.files_total) return figure(row.files_total);
        const button = press(grouped.format(row.files_total), "ledger-more", `files-${row.tool ?? "all"}`, () => unfold(button, (cell) => cell.append(fileList(row, one))));
        button.setAttribute("aria-expanded", "false");
        button.setAttribute("aria-label", `${count(row.files_total, "file")} of ${name(row)}: show them`);
        return button;
      } },
    );
  }
  return sortable({ caption: "Tools", uiid: "tools", columns, rows: ledger.tools, by: 1, foot: ledger.tools.length > 1 ? ledger.total : null, className: "ledger" });
}

function fileList(row, one) {
  const list = el("ul", "ledger-list", ...row.files.map((file) => el("li", "", link(to(file.transcript ?? one, "", file.seq), "quiet-link", `file-${file.transcript ?? one}-${file.seq}`, el("code", "", file.path)), el("span", "small", file.calls > 1 ? ` ${count(file.calls, "call")}` : ""))));
  const rest = row.files_total - row.files.length;
  return el("div", "", list, rest > 0 ? el("p", "small", `… and ${grouped.format(rest)} more`) : "");
}

const strong = (text) => el("strong", "", text);
const MARK = { ok: "", failed: "✕", timeout: "✕", denied: "⊘", open: "…", unknown: "" };

function sums(ledger, begin) {
  const { total } = ledger;
  const words = el("p", "lede", ...begin, strong(count(total.calls, "call")), " of ", strong(count(ledger.tools.length + ledger.other_tools, "tool")), ".");
  if (total.failures > 0) words.append(" ", strong(grouped.format(total.failures)), ` failed (${(total.failures / Math.max(1, total.calls)) < 0.01 ? "under 1" : Math.round((total.failures / total.calls) * 100)}\u00a0%).`);
  else if (total.calls > 0) words.append(" None failed.");
  if (total.denials) words.append(" ", strong(grouped.format(total.denials)), ` ${total.denials === 1 ? "was" : "were"} not allowed.`);
  if (total.dangling) words.append(" ", strong(grouped.format(total.dangling)), ` ${total.dangling === 1 ? "has" : "have"} no result.`);
  if (total.time) words.append(" Together they took ", strong(ms(total.time.total_ms)), ", the ", eventLink(total.time.slowest, "slowest-of-all", "slowest"), " ", strong(ms(total.time.slowest_ms)), ".");
  if (num(total.bytes_out) !== null) words.append(" They took in ", strong(size(total.bytes_in ?? 0)), " and gave back ", strong(size(total.bytes_out)), ".");
  if (total.untimed > 0) words.append(` How long ${count(total.untimed, "call")} took is `, unknown(), ".");
  return words;
}

/** The ledger of one transcript. */
export async function ledgerOfOne({ main, params, signal }) {
  const base = `/api/v1/transcripts/${encodeURIComponent(params.id)}`;
  const [detail, first] = await Promise.all([get(base, {}, signal), get(`${base}/tools`, {}, signal)]);
  const { id } = detail.transcript;
  const holder = el("div");
  let spans = null;
  const callsOf = async (row, cell) => {
    cell.replaceChildren(el("p", "quiet", "Reading…"));
    try {
      spans ??= await toolSpans(base, signal);
      const mine = spans.filter((span) => str(span.name) === row.tool);
      const list = el("ul", "ledger-calls", ...mine.slice(0, 500).map((span) => el("li", MARK[span.status] ? "ledger-bad" : "", link(to(id, "", span.seq_from), "", `call-${span.seq_from}`, `#${span.seq_from}`), ` ${MARK[span.status] ?? ""} `, span.duration_ms === null ? unknown("unknown") : ms(span.duration_ms))));
      cell.replaceChildren(mine.length > 0 ? list : el("p", "quiet", "The log gives these calls no place."));
      if (mine.length > 500) cell.append(el("p", "small", `… and ${grouped.format(mine.length - 500)} more`));
    } catch (error) {
      if (!signal.aborted) cell.replaceChildren(el("p", "nothing", error.message));
    }
  };
  const redraw = (ledger) => {
    if (ledger.total.calls === 0) {
      holder.replaceChildren(empty("No tool was called here."));
      return;
    }
    holder.replaceChildren(sums(ledger, ["This transcript has "]), section("Ledger", toolTable(ledger, id, callsOf)));
    if (ledger.orphans > 0) holder.append(el("p", "small", `${count(ledger.orphans, "result")} without a tool call ${ledger.orphans === 1 ? "is" : "are"} not in it.`));
    if (ledger.other_tools > 0) holder.append(el("p", "small", `${count(ledger.other_tools, "more tool")} ${ledger.other_tools === 1 ? "is" : "are"} not in this list.`));
  };
  document.body.classList.add("view-figures");
  redraw(first);
  main.replaceChildren(transcriptHead(detail, "tools"), holder);
  const again = paced(async () => {
    // What somebody has unfolded stays as it is.
    if (signal.aborted || holder.querySelector(".ledger-below")) return;
    spans = null;
    try {
      redraw(await get(`${base}/tools`, {}, signal));
    } catch {
      // The next change tries again.
    }
  }, 1500);
  onAdvance((change) => (change.transcript === id || change.reload) && again(), signal);
  return { title: `Tools: ${titleOf(detail.transcript)}`, keys: rowKeys(main), help: [["j k", "next, previous row"]] };
}

/** Calls `act` at most once in `ms`, also while calls do not rest: an agent at work writes all the time. */
export function paced(act, ms) {
  let timer = 0;
  return () => {
    timer ||= setTimeout(() => {
      timer = 0;
      act();
    }, ms);
  };
}

/** Says that there is something new, and draws it when it is asked for: nothing moves under the eyes of who reads. */
export function whenGrown(main, signal, isMine, redo) {
  const show = paced(() => {
    if (signal.aborted || main.querySelector(":scope > .pill")) return;
    main.append(press("Something was added. Show it", "pill", "show-added", () => redo().catch((error) => !signal.aborted && main.replaceChildren(failed(error)))));
  }, 1500);
  onAdvance((change) => isMine(change) && show(), signal);
}

/** `j` and `k` go from row to row of the tables of a screen. */
export function rowKeys(main) {
  const step = (by) => {
    const all = [...main.querySelectorAll(".figures tbody tr")].map((row) => row.querySelector("a, button")).filter(Boolean);
    const now = all.findIndex((it) => it.closest("tr").contains(document.activeElement));
    all[now < 0 ? (by > 0 ? 0 : all.length - 1) : Math.max(0, Math.min(all.length - 1, now + by))]?.focus();
  };
  return { j: () => step(1), k: () => step(-1) };
}

async function toolSpans(base, signal) {
  const found = [];
  for (let from = 1; from !== null; ) {
    const page = await get(`${base}/timeline`, { from, limit: 5000 }, signal);
    found.push(...page.spans.filter((span) => span.kind === "tool" || span.kind === "subagent"));
    from = page.next !== null && page.next > from ? page.next : null;
  }
  return found;
}

// As many sessions are read without being asked for, and as many at most.
const SOME = 40;
const MOST = 500;

/** The ledger over a selection. */
export async function ledger(screen, isAgain = false) {
  const { main, query, signal, go } = screen;
  if (!isAgain) whenGrown(main, signal, () => true, () => ledger(screen, true));
  const filters = filtersOf(query);
  const known = get("/api/v1/stats", { by: "agent,model" }, signal).catch(() => null);
  const projects = get("/api/v1/stats", { by: "project" }, signal).catch(() => null);
  let first;
  let refused = null;
  try {
    first = await get("/api/v1/tools", filters, signal);
  } catch (error) {
    if (error.status !== 400) throw error;
    refused = error;
  }
  const names = (stats, name) => [...new Set((stats?.rows ?? []).map((row) => str(row[name])))].filter((it) => it && !it.startsWith("("));
  const [byModel, byProject] = await Promise.all([known, projects]);
  const bar = filterBar("/tools", query, go, { agent: names(byModel, "agent").sort(), model: names(byModel, "model").sort(), project: names(byProject, "project") });
  const holder = el("div");
  document.body.classList.add("view-figures");
  main.replaceChildren(heading("Tools"), bar, holder);
  if (refused) {
    holder.replaceChildren(failed(refused));
    return { title: "Tools" };
  }
  if (first.total.calls === 0) {
    holder.replaceChildren(empty(Object.keys(filters).length > 0 ? "No tool was called in such sessions." : "No tool was called yet. When agents use tools, each has its line here."));
    return { title: "Tools" };
  }
  const lede = el("div");
  const more = el("div", "ledger-read");
  const body = el("div");
  const redraw = (ledger) => {
    lede.replaceChildren(sums(ledger, [strong(count(first.transcripts, "session")), ` used tools${Object.keys(filters).length > 0 ? " within this selection" : ""}: `]));
    body.replaceChildren(section("Ledger", toolTable(ledger, null, null)));
    if (ledger.other_tools > 0) body.append(el("p", "small", `${count(ledger.other_tools, "more tool")} ${ledger.other_tools === 1 ? "is" : "are"} not in this list.`));
    if (first.outdated_logs > 0) body.append(el("p", "small", `${count(first.outdated_logs, "log was", "logs were")} read by an earlier version; figures may be missing. “quipu import --rebuild” reads them again.`));
  };
  holder.append(lede, more, body);
  redraw(first);
  if (!first.from_events) {
    const read = async () => {
      try {
        const whole = await readEvents(filters, first, signal, (words) => more.replaceChildren(el("p", "small", words)));
        redraw(whole);
        more.replaceChildren(el("p", "small", whole.note));
      } catch (error) {
        if (!signal.aborted) more.replaceChildren(failed(error, read));
      }
    };
    const few = first.transcripts <= SOME;
    if (few) read();
    else more.append(el("p", "small", "Times, bytes, denials and the calls themselves are in the events. ", press(`Read them in ${first.transcripts > MOST ? `the latest ${grouped.format(MOST)} of ${count(first.transcripts, "session")}` : `these ${count(first.transcripts, "session")}`}`, "more", "tools-read", read)));
  }
  return { title: "Tools", keys: rowKeys(main), help: [["j k", "next, previous row"]] };
}

/** Reads the ledgers of the sessions of a selection, and adds them up. Medians are those of all calls, so they are taken from the calls. */
async function readEvents(filters, whole, signal, say) {
  const ids = [];
  let isCut = false;
  for (let cursor = ""; ; ) {
    const page = await get("/api/v1/transcripts", { ...filters, limit: 200, cursor }, signal);
    ids.push(...page.transcripts.filter((it) => it.tool_calls > 0).map((it) => it.id));
    if (ids.length >= MOST && page.next) isCut = true;
    if (!page.next || isCut) break;
    cursor = page.next;
  }
  if (ids.length > MOST) isCut = true;
  ids.length = Math.min(ids.length, MOST);
  const sum = new Sum();
  let done = 0;
  let next = 0;
  const worker = async () => {
    while (next < ids.length && !signal.aborted) {
      const id = ids[next];
      next += 1;
      const base = `/api/v1/transcripts/${encodeURIComponent(id)}`;
      const [one, spans] = await Promise.all([get(`${base}/tools`, {}, signal), toolSpans(base, signal)]);
      sum.add(one, spans);
      done += 1;
      say(`Read the events of ${grouped.format(done)} of ${count(ids.length, "session")}…`);
    }
  };
  await Promise.all(Array.from({ length: 4 }, worker));
  const made = sum.ledger(whole);
  const lacks = whole.total.calls - made.total.calls;
  made.note = isCut ? `These are the tools of the latest ${count(ids.length, "session")} of the selection; ${count(Math.max(0, lacks), "call")} of earlier ones ${lacks === 1 ? "is" : "are"} not in it.` : `Read from the events of ${count(ids.length, "session")}.`;
  if (!isCut && made.total.failures !== whole.total.failures) made.note += ` The sums of the catalogue have ${grouped.format(whole.total.failures)} failures.`;
  return made;
}

/** Ledgers added up. */
class Sum {
  constructor() {
    this.rows = new Map();
    this.durations = new Map();
    this.total = fresh(null);
  }

  add(ledger, spans) {
    for (const row of ledger.tools) {
      if (!this.rows.has(row.tool)) this.rows.set(row.tool, fresh(row.tool));
      merge(this.rows.get(row.tool), row, ledger.transcript);
    }
    merge(this.total, ledger.total, ledger.transcript);
    for (const span of spans) {
      if (span.duration_ms === null) continue;
      const name = str(span.name);
      if (!this.durations.has(name)) this.durations.set(name, []);
      this.durations.get(name).push(span.duration_ms);
    }
  }

  ledger(whole) {
    const timed = (row, all) => {
      if (!row.time) return;
      // Only where the calls that were found are those that were counted.
      const isExact = all && all.length === row.time.calls;
      const sorted = isExact ? all.sort((one, other) => one - other) : [];
      const at = (share) => (isExact ? sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] : null);
      Object.assign(row.time, { median_ms: at(0.5), p95_ms: at(0.95) });
    };
    for (const [name, row] of this.rows) timed(row, this.durations.get(name));
    timed(this.total, [...this.durations.values()].flat());
    const tools = [...this.rows.values()].sort((one, other) => other.calls - one.calls);
    return { ...whole, from_events: true, tools, total: this.total, other_tools: 0 };
  }
}

const fresh = (tool) => ({ tool, calls: 0, failures: 0, denials: 0, dangling: 0, untimed: 0, time: null, bytes_in: 0, bytes_out: 0, first_failures: [], files_total: 0, files: [] });

function merge(into, row, transcript) {
  for (const name of ["calls", "failures", "denials", "dangling", "untimed", "bytes_in", "bytes_out", "files_total"]) into[name] += row[name] ?? 0;
  if (into.first_failures.length < 5) into.first_failures.push(...row.first_failures.slice(0, 5 - into.first_failures.length));
  if (into.files.length < 100) into.files.push(...row.files.slice(0, 100 - into.files.length).map((file) => ({ ...file, transcript })));
  if (!row.time) return;
  into.time ??= { calls: 0, total_ms: 0, median_ms: null, p95_ms: null, slowest_ms: -1, slowest: null };
  into.time.calls += row.time.calls;
  into.time.total_ms += row.time.total_ms;
  if (row.time.slowest_ms > into.time.slowest_ms) Object.assign(into.time, { slowest_ms: row.time.slowest_ms, slowest: row.time.slowest });
}
