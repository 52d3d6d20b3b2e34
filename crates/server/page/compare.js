// Two transcripts side by side, aligned by turns and tools.

import { list, num, obj, plain, str } from "./text.js";
import { entriesOf, noteKind, noteText, statusOf } from "./model.js";
import { givenBack, outputText } from "./output.js";
import { isQuiet } from "./pages.js";
import { inputOf, told } from "./tools.js";
import { fits } from "./palette.js";
import { at, get } from "./api.js";
import { agentName, count, dollars, duration, el, empty, failed, grouped, heading, link, press, projectOf, section, short, table, titleOf, to, visible, when } from "./parts.js";

const PAGE = 1000;
const MOST_EVENTS = 20000;
const CUT = 2000;

/* The alignment: one interface, so that a better one can take its place */

// Gaps with more cells than this are not looked at cell by cell.
const MOST_CELLS = 200000;
const AHEAD = 64;
const DEEPEST = 24;

/**
 * Aligns two lists of items `{ kind, tool, key, body, result }`: gives back pairs `{ left, right, kind, what }` in order, where
 * `kind` is `same`, `changed`, `only-left` or `only-right`, and `what` says of a changed one whether `text` or only the `result` differs.
 * Near-linear: items that are there once on both sides are anchors; what is between them is compared cell by cell while that is little.
 */
export function align(a, b) {
  const matches = [];
  between(a, b, 0, a.length, 0, b.length, 0, matches);
  const pairs = [];
  let [i, j] = [0, 0];
  const upTo = (left, right) => {
    while (i < left) pairs.push({ left: a[i++], right: null, kind: "only-left", what: "" });
    while (j < right) pairs.push({ left: null, right: b[j++], kind: "only-right", what: "" });
  };
  for (const [left, right] of matches) {
    upTo(left, right);
    const what = a[left].body !== b[right].body ? "text" : a[left].result !== b[right].result ? "result" : "";
    pairs.push({ left: a[left], right: b[right], kind: what ? "changed" : "same", what });
    [i, j] = [left + 1, right + 1];
  }
  upTo(a.length, b.length);
  return pairs;
}

/** Appends the matches within two ranges, in order. */
function between(a, b, a0, a1, b0, b1, depth, matches) {
  while (a0 < a1 && b0 < b1 && a[a0].key === b[b0].key) matches.push([a0++, b0++]);
  const tail = [];
  while (a0 < a1 && b0 < b1 && a[a1 - 1].key === b[b1 - 1].key) tail.push([--a1, --b1]);
  if (a0 < a1 && b0 < b1) {
    const anchors = depth < DEEPEST ? anchorsOf(a, b, a0, a1, b0, b1) : [];
    const isSmall = (a1 - a0) * (b1 - b0) <= MOST_CELLS;
    // One anchor far from its place would tear apart what belongs together.
    if (anchors.length > 0 && !(isSmall && anchors.length * 20 < Math.min(a1 - a0, b1 - b0))) {
      let [i, j] = [a0, b0];
      for (const [left, right] of anchors) {
        between(a, b, i, left, j, right, depth + 1, matches);
        matches.push([left, right]);
        [i, j] = [left + 1, right + 1];
      }
      between(a, b, i, a1, j, b1, depth + 1, matches);
    } else if (isSmall) cells(a, b, a0, a1, b0, b1, matches);
    else ahead(a, b, a0, a1, b0, b1, matches);
  }
  for (const match of tail.reverse()) matches.push(match);
}

/** What is there once on both sides, in an order that both have. */
function anchorsOf(a, b, a0, a1, b0, b1) {
  const seen = new Map();
  const of = (key) => seen.get(key) ?? (seen.set(key, { a: -1, b: -1, n: 0, m: 0 }), seen.get(key));
  for (let i = a0; i < a1; i += 1) Object.assign(of(a[i].key), { a: i, n: of(a[i].key).n + 1 });
  for (let j = b0; j < b1; j += 1) Object.assign(of(b[j].key), { b: j, m: of(b[j].key).m + 1 });
  const once = [...seen.values()].filter((it) => it.n === 1 && it.m === 1 && a[it.a].words.size > 0).sort((x, y) => x.a - y.a);
  // The longest part of them that rises on the other side as well.
  const ends = [];
  const before = new Array(once.length);
  once.forEach((it, n) => {
    let [low, high] = [0, ends.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (once[ends[middle]].b < it.b) low = middle + 1;
      else high = middle;
    }
    before[n] = low > 0 ? ends[low - 1] : -1;
    ends[low] = n;
  });
  const found = [];
  for (let n = ends.at(-1) ?? -1; n >= 0; n = before[n]) found.push([once[n].a, once[n].b]);
  return found.reverse();
}

/** How much two items are alike: the same key most; the same kind and tool by the words that they share. */
function alike(x, y) {
  // Where nothing is said, little is the same.
  if (x.key === y.key) return x.words.size === 0 ? 0.5 : 3;
  if (x.kind !== y.kind || x.tool !== y.tool || x.kind === "note") return 0;
  const [few, many] = x.words.size < y.words.size ? [x.words, y.words] : [y.words, x.words];
  let shared = 0;
  for (const word of few) if (many.has(word)) shared += 1;
  const part = many.size === 0 ? 0 : shared / many.size;
  // Turns belong together even where they say something else.
  return part > 0.3 ? 1 + part : x.kind === "user" || x.kind === "assistant" ? 1 : 0;
}

/** The best matches of two short ranges. */
function cells(a, b, a0, a1, b0, b1, matches) {
  const width = b1 - b0 + 1;
  const best = new Float32Array((a1 - a0 + 1) * width);
  const score = new Float32Array((a1 - a0) * (b1 - b0));
  for (let i = a1 - a0 - 1; i >= 0; i -= 1) {
    for (let j = b1 - b0 - 1; j >= 0; j -= 1) {
      const it = alike(a[a0 + i], b[b0 + j]);
      score[i * (width - 1) + j] = it;
      best[i * width + j] = Math.max(best[(i + 1) * width + j], best[i * width + j + 1], it > 0 ? it + best[(i + 1) * width + j + 1] : 0);
    }
  }
  let [i, j] = [0, 0];
  while (i < a1 - a0 && j < b1 - b0) {
    const it = score[i * (width - 1) + j];
    const here = best[i * width + j];
    if (it > 0 && Math.abs(here - it - best[(i + 1) * width + j + 1]) < 1e-3) matches.push([a0 + i++, b0 + j++]);
    else if (best[(i + 1) * width + j] >= best[i * width + j + 1]) i += 1;
    else j += 1;
  }
}

/** The matches of two long ranges, as far as they are near each other. */
function ahead(a, b, a0, a1, b0, b1, matches) {
  let [i, j] = [a0, b0];
  while (i < a1 && j < b1) {
    let found = null;
    for (let by = 0; by < AHEAD && !found; by += 1) {
      if (j + by < b1 && a[i].key === b[j + by].key) found = [i, j + by];
      else if (i + by < a1 && a[i + by].key === b[j].key) found = [i + by, j];
    }
    if (!found && alike(a[i], b[j]) > 0) found = [i, j];
    if (!found) {
      i += 1;
      j += 1;
      continue;
    }
    matches.push(found);
    [i, j] = [found[0] + 1, found[1] + 1];
  }
}

/* Items */

const KINDS = { user: "prompt", assistant: "answer", reasoning: "reasoning", system: "instruction", note: "note" };

const normalised = (text) => text.slice(0, 400).toLowerCase().replace(/\b[0-9a-f]{8,}(?:-[0-9a-f]{4,})*\b/g, "#").replace(/\d+/g, "#").replace(/\s+/g, " ").trim();
const pressed = (text) => text.replace(/\s+/g, " ").trim();
const inWords = (value) => (typeof value === "string" ? value : value === null || value === undefined ? "" : JSON.stringify(value, null, 1));

/** What stands in a row: who, a line, the whole, and by what it is aligned. */
function itemOf(entry, cwd) {
  const { event, result, kind } = entry;
  const tool = obj(event.tool);
  const near = (text) => (cwd ? text.split(`${cwd}/`).join("") : text);
  const name = kind === "tool" ? str(tool?.name) || str(obj(result?.tool)?.name) || "tool" : "";
  const input = kind === "tool" ? inputOf(tool) : null;
  const text = kind === "tool" ? near(typeof input === "string" ? input : inWords(input)) : kind === "note" ? noteText(event) : str(event.text);
  const back = kind === "tool" ? givenBack(obj((result ?? event).tool)) : null;
  const output = kind === "tool" && (result || str(event.type) === "tool_result") ? near(outputText(back) || str(obj((result ?? event).tool)?.error)) : "";
  const line = kind === "tool" ? told(input, cwd) || plain(output).trim().split("\n")[0] : plain(text).trim().split("\n").find((it) => it.trim()) ?? "";
  const status = kind === "tool" ? statusOf(entry) : "";
  const who = kind === "tool" ? name : kind === "note" ? noteKind(event) : KINDS[kind];
  const first = normalised(near(line));
  return {
    kind, tool: name, who, line, text, output, status, isError: entry.isError, seq: entry.seqs[0],
    key: `${kind}\n${kind === "note" ? who : name}\n${first}`, words: new Set(first.split(/[^\p{L}\p{N}_#]+/u).filter(Boolean).slice(0, 24)),
    body: pressed(text), result: `${status}\n${pressed(output)}`,
  };
}

/** The items of a transcript, page by page. */
async function itemsOf(detail, signal) {
  const { id, cwd } = detail.transcript;
  const events = [];
  let total = 0;
  for (let from = 1; events.length < MOST_EVENTS; ) {
    const page = await get(`/api/v1/transcripts/${encodeURIComponent(id)}/events`, { form: "normalized", from, limit: PAGE, cut: CUT }, signal);
    events.push(...page.events);
    total = page.total;
    if (!page.more || page.next <= from) break;
    from = page.next;
  }
  const items = entriesOf(events).filter((entry) => !isQuiet(entry)).map((entry) => itemOf(entry, str(cwd)));
  return { items, isCut: total > events.length };
}

/* Rows, drawn where the screen is */

const OVERSCAN = 12;

/** Rows of which only those near the screen are drawn. */
class Rows {
  constructor(holder, draw, signal) {
    Object.assign(this, { holder, draw, rows: [], open: new Set(), nodes: new Map(), tops: new Float64Array(1), at: -1, tall: new Map() });
    this.isNarrow = matchMedia("(max-width: 44rem)");
    let isAsked = false;
    this.soon = () => {
      if (isAsked) return;
      isAsked = true;
      requestAnimationFrame(() => {
        isAsked = false;
        if (!signal.aborted) this.paint();
      });
    };
    document.addEventListener("scroll", this.soon, { passive: true, signal });
    addEventListener("resize", () => {
      this.tall.clear();
      this.measure();
      this.soon();
    }, { signal });
    addEventListener("beforeprint", () => this.paint(true), { signal });
    addEventListener("afterprint", this.soon, { signal });
  }

  set(rows) {
    this.rows = rows;
    this.open.clear();
    this.tall.clear();
    this.at = -1;
    this.holder.replaceChildren();
    this.nodes.clear();
    this.measure();
    this.paint();
  }

  /** Where each row begins. */
  measure() {
    const line = 2.1 * Number.parseFloat(getComputedStyle(document.documentElement).fontSize);
    this.tops = new Float64Array(this.rows.length + 1);
    this.rows.forEach((row, n) => {
      const lines = this.isNarrow.matches && row.kind === "changed" ? 1.85 : 1;
      this.tops[n + 1] = this.tops[n] + (this.tall.get(n) ?? line * lines);
    });
    this.holder.style.height = `${this.tops.at(-1)}px`;
  }

  indexAt(y) {
    let [low, high] = [0, this.rows.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.tops[middle + 1] <= y) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  paint(isWhole = false) {
    const top = -this.holder.getBoundingClientRect().top;
    const from = isWhole ? 0 : Math.max(0, this.indexAt(top) - OVERSCAN);
    const end = isWhole ? Math.min(this.rows.length, 3000) : Math.min(this.rows.length, this.indexAt(top + innerHeight) + OVERSCAN);
    for (const [n, node] of this.nodes) {
      if ((n >= from && n < end) || node.contains(document.activeElement)) continue;
      node.remove();
      this.nodes.delete(n);
    }
    let isChanged = false;
    for (let n = from; n < end; n += 1) {
      let node = this.nodes.get(n);
      if (!node) {
        node = this.draw(this.rows[n], n, this.open.has(n));
        node.setAttribute("role", "listitem");
        node.setAttribute("aria-setsize", String(this.rows.length));
        node.setAttribute("aria-posinset", String(n + 1));
        this.nodes.set(n, node);
        // In the order of reading.
        let next = n + 1;
        while (next < end && !this.nodes.has(next)) next += 1;
        this.holder.insertBefore(node, this.nodes.get(next) ?? null);
      }
      if (this.open.has(n) && this.tall.get(n) !== node.offsetHeight) {
        this.tall.set(n, node.offsetHeight);
        isChanged = true;
      }
    }
    if (isChanged) this.measure();
    for (const [n, node] of this.nodes) node.style.transform = `translateY(${this.tops[n]}px)`;
  }

  toggle(n) {
    if (this.open.has(n)) this.open.delete(n);
    else this.open.add(n);
    this.tall.delete(n);
    const had = this.nodes.get(n)?.contains(document.activeElement);
    this.nodes.get(n)?.remove();
    this.nodes.delete(n);
    this.measure();
    this.paint();
    if (had) this.nodes.get(n)?.querySelector(".compare-line")?.focus({ preventScroll: true });
  }

  /** Goes to a row, drawn or not. */
  point(n) {
    if (n < 0 || n >= this.rows.length) return;
    this.at = n;
    const top = this.holder.getBoundingClientRect().top + this.tops[n];
    if (top < 120 || top > innerHeight - 80) scrollTo({ top: scrollY + top - innerHeight / 3 });
    this.paint();
    this.nodes.get(n)?.querySelector(".compare-line")?.focus({ preventScroll: true });
  }

  step(by, fits = () => true) {
    const first = this.at < 0 ? (by > 0 ? this.indexAt(Math.max(0, 120 - this.holder.getBoundingClientRect().top)) : -1) : this.at + by;
    for (let n = first; n >= 0 && n < this.rows.length; n += by) if (fits(this.rows[n])) return this.point(n);
  }
}

const WORDS = { same: "the same on both sides", changed: "differs", "only-left": "only on the left", "only-right": "only on the right", gap: "left out" };

function cell(item, side) {
  if (!item) return el("span", `compare-cell is-${side} is-nothing`);
  const ending = item.isError ? el("span", "compare-bad", "✕") : null;
  return el("span", `compare-cell is-${side} kind-${item.kind}`, el("span", "compare-who", visible(item.who)), el("span", "compare-told", visible(item.line).slice(0, 300)), ending);
}

/** The lines of a text of which the other side has no equal are marked. */
function whole(text, other, isMarked) {
  const node = el("pre", "compare-text");
  const lines = text.split("\n");
  if (!isMarked || lines.length > 2000) {
    node.append(el("span", "", text));
    return node;
  }
  const there = new Set(other.split("\n").map(pressed));
  lines.forEach((line, n) => {
    node.append(el("span", pressed(line) && !there.has(pressed(line)) ? "compare-own" : "", line), n < lines.length - 1 ? "\n" : "");
  });
  return node;
}

function inside(pair, ids) {
  const side = (item, other, id) => {
    const box = el("div", "compare-side");
    if (!item) return el("div", "compare-side", el("p", "nothing", "Nothing stands here."));
    box.append(el("p", "small", link(to(id, "", item.seq), "", `open-${id}-${item.seq}`, `event ${grouped.format(item.seq)}`), item.status ? ` · ${item.status}` : ""));
    if (item.text) box.append(whole(item.text, other?.text ?? "", pair.what === "text" && other));
    if (item.output) box.append(el("p", "label", "gave back"), whole(item.output, other?.output ?? "", pair.kind === "changed" && other));
    return box;
  };
  return el("div", "compare-inside", side(pair.left, pair.right, ids[0]), side(pair.right, pair.left, ids[1]));
}

/* The screen */

const lengthOf = ({ transcript }) => {
  const ms = new Date(str(transcript.ended_at)) - new Date(str(transcript.started_at));
  return Number.isNaN(ms) ? null : ms;
};
const tokensIn = ({ spent }) => num(spent?.tokens?.total);

/** What one transcript amounts to, in a sentence. */
function sums(detail, side, address) {
  const { transcript, spent } = detail;
  const strong = (text) => el("strong", "", text);
  const [ms, tokens] = [lengthOf(detail), tokensIn(detail)];
  const bad = (num(transcript.failures) ?? 0) + (num(transcript.errors) ?? 0);
  const usd = spent?.usd;
  const isAsked = spent?.calls !== 0;
  const cost = !isAsked ? ["no model was asked"] : [tokens === null ? el("span", "unknown", "tokens unknown") : strong(short(tokens)), tokens === null ? "" : " tokens", ", ", usd === null || usd === undefined ? el("span", "unknown", "no price") : strong(dollars(usd))];
  const told = el("p", "lede", strong(grouped.format(transcript.events)), " events, ", strong(grouped.format(transcript.tool_calls)), transcript.tool_calls === 1 ? " tool call" : " tool calls", bad > 0 ? `, ${count(bad, "error")}` : "", "; ", ...cost, ", ", ms === null ? el("span", "unknown", "time unknown") : strong(duration(ms)), ".");
  const about = el("p", "small", [agentName(str(transcript.agent)), (transcript.models ?? []).slice(0, 2).map(visible).join(", "), projectOf(transcript)].filter(Boolean).join(" · "), " · ", when(transcript.started_at), " · ", link(address, "", `change-${side}`, "take another"));
  return el("section", `compare-sum is-${side}`, el("h2", "", link(to(transcript.id), "find-title", `open-${side}`, titleOf(transcript))), about, told);
}

/** How two numbers differ, in words. */
function more(left, right, say) {
  if (left === null || right === null) return el("span", "unknown", "unknown");
  if (left === right) return "the same";
  const by = say(Math.abs(right - left));
  return right > left ? `${by} more on the right` : `${by} less on the right`;
}

function tools(a, b) {
  const calls = new Map();
  for (const [items, side] of [[a, 0], [b, 1]]) {
    for (const item of items) {
      if (item.kind !== "tool") continue;
      if (!calls.has(item.tool)) calls.set(item.tool, [0, 0]);
      calls.get(item.tool)[side] += 1;
    }
  }
  const rows = [...calls].sort(([, x], [, y]) => y[0] + y[1] - x[0] - x[1]).slice(0, 12);
  if (rows.length === 0) return null;
  return section("Tools", table("Tool calls on both sides", [{ name: "Tool" }, { name: "Left", number: true }, { name: "Right", number: true }, { name: "Difference" }], rows.map(([name, [left, right]]) => [visible(name), left ? grouped.format(left) : "none", right ? grouped.format(right) : "none", more(left, right, grouped.format.bind(grouped))])));
}

/** Rows without what is the same on both sides, but for how much that is. */
function onlyDifferent(pairs) {
  const rows = [];
  let same = 0;
  const gap = () => {
    if (same > 0) rows.push({ kind: "gap", n: same });
    same = 0;
  };
  for (const pair of pairs) {
    if (pair.kind === "same") same += 1;
    else {
      gap();
      rows.push(pair);
    }
  }
  gap();
  return rows;
}

/** The screen. */
export async function compare({ main, query, signal, go }) {
  const [a, b] = [query.get("a") ?? "", query.get("b") ?? ""];
  if (!a || !b) return picker({ main, a, b, signal, go });
  const details = await Promise.all([a, b].map((id) => get(`/api/v1/transcripts/${encodeURIComponent(id)}`, {}, signal)));
  const ids = details.map((detail) => detail.transcript.id);
  const said = el("p", "lede compare-said", "Reading both…");
  said.setAttribute("role", "status");
  const bar = el("div", "compare-bar");
  const holder = el("div", "compare-rows");
  holder.setAttribute("role", "list");
  holder.setAttribute("aria-label", "Both transcripts, row by row");
  const foot = el("div", "");
  const swap = link(at("/compare", { a: b, b: a }), "more", "swap", "Swap sides");
  const head = heading("Compare", said);
  const both = el("div", "compare-sums", sums(details[0], "left", at("/compare", { b: ids[1] })), sums(details[1], "right", at("/compare", { a: ids[0] })));
  const root = el("div", "compare-screen", head, both, bar, holder, foot);
  const rows = new Rows(holder, (row, n, isOpen) => rowNode(row, n, isOpen), signal);
  let pairs = [];
  let isShort = false;
  const rowNode = (row, n, isOpen) => {
    if (row.kind === "gap") return el("div", "compare-row is-gap", el("span", "compare-line", `${count(row.n, "row")} the same`));
    const line = press("", "compare-line", `row-${row.left?.seq ?? 0}-${row.right?.seq ?? 0}`, () => {
      rows.at = n;
      rows.toggle(n);
    });
    line.addEventListener("focus", () => (rows.at = n));
    line.append(cell(row.left, "left"), el("span", "compare-knot"), cell(row.right, "right"), el("span", "off-screen", WORDS[row.kind]));
    line.setAttribute("aria-expanded", String(isOpen));
    const node = el("div", `compare-row is-${row.kind}`, line);
    if (isOpen) node.append(inside(row, ids));
    return node;
  };
  const only = press("Only differences", "chip-button", "only-differences", () => toggle());
  only.setAttribute("aria-pressed", "false");
  const toggle = () => {
    isShort = !isShort;
    only.setAttribute("aria-pressed", String(isShort));
    rows.set(isShort ? onlyDifferent(pairs) : pairs);
  };
  const isOther = (row) => row.kind !== "same" && row.kind !== "gap";
  const read = async () => {
    const [left, right] = await Promise.all(details.map((detail) => itemsOf(detail, signal)));
    if (signal.aborted) return;
    pairs = align(left.items, right.items);
    const n = (kind) => pairs.filter((pair) => pair.kind === kind).length;
    const first = pairs.findIndex((pair) => pair.kind !== "same");
    const place = pairs[first];
    const strong = (text) => el("strong", "", text);
    const jump = press(first === 0 ? "at the first row" : `after ${count(first, "row")}`, "compare-jump", "first-difference", () => rows.point(isShort ? rows.rows.indexOf(place) : first));
    said.replaceChildren(...(pairs.length === 0 ? ["Neither says anything."] : first < 0 ? ["Both say the same, in ", strong(count(pairs.length, "row")), "."] : [first === 0 ? "They part " : "They go the same way and part ", jump, ": ", differs(place), ". ", strong(count(n("same"), "row")), n("same") === 1 ? " is the same, " : " are the same, ", strong(grouped.format(n("changed"))), n("changed") === 1 ? " differs, " : " differ, ", "only on the left ", n("only-left") === 1 ? "is " : "are ", strong(grouped.format(n("only-left"))), ", only on the right ", strong(grouped.format(n("only-right"))), "."]));
    if (left.isCut || right.isCut) said.append(` Only the first ${grouped.format(MOST_EVENTS)} events of each are compared.`);
    bar.replaceChildren(only, press("Next difference", "more", "next-difference", () => rows.step(1, isOther)), swap);
    rows.set(pairs);
    const ledger = tools(left.items, right.items);
    foot.replaceChildren(section("In figures", table("Both transcripts in figures", [{ name: "What" }, { name: "Left", number: true }, { name: "Right", number: true }, { name: "Difference" }], figures(details))), ...(ledger ? [ledger] : []));
    root.dataset.aligned = String(pairs.length);
  };
  const attempt = () => read().catch((error) => {
    if (signal.aborted) return;
    said.replaceChildren();
    foot.replaceChildren(failed(error, () => {
      foot.replaceChildren();
      attempt();
    }));
  });
  const done = attempt();
  await Promise.race([done, new Promise((ready) => setTimeout(ready, 120))]);
  if (signal.aborted) return {};
  main.replaceChildren(root);
  rows.measure();
  rows.paint();
  return {
    title: "Compare",
    keys: {
      j: () => rows.step(1),
      k: () => rows.step(-1),
      n: () => rows.step(1, isOther),
      N: () => rows.step(-1, isOther),
      d: toggle,
      x: () => go(swap.href),
    },
    help: [["j k", "next, previous row"], ["n N", "next, previous difference"], ["Enter", "unfold the row"], ["d", "only differences"], ["x", "swap sides"]],
  };
}

function differs({ left, right, kind, what }) {
  const name = (item) => `${visible(item.who)} “${visible(item.line).slice(0, 60)}”`;
  if (kind === "only-left") return `${name(left)} is only on the left`;
  if (kind === "only-right") return `${name(right)} is only on the right`;
  if (what === "text" && left.line === right.line) return `${name(left)} goes on differently`;
  return what === "result" ? `${name(left)} gave back something else` : `${name(left)} on the left, ${name(right)} on the right`;
}

function figures([left, right]) {
  const row = (name, of, say) => {
    const [x, y] = [of(left), of(right)];
    const shown = (value) => (value === null || value === undefined ? el("span", "unknown", "unknown") : say(value));
    return [name, shown(x), shown(y), more(x ?? null, y ?? null, say)];
  };
  const usd = ({ spent }) => (spent?.usd === null || spent?.usd === undefined ? null : Number(spent.usd));
  return [
    row("Events", (it) => num(it.transcript.events), grouped.format.bind(grouped)),
    row("Prompts", (it) => num(it.transcript.prompts), grouped.format.bind(grouped)),
    row("Calls of models", (it) => num(it.spent?.calls), grouped.format.bind(grouped)),
    row("Tool calls", (it) => num(it.transcript.tool_calls), grouped.format.bind(grouped)),
    row("Tool calls that failed", (it) => num(it.transcript.failures), grouped.format.bind(grouped)),
    row("Tokens", tokensIn, short),
    row("Dollars", usd, dollars),
    row("Time from first to last", lengthOf, duration),
  ];
}

/** Asks for the transcripts to compare. */
async function picker({ main, a, b, signal, go }) {
  const known = a || b;
  const [page, detail] = await Promise.all([get("/api/v1/transcripts", { limit: 500 }, signal), known ? get(`/api/v1/transcripts/${encodeURIComponent(known)}`, {}, signal) : null]);
  const mine = detail?.transcript;
  const all = page.transcripts.filter((it) => it.id && it.id !== mine?.id);
  // What is of the same project is likely meant.
  if (mine) all.sort((x, y) => Number(projectOf(y) === projectOf(mine)) - Number(projectOf(x) === projectOf(mine)));
  const address = (it) => at("/compare", mine ? (a ? { a: mine.id, b: it.id } : { a: it.id, b: mine.id }) : { a: it.id });
  const field = el("input", "words");
  Object.assign(field, { type: "search", placeholder: "Filter by title, project, agent or model", autocomplete: "off", spellcheck: false });
  field.setAttribute("aria-label", "Filter sessions");
  field.dataset.uiid = "pick-filter";
  const rows = el("ol", "compare-picks");
  const draw = () => {
    const words = field.value.trim();
    const scored = all.map((it, n) => ({ it, n, score: fits(words, [titleOf(it), projectOf(it), agentName(str(it.agent)), str(it.agent), ...list(it.models)].join(" ")) })).filter(({ score }) => score !== null);
    if (words) scored.sort((x, y) => y.score - x.score || x.n - y.n);
    rows.replaceChildren(...scored.slice(0, 60).map(({ it }) => {
      const node = link(address(it), "compare-pick", `pick-${it.id}`, el("span", "compare-pick-title", titleOf(it)), el("span", "small", [agentName(str(it.agent)), projectOf(it), count(it.events, "event")].filter(Boolean).join(" · "), " · ", when(it.started_at)));
      return el("li", "", node);
    }));
    if (scored.length === 0) rows.replaceChildren(el("li", "", empty(all.length === 0 ? "There is no other transcript yet." : "No session fits.")));
  };
  const step = (by) => {
    const nodes = [...rows.querySelectorAll(".compare-pick")];
    const now = nodes.indexOf(document.activeElement);
    if (by < 0 && now <= 0) field.focus();
    else nodes[Math.min(nodes.length - 1, now + by)]?.focus();
  };
  field.addEventListener("input", draw);
  const moves = (event) => {
    if (event.key === "ArrowDown") step(1);
    else if (event.key === "ArrowUp" && event.target !== field) step(-1);
    else if (event.key === "Enter" && event.target === field) rows.querySelector("a") && go(rows.querySelector("a").href);
    else return;
    event.preventDefault();
  };
  field.addEventListener("keydown", moves);
  rows.addEventListener("keydown", moves);
  draw();
  const lede = mine ? el("p", "lede", a ? "On the left: " : "On the right: ", el("strong", "", titleOf(mine)), ". Take the other one.") : el("p", "lede", "Two transcripts side by side: where they part, what each of them did, and what it cost. Take the first.");
  main.replaceChildren(el("div", "compare-picker", heading("Compare", lede), field, rows));
  field.focus({ preventScroll: true });
  return { title: "Compare", keys: { j: () => step(1), k: () => step(-1) }, help: [["j k", "next, previous session"], ["Enter", "take it"]] };
}
