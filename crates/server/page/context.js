// What filled the window of the model, call by call. Tokens are those that the log states; bytes are bytes of text.

import { get } from "./api.js";
import { draw, named } from "./charts.js";
import { onAdvance } from "./live.js";
import { paced, rowKeys, sortable } from "./ledger.js";
import { size } from "./text.js";
import { chip, count, el, empty, grouped, link, num, section, short, str, table, titleOf, to, visible, when } from "./parts.js";
import { transcriptHead } from "./transcript.js";

const MOST = 100000;
const strong = (text) => el("strong", "", text);
const tokens = (value) => (num(value) === null ? el("span", "unknown", "unknown") : grouped.format(value));
const words = (value) => (num(value) === null ? "unknown" : grouped.format(value));
const limitOf = (turn) => (num(turn?.limit_tokens) ? turn.limit_tokens : null);

/** What tokens of a call are, from the bottom of its column to the top. */
const LAYERS = [
  ["read", "read from the cache", (turn) => num(turn.tokens?.cache_read) ?? 0],
  // What is neither read from the cache nor plain input was written to it.
  ["written", "written to the cache", (turn) => Math.max(0, turn.prompt_tokens - (num(turn.tokens?.cache_read) ?? 0) - (num(turn.tokens?.input) ?? 0))],
  ["input", "not cached", (turn) => num(turn.tokens?.input) ?? 0],
  ["output", "the answer", (turn) => Math.max(0, (turn.window_tokens ?? turn.prompt_tokens) - turn.prompt_tokens)],
];

/** What was added before a call, from the cord down. */
const ADDED = [
  ["person", "people wrote", (added) => added.user_bytes],
  ["tools", "tools gave back", (added) => added.tool_result_bytes],
  ["system", "instructions and texts of programs", (added) => added.system_bytes],
  ["model", "the model itself: answers, thinking, tool calls", (added) => added.assistant_bytes + added.thinking_bytes + added.tool_call_bytes],
  ["files", "attached files", (added) => added.attachment_bytes],
];
const addedBytes = (added) => ADDED.reduce((sum, [, , of]) => sum + (of(added) ?? 0), 0);

/** What there is most of in what was added. */
function mostly(added) {
  const parts = [
    ["people", added.user_bytes], ["answers", added.assistant_bytes], ["thinking", added.thinking_bytes], ["tool calls", added.tool_call_bytes], ["instructions", added.system_bytes], ["attachments", added.attachment_bytes],
    ...added.tool_results.map((it) => [`${visible(it.tool) || "a tool"}${it.results > 1 ? ` ×${it.results}` : ""}`, it.bytes]),
  ].filter(([, bytes]) => bytes > 0).sort((one, other) => other[1] - one[1]);
  return parts.slice(0, 3).map(([name, bytes]) => `${name} ${size(bytes)}`).join(", ");
}

/** The columns of one window: what filled it above the cord, what came in hanging from it. */
class Columns {
  constructor(id, turns, marks) {
    Object.assign(this, { id, turns, marks, current: turns.length - 1 });
    const known = turns.filter((turn) => num(turn.prompt_tokens) !== null);
    this.fullest = Math.max(1, ...known.map((turn) => turn.window_tokens ?? turn.prompt_tokens));
    const limits = turns.map(limitOf).filter((it) => it !== null);
    this.limit = limits.length > 0 ? Math.max(...limits) : null;
    // A limit that is far away would leave nothing to see.
    this.top = this.limit !== null && this.fullest > this.limit * 0.15 ? Math.max(this.limit, this.fullest) * 1.04 : this.fullest * 1.08;
    this.mostBytes = Math.max(1, ...turns.map((turn) => addedBytes(turn.added)));
    this.isAnyKnown = known.length > 0;
    this.node = el("div", "context-chart");
    this.readout = el("div", "context-readout");
    this.readout.setAttribute("aria-live", "polite");
    this.build();
    this.show(Math.min(turns.length - 1, this.marks[0]?.n ?? turns.reduce((best, turn, n) => ((turn.window_tokens ?? -1) > (turns[best].window_tokens ?? -1) ? n : best), 0)));
  }

  build() {
    const { turns } = this;
    const all = turns.length;
    const thick = all > 240 ? 1 : 0.84;
    const high = 210;
    const low = 96;
    const up = draw("svg", { class: "context-up", viewBox: `0 0 ${all} ${high}`, preserveAspectRatio: "none", height: high });
    const y = (value) => high - (value / this.top) * high;
    const paths = LAYERS.map(() => []);
    const unknown = [];
    turns.forEach((turn, n) => {
      if (num(turn.prompt_tokens) === null) {
        unknown.push(`M${n} ${high - 7}H${n + thick}V${high}H${n}Z`);
        return;
      }
      let sum = 0;
      LAYERS.forEach(([, , of], layer) => {
        const value = of(turn);
        if (value > 0) paths[layer].push(`M${n} ${y(sum).toFixed(2)}V${y(sum + value).toFixed(2)}H${n + thick}V${y(sum).toFixed(2)}Z`);
        sum += value;
      });
    });
    LAYERS.forEach(([name], layer) => up.append(draw("path", { class: `context-${name}`, d: paths[layer].join("") })));
    up.append(draw("path", { class: "context-unknown", d: unknown.join("") }));
    const isInSight = this.limit !== null && this.limit <= this.top;
    if (isInSight) {
      let path = "";
      turns.forEach((turn, n) => {
        const limit = limitOf(turn);
        if (limit !== null) path += `M${n} ${y(limit).toFixed(2)}H${n + 1}`;
      });
      up.append(draw("path", { class: "context-limit", d: path, "vector-effect": "non-scaling-stroke" }));
    }
    const down = draw("svg", { class: "context-down", viewBox: `0 0 ${all} ${low}`, preserveAspectRatio: "none", height: low });
    const strings = ADDED.map(() => []);
    turns.forEach((turn, n) => {
      let sum = 0;
      ADDED.forEach(([, , of], layer) => {
        const value = of(turn.added) ?? 0;
        const [from, to] = [(sum / this.mostBytes) * (low - 6), ((sum + value) / this.mostBytes) * (low - 6)];
        if (value > 0) strings[layer].push(`M${n} ${from.toFixed(2)}V${Math.max(to, from + 0.6).toFixed(2)}H${n + thick}V${from.toFixed(2)}Z`);
        sum += value;
      });
    });
    ADDED.forEach(([name], layer) => down.append(draw("path", { class: `context-${name}`, d: strings[layer].join("") })));
    named(up, `Tokens in the window of ${count(all, "call")}, ${grouped.format(this.fullest)} at most`);
    named(down, `Bytes added before each of ${count(all, "call")}, ${size(this.mostBytes)} at most`);
    this.cursor = el("span", "context-cursor");
    const label = (text, className) => el("span", className, text);
    const upper = el("div", "context-upper", up);
    if (isInSight) {
      const mark = label(`limit ${grouped.format(this.limit)}`, "context-label context-limit-label");
      mark.style.top = `${(y(this.limit) / high) * 100}%`;
      upper.append(mark);
    }
    const peak = label(`${short(this.fullest)} tokens`, "context-label");
    peak.style.top = `${(y(this.fullest) / high) * 100}%`;
    if (!isInSight || this.limit - this.fullest > this.top * 0.1) upper.append(peak);
    if (!this.isAnyKnown) upper.replaceChildren(el("p", "context-none unknown", "The log states no tokens of these calls."));
    const lower = el("div", "context-lower", down, label(`${size(this.mostBytes)} added`, "context-label context-bottom"));
    this.plot = el("div", "context-plot", upper, el("div", "context-cord"), lower, this.cursor);
    for (const mark of this.marks) {
      const node = el("span", `context-mark${mark.isCompaction ? " is-compaction" : ""}`, el("span", "", String(mark.number)));
      node.style.left = `${(mark.n / all) * 100}%`;
      node.title = mark.title;
      this.plot.append(node);
    }
    this.plot.style.maxWidth = `${Math.max(3, all) * 4.5}rem`;
    this.plot.tabIndex = 0;
    this.plot.dataset.uiid = "context-turns";
    this.plot.setAttribute("role", "slider");
    this.plot.setAttribute("aria-label", "Call. Arrow keys go from call to call, Enter opens it.");
    this.plot.setAttribute("aria-valuemin", "1");
    this.plot.setAttribute("aria-valuemax", String(all));
    const find = (event) => {
      const box = this.plot.getBoundingClientRect();
      return Math.max(0, Math.min(all - 1, Math.floor(((event.clientX - box.left) / box.width) * all)));
    };
    this.plot.addEventListener("pointermove", (event) => this.show(find(event)));
    this.plot.addEventListener("pointerdown", (event) => this.show(find(event)));
    this.plot.addEventListener("keydown", (event) => {
      const by = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1, PageDown: Math.ceil(all / 10), PageUp: -Math.ceil(all / 10), Home: -all, End: all }[event.key];
      if (by) this.show(Math.max(0, Math.min(all - 1, this.current + by)));
      else if (event.key === "Enter") this.readout.querySelector("a")?.click();
      else return;
      event.preventDefault();
    });
    const legend = el("p", "context-legend", el("span", "context-legend-name", "In the window, tokens: "), ...LAYERS.map(([name, text]) => el("span", "", el("i", `context-${name}`), text)));
    const second = el("p", "context-legend", el("span", "context-legend-name", "Added before the call, bytes: "), ...ADDED.filter(([, , of]) => turns.some((turn) => of(turn.added) > 0)).map(([name, text]) => el("span", "", el("i", `context-${name}`), text)));
    this.node.append(this.plot, el("p", "axis", el("span", "", "call 1"), el("span", "", `call ${grouped.format(all)}`)), this.readout, this.isAnyKnown ? legend : "", second);
  }

  /** Says what one call had in its window. */
  show(n) {
    this.current = n;
    const turn = this.turns[n];
    this.cursor.style.left = `${((n + 0.42) / this.turns.length) * 100}%`;
    this.plot.setAttribute("aria-valuenow", String(n + 1));
    this.plot.setAttribute("aria-valuetext", `call ${n + 1}, ${num(turn.window_tokens) === null ? "tokens unknown" : `${grouped.format(turn.window_tokens)} tokens`}`);
    const head = el("p", "", link(to(this.id, "", turn.seq_from), "", "context-open", `Call ${grouped.format(n + 1)}`), ` · event ${grouped.format(turn.seq_from)} · `, when(turn.at), turn.model ? ` · ${visible(turn.model)}` : "", turn.path ? ` · ${visible(turn.path)}` : "");
    const lines = [];
    if (num(turn.prompt_tokens) !== null) {
      const parts = LAYERS.slice(0, 3).map(([, text, of]) => [of(turn), text]).filter(([value]) => value > 0).map(([value, text]) => `${grouped.format(value)} ${text}`);
      const line = el("p", "", "Prompt ", strong(grouped.format(turn.prompt_tokens)), ` tokens${parts.length > 0 ? `: ${parts.join(", ")}` : ""}. Answer ${words(turn.tokens?.output)}.`);
      if (num(turn.grown_tokens) !== null) line.append(turn.grown_tokens < 0 ? ` ${grouped.format(-turn.grown_tokens)} fewer than the window before.` : ` ${grouped.format(turn.grown_tokens)} more than the window before.`);
      if (limitOf(turn) !== null && num(turn.window_tokens) !== null) line.append(` ${Math.round((turn.window_tokens / limitOf(turn)) * 100)}\u00a0% of the window.`);
      lines.push(line);
    } else lines.push(el("p", "", "Tokens ", el("span", "unknown", "unknown"), turn.tokens ? ": the log states them apart from an answer, perhaps for several calls." : "."));
    const most = mostly(turn.added);
    lines.push(el("p", "small", most ? `Added ${size(addedBytes(turn.added))}: ${most}` : "Nothing was added that the log has."));
    this.readout.replaceChildren(head, ...lines);
  }
}

/** All that was added, by where it is from. */
function sources(id, turns) {
  const rows = new Map();
  const add = (name, kind, bytes, turn) => {
    if (!bytes) return;
    if (!rows.has(name)) rows.set(name, { name, kind, bytes: 0, turns: 0, most: 0, at: null });
    const row = rows.get(name);
    row.bytes += bytes;
    row.turns += 1;
    if (bytes > row.most) Object.assign(row, { most: bytes, at: turn });
  };
  for (const turn of turns) {
    const { added } = turn;
    add("People", "conversation", added.user_bytes, turn);
    add("Answers of the model", "conversation", added.assistant_bytes, turn);
    add("Thinking", "conversation", added.thinking_bytes, turn);
    add("Tool calls", "conversation", added.tool_call_bytes, turn);
    add("Instructions and texts of programs", "system", added.system_bytes, turn);
    add("Attached files", "files", added.attachment_bytes, turn);
    for (const it of added.tool_results) add(visible(it.tool) || "a tool without a name", "tool output", it.bytes, turn);
    if (added.other_tools > 0) add("Other tools", "tool output", Math.max(0, added.tool_result_bytes - added.tool_results.reduce((sum, it) => sum + it.bytes, 0)), turn);
  }
  const all = [...rows.values()];
  const most = Math.max(1, ...all.map((row) => row.bytes));
  const sum = all.reduce((total, row) => total + row.bytes, 0);
  return sortable({
    caption: "What was added, by where it is from", uiid: "sources", className: "ledger", rows: all, by: 2,
    columns: [
      { name: "From", value: (row) => row.name.toLowerCase(), cell: (row) => {
        const bar = el("span", "ledger-bar");
        bar.style.setProperty("--wide", `${((row.bytes / most) * 100).toFixed(2)}%`);
        bar.style.setProperty("--bad-share", "0%");
        return el("span", "ledger-tool", row.name, bar);
      } },
      { name: "Kind", value: (row) => row.kind, cell: (row) => row.kind },
      { name: "Bytes", number: true, value: (row) => row.bytes, cell: (row) => size(row.bytes) },
      { name: "Share", number: true, value: (row) => row.bytes, cell: (row) => `${row.bytes / sum < 0.01 ? "under 1" : Math.round((row.bytes / sum) * 100)}\u00a0%` },
      { name: "Before calls", number: true, value: (row) => row.turns, cell: (row) => grouped.format(row.turns) },
      { name: "Most at once", number: true, value: (row) => row.most, cell: (row) => link(to(id, "", row.at.seq_from), "", `source-${row.at.turn}`, size(row.most)) },
    ],
  });
}

/** The calls before which the window grew most. */
function growth(id, turns) {
  const rows = [...turns].sort((one, other) => (num(other.grown_tokens) ?? -Infinity) - (num(one.grown_tokens) ?? -Infinity) || addedBytes(other.added) - addedBytes(one.added)).slice(0, 20);
  const isStated = rows.some((turn) => num(turn.grown_tokens) !== null);
  return sortable({
    caption: "Calls by what they added", uiid: "growth", rows, by: isStated ? 1 : 2,
    columns: [
      { name: "Call", value: (turn) => turn.turn, cell: (turn) => link(to(id, "", turn.seq_from), "", `turn-${turn.turn}`, `${grouped.format(turn.turn + 1)}, event ${grouped.format(turn.seq_from)}`) },
      { name: "Grew by tokens", number: true, title: "How much larger the prompt is than the window after the call before it", value: (turn) => num(turn.grown_tokens), cell: (turn) => tokens(turn.grown_tokens) },
      { name: "Bytes added", number: true, value: (turn) => addedBytes(turn.added), cell: (turn) => size(addedBytes(turn.added)) },
      { name: "Mostly", cell: (turn) => el("span", "context-mostly", mostly(turn.added)) },
      { name: "Window after", number: true, value: (turn) => num(turn.window_tokens), cell: (turn) => tokens(turn.window_tokens) },
    ],
  });
}

/** Compactions and resets of a window, where they stand among its calls. */
function marksOf(page, turns, subagent) {
  const all = [
    ...page.compactions.map((it) => ({ ...it, isCompaction: true, seq: it.seq_from, what: "compaction" })),
    ...page.resets.map((it) => ({ ...it, isCompaction: false, what: it.kind === "rewind" ? "went back to an earlier point" : "lost more than half, no event says why" })),
  ].filter((it) => (it.subagent ?? null) === subagent).sort((one, other) => one.seq - other.seq);
  return all.map((it, n) => {
    const next = turns.findIndex((turn) => turn.seq_from > it.seq || (turn.seq_from <= it.seq && turn.seq_to >= it.seq && !it.isCompaction));
    const before = num(it.stated_before_tokens) ?? num(it.before_tokens);
    return { ...it, number: n + 1, n: next < 0 ? turns.length : next, before, title: `${it.what}: ${words(before)} tokens before, ${words(it.after_tokens)} after` };
  });
}

function markTable(id, marks) {
  return table("Tokens before and after each", [{ name: el("span", "off-screen", "Number") }, { name: "What" }, { name: "When" }, { name: "Tokens before", number: true }, { name: "Tokens after", number: true }, { name: "Summary", number: true }], marks.map((mark) => {
    const before = el("span", "", tokens(mark.before));
    if (num(mark.stated_before_tokens) !== null) before.append(el("span", "small", " as the log says"));
    return [String(mark.number), link(to(id, "", mark.seq), "", `mark-${mark.seq}`, mark.what), when(mark.at), before, tokens(mark.after_tokens), mark.isCompaction ? (num(mark.summary_bytes) === null ? el("span", "unknown", "none in the log") : size(mark.summary_bytes)) : ""];
  }));
}

function sentence(page, id, turns) {
  const text = el("p", "lede", strong(count(page.turns_total, "call")), " of models.");
  if (page.fullest) {
    text.append(" The window held ", strong(grouped.format(page.fullest.window_tokens)), " tokens at most, at ", link(to(id, "", page.fullest.seq), "", "context-fullest", `event ${grouped.format(page.fullest.seq)}`));
    const limit = limitOf(page.fullest) ?? limitOf(turns.findLast((turn) => limitOf(turn) !== null));
    if (limit !== null) text.append(`: ${Math.round((page.fullest.window_tokens / limit) * 100)}\u00a0% of the `, strong(grouped.format(limit)), " it can hold.");
    else text.append("; how much it can hold is ", el("span", "unknown", "unknown"), ".");
    const [prompts, cached] = turns.reduce(([all, read], turn) => (num(turn.prompt_tokens) === null ? [all, read] : [all + turn.prompt_tokens, read + (num(turn.tokens?.cache_read) ?? 0)]), [0, 0]);
    if (cached > 0) text.append(" Of all prompts together, ", strong(`${Math.round((cached / prompts) * 100)}\u00a0%`), " was read from the cache.");
  } else text.append(" How full the window was is ", el("span", "unknown", "unknown"), ": the log states no tokens.");
  if (page.compactions_total > 0) text.append(" It was compacted ", strong(page.compactions_total === 1 ? "once" : `${grouped.format(page.compactions_total)} times`), ".");
  if (page.resets_total > 0) text.append(" It lost much of its content ", strong(page.resets_total === 1 ? "once" : `${grouped.format(page.resets_total)} times`), " otherwise.");
  if (page.fullest && page.unstated > 0) text.append(` For ${count(page.unstated, "call")} the log states no tokens.`);
  return text;
}

async function readAll(base, signal) {
  const page = await get(`${base}/context`, { limit: 5000 }, signal);
  for (let { next } = page; next !== null && page.turns.length < MOST; ) {
    const more = await get(`${base}/context`, { from: next, limit: 5000 }, signal);
    page.turns.push(...more.turns);
    next = more.next !== null && more.next > next ? more.next : null;
  }
  return page;
}

/** The screen. */
export async function context({ main, params, signal }) {
  const base = `/api/v1/transcripts/${encodeURIComponent(params.id)}`;
  const [detail, first] = await Promise.all([get(base, {}, signal), readAll(base, signal)]);
  const { id } = detail.transcript;
  const title = `Context: ${titleOf(detail.transcript)}`;
  const holder = el("div");
  let window = null;
  let { events } = first;
  const redraw = (page) => {
    if (page.turns.length === 0) {
      holder.replaceChildren(empty("No model was called here, as far as the log tells."));
      return;
    }
    const windows = [...new Set(page.turns.map((turn) => turn.subagent ?? null))];
    if (!windows.includes(window)) [window] = windows;
    const turns = page.turns.filter((turn) => (turn.subagent ?? null) === window);
    const marks = marksOf(page, turns, window);
    const chart = new Columns(id, turns, marks);
    const pick = windows.length > 1 ? el("div", "chips context-windows", ...windows.slice(0, 60).map((it) => chip(it === null ? "The session itself" : `Sub-agent ${visible(str(it))}`, page.turns.filter((turn) => (turn.subagent ?? null) === it).length, `window-${it ?? "main"}`, it === window, () => {
      window = it;
      redraw(page);
      holder.querySelector(`[data-uiid="window-${CSS.escape(it ?? "main")}"]`)?.focus();
    }))) : "";
    holder.replaceChildren(sentence(page, id, page.turns), pick, section("The window, call by call", chart.node));
    if (marks.length > 0) holder.append(section("Compactions and resets", markTable(id, marks)));
    holder.append(section("Where it came from", sources(id, turns)), section("The calls that added most", growth(id, turns)), el("p", "small context-foot", "Tokens are those that the log states, bytes those of the text in it. Neither is made from the other: what a provider puts into a prompt by itself, such as the descriptions of tools, is in no log."));
    if (page.turns_total > page.turns.length) holder.append(el("p", "small", `These are the first ${grouped.format(page.turns.length)} of ${count(page.turns_total, "call")}.`));
  };
  document.body.classList.add("view-figures");
  redraw(first);
  main.replaceChildren(transcriptHead(detail, "context"), holder);
  const again = paced(async () => {
    try {
      if (signal.aborted) return;
      const page = await readAll(base, signal);
      // Whoever is in it stays where they are.
      if (page.events === events || holder.contains(document.activeElement)) return;
      events = page.events;
      redraw(page);
    } catch {
      // The next change tries again.
    }
  }, 1500);
  onAdvance((change) => (change.transcript === id || change.reload) && again(), signal);
  return { title, keys: rowKeys(main), help: [["j k", "next, previous row"], ["← →", "from call to call, when the chart has the focus"]] };
}
