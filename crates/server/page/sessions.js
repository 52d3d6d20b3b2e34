// Sessions: all of them in one list that is filtered while you type. Only the rows on the screen are drawn.

import { Refused, at, get, items, writes } from "./api.js";
import { onAdvance, recently } from "./live.js";
import { agentName, count, dayOf, dollars, duration, el, empty, failed, grouped, heading, link, money, num, press, projectOf, short, str, titleOf, to, tokensOf, visible, when } from "./parts.js";

const SORTS = { newest: "newest", cost: "cost", tokens: "tokens", time: "length" };
const GROUPS = { none: "nothing", day: "day", project: "project" };
const FIRST_PAGE = 200;
const PAGE = 5000;
/** So many chips before the rest is behind a button. */
const FEW_CHIPS = 7;
/** So many rows are drawn above and below the screen. */
const AROUND = 8;
/** So many changed transcripts are asked for one by one; beyond that, all are read again. */
const FEW_CHANGES = 60;
/** So many rows are printed. */
const MOST_PRINTED = 1000;

/** Calls `act` soon, but not more often than every `ms`, however often it is asked for. */
export function paced(act, ms, signal) {
  let timer = 0;
  let last = 0;
  signal?.addEventListener("abort", () => clearTimeout(timer));
  return () => {
    if (timer || signal?.aborted) return;
    timer = setTimeout(() => {
      timer = 0;
      last = Date.now();
      act();
    }, Math.max(40, last + ms - Date.now()));
  };
}

/** What a row of the list has; some of it is worked out by the server, with sub-agents and for many rows at once. */
const FIELDS = "id,run_id,title,agent,cwd,repository,branch,models,started_at,ended_at,usage,tool_calls,failures,errors,copy_of,reconstructed,received_from,spent,did,subagents,labels";

/** What a session and its sub-agents came to, from a row with `spent`, `did` and `subagents`. */
export function figuresOf({ spent, did, subagents }) {
  return { usd: spent?.usd ?? null, hasCalls: Boolean(spent), unpriced: spent ? spent.unpriced_tokens + spent.unpriced_searches : 0, tokens: spent?.tokens ?? null, total: spent?.tokens.total ?? null, tools: did.tool_calls, failures: did.failures, children: subagents };
}

/** What a session cost: exactly, at least, or that nobody knows. */
export function costNode(figures) {
  if (!figures?.hasCalls) return el("span", "unknown", "unknown");
  const node = money(figures.usd);
  if (figures.usd !== null && figures.unpriced > 0) {
    node.append(" + ?");
    node.title = `$${figures.usd}, and ${grouped.format(figures.unpriced)} tokens that have no price`;
  }
  return node;
}

/** How large the knot of a session is, from 0 to 1: a cent is small, a hundred dollars are as large as it gets. */
export const weight = (usd) => (usd === null || usd === undefined ? 0 : Math.min(1, Math.log10(Number(usd) * 100 + 1) / 4));

/** A transcript as the list keeps it. */
class Row {
  constructor(transcript) {
    this.version = 0;
    this.read(transcript);
  }

  read(transcript) {
    const { id, run_id, usage } = transcript;
    const [start, end] = [Date.parse(str(transcript.started_at)), Date.parse(str(transcript.ended_at))];
    Object.assign(this, { id, run_id, usage, title: titleOf(transcript), hasTitle: Boolean(str(transcript.title).trim()), agent: str(transcript.agent), project: projectOf(transcript), where: visible(str(transcript.cwd) || str(transcript.repository)), branch: visible(str(transcript.branch)) });
    this.started = transcript.started_at;
    this.time = Number.isNaN(end) ? start : end;
    this.took = Number.isNaN(end - start) ? null : Math.max(0, end - start);
    this.isCopy = Boolean(transcript.copy_of);
    this.isReconstructed = transcript.reconstructed === true;
    this.from = visible(str(transcript.received_from));
    this.models = (transcript.models ?? []).map(visible).join(", ");
    this.ended = transcript.ended_at ?? transcript.started_at;
    this.day = Number.isNaN(this.time) ? "" : dayOf(new Date(this.time));
    const figures = figuresOf(transcript);
    const parts = [usage?.input, usage?.cache_read, usage?.cache_write, usage?.output].map(num);
    const own = parts.every((part) => part === null) ? null : parts.reduce((sum, part) => sum + (part ?? 0), 0);
    this.figures = figures;
    this.children = figures.children;
    this.tokens = figures.total ?? own;
    this.usd = figures.usd === null ? null : Number(figures.usd);
    this.bad = Math.max(num(transcript.failures) ?? 0, figures.failures) + (num(transcript.errors) ?? 0);
    this.calls = Math.max(num(transcript.tool_calls) ?? 0, figures.tools);
    this.label(transcript.labels);
  }

  label(labels) {
    this.labels = labels;
    // What the filter looks at.
    this.hay = [this.title, this.project, this.branch, this.agent, agentName(this.agent), this.models, labels.join(" "), this.run_id].join(" ").toLowerCase();
    this.version += 1;
  }
}

/** All rows that are known, kept while the page is open: coming back is instant. */
class Archive {
  rows = new Map();
  cursor = undefined;
  changed = new Set();
  isStale = false;
  isFirstOld = false;
  /** Whether pages behind the first were asked for. */
  hasLong = false;
  /** While all is read again: what is still there. */
  seen = null;
  version = 0;
  /** Called whenever something is new. */
  onNews = () => {};
  /** Called whenever a transcript changed that is not read again yet. */
  onChange = null;

  constructor() {
    onAdvance((change) => {
      // The stream mostly opens while the first page is read; only that one may be old then.
      if (change.reload && this.cursor !== null && !this.hasLong) this.isFirstOld = true;
      else if (change.reload) this.isStale = true;
      else if (change.gone) {
        if (this.rows.delete(change.transcript)) this.tell();
      } else if (change.transcript) this.changed.add(change.transcript);
      this.onChange?.();
    });
  }

  tell() {
    this.version += 1;
    this.onNews();
  }

  take(transcript) {
    const known = this.rows.get(transcript.id);
    if (known) known.read(transcript);
    else this.rows.set(transcript.id, new Row(transcript));
    this.seen?.add(transcript.id);
  }

  /** The first page, where nothing is known yet. */
  async begin(signal) {
    if (this.cursor !== undefined) return;
    this.hasLong = false;
    this.cursor = await this.first(signal);
  }

  async first(signal) {
    const page = await get("/api/v1/transcripts", { limit: FIRST_PAGE, fields: FIELDS }, signal);
    page.transcripts.forEach((transcript) => this.take(transcript));
    this.tell();
    return page.next;
  }

  /** The other pages. They are long, so their rows are taken as they arrive. */
  async fill(signal) {
    if (this.isFirstOld) {
      this.isFirstOld = false;
      await this.first(signal);
    }
    while (this.cursor) {
      this.hasLong = true;
      this.cursor = await this.read({ cursor: this.cursor }, signal);
    }
    if (this.seen) {
      for (const id of this.rows.keys()) if (!this.seen.has(id)) this.rows.delete(id);
      this.seen = null;
    }
    this.tell();
    await this.readLabels(signal);
  }

  /** Takes in a page, and says where the next one begins. */
  async read(params, signal) {
    const pages = items("/api/v1/transcripts", { limit: PAGE, fields: FIELDS, ...params }, "transcripts", signal);
    for (;;) {
      const { value, done } = await pages.next();
      this.tell();
      if (done) return value.next;
      for (const transcript of value) this.take(transcript);
    }
  }

  /** Takes in what changed since, one by one or all at once. */
  async refresh(signal) {
    if (this.isStale || this.isFirstOld || this.changed.size > FEW_CHANGES) {
      this.changed.clear();
      Object.assign(this, { isStale: false, isFirstOld: false, cursor: undefined, seen: new Set() });
      await this.begin(signal);
      await this.fill(signal);
      return;
    }
    let ids = [...this.changed];
    this.changed.clear();
    let parts = [];
    // A sub-agent is part of the session that began it, so that is read again.
    for (let depth = 0; ids.length > 0 && depth < 8; depth += 1) {
      const { transcripts } = await get("/api/v1/transcripts", { ids: ids.join(","), fields: `${FIELDS},native,parent,duplicate` }, signal);
      const natives = new Set(transcripts.map((it) => it.native));
      // One whose session is not kept stands for itself.
      for (const it of parts) if (!natives.has(it.parent)) this.take(it);
      parts = transcripts.filter((it) => it.parent && !it.duplicate && !this.rows.has(it.id));
      for (const it of transcripts) if (this.rows.has(it.id) || !(it.parent || it.duplicate)) this.take(it);
      ids = [...new Set(parts.map((it) => it.parent))].slice(0, FEW_CHANGES);
    }
    this.tell();
  }

  /** Reads labels again where some may be new: people put them on other screens. */
  async readLabels(signal) {
    const counts = JSON.stringify([writes(), await get("/api/v1/labels", {}, signal)]);
    const before = this.labelCounts;
    this.labelCounts = counts;
    if (before === undefined || before === counts) return;
    let cursor;
    do {
      const page = await get("/api/v1/transcripts", { limit: PAGE, fields: "id,labels", cursor }, signal);
      for (const { id, labels } of page.transcripts) this.rows.get(id)?.label(labels);
      cursor = page.next;
    } while (cursor);
    this.tell();
  }
}

let kept = null;

/** What the address asks for. */
function wishesOf(query) {
  const one = (name, among) => (Object.hasOwn(among, query.get(name) ?? "") ? query.get(name) : Object.keys(among)[0]);
  return { q: query.get("q") ?? "", text: query.get("text") ?? "", agents: query.getAll("agent"), projects: query.getAll("project"), labels: query.getAll("label"), errors: query.get("errors") === "true", sort: one("sort", SORTS), group: one("group", GROUPS) };
}

function addressOf({ q, text, agents, projects, labels, errors, sort, group }) {
  const query = new URLSearchParams();
  if (q) query.set("q", q);
  if (text) query.set("text", text);
  for (const [name, values] of [["agent", agents], ["project", projects], ["label", labels]]) for (const value of values) query.append(name, value);
  if (errors) query.set("errors", "true");
  if (sort !== "newest") query.set("sort", sort);
  if (group !== "none") query.set("group", group);
  const words = query.toString();
  return words ? `/sessions?${words}` : "/sessions";
}

const isLetter = (char) => char !== undefined && /[\p{L}\p{N}]/u.test(char);
const NEAR = 3;
const NEXT_WORD = 16;

/** Whether the letters of a word follow each other closely from the beginning of a word, or begin the next ones: “flk” and “frt” for “fix flaky retry test”. */
function isLike(word, hay) {
  for (let begin = hay.indexOf(word[0]); begin >= 0; begin = hay.indexOf(word[0], begin + 1)) {
    if (begin > 0 && isLetter(hay[begin - 1])) continue;
    let [place, n] = [begin, 1];
    for (; n < word.length; n += 1) {
      let next = hay.indexOf(word[n], place + 1);
      while (next >= 0 && next - place > NEAR && next - place <= NEXT_WORD && isLetter(hay[next - 1])) next = hay.indexOf(word[n], next + 1);
      if (next < 0 || next - place > NEXT_WORD) break;
      place = next;
    }
    if (n === word.length) return true;
  }
  return false;
}

/** A test for texts in small letters: all words stand in it, or are like something in it. */
export function matcher(text) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  return (hay) => words.every((word) => hay.includes(word) || (word.length > 2 && isLike(word, hay)));
}

const COMPARE = {
  newest: (a, b) => late(b) - late(a),
  cost: (a, b) => (b.usd ?? -1) - (a.usd ?? -1) || late(b) - late(a),
  tokens: (a, b) => (b.tokens ?? -1) - (a.tokens ?? -1) || late(b) - late(a),
  time: (a, b) => (b.took ?? -1) - (a.took ?? -1) || late(b) - late(a),
};
const late = (row) => (row.time !== row.time ? -1 : row.time);

const LONG_DAY = new Intl.DateTimeFormat(undefined, { weekday: "long", day: "numeric", month: "long" });
const LONG_YEAR = new Intl.DateTimeFormat(undefined, { weekday: "long", day: "numeric", month: "long", year: "numeric" });

const CLOCK = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });

/** A day as people say it. */
export function dayWords(day) {
  if (!day) return "Without a time";
  const now = new Date();
  if (day === dayOf(now)) return "Today";
  now.setDate(now.getDate() - 1);
  if (day === dayOf(now)) return "Yesterday";
  const date = new Date(`${day}T12:00:00`);
  return (date.getFullYear() === new Date().getFullYear() ? LONG_DAY : LONG_YEAR).format(date);
}

/** Rows in groups, each behind a row that names it. */
function inGroups(rows, by) {
  if (by === "none") return rows;
  const groups = new Map();
  for (const row of rows) {
    const name = by === "day" ? row.day : row.project;
    const group = groups.get(name);
    if (group) group.rows.push(row);
    else groups.set(name, { isGroup: true, id: `group ${name}`, name, by, rows: [row] });
  }
  const all = [...groups.values()];
  if (by === "day") all.sort((a, b) => (a.name < b.name ? 1 : -1));
  return all.flatMap((group) => [group, ...group.rows]);
}

/** The columns behind the title: name, what it is in words, class, what it is sorted by. */
const COLUMNS = [
  ["Agent", "", "agent"],
  ["Project · branch", "", "project"],
  ["When", "When it last went on", "when", "newest"],
  ["Took", "From its first event to its last", "took", "time"],
  ["Tokens", "Sub-agents included", "tokens", "tokens"],
  ["Cost", "Sub-agents included", "cost", "cost"],
  ["Tools", "Tool calls, sub-agents included", "tools"],
  ["Errors", "Tool calls that failed, and other errors", "errors"],
  ["Sub-agents", "Sub-agents, and runs that it called", "children"],
];

/** The rows on the screen. All have one height, so where each stands is known without drawing it. */
class Rows {
  nodes = new Map();
  items = [];
  height = 40;
  pinned = null;

  constructor(box, draw) {
    Object.assign(this, { box, draw });
  }

  /** How tall a row is, which the style says. */
  measure() {
    const probe = el("div", "sessions-row");
    this.box.append(probe);
    this.height = probe.offsetHeight || 40;
    probe.remove();
    this.box.style.height = `${this.items.length * this.height}px`;
  }

  set(list) {
    this.items = list;
    this.box.style.height = `${list.length * this.height}px`;
    this.paint();
  }

  /** The first row that is not hidden below what sticks to the top, and how far it is from there. */
  anchor(top) {
    const from = top - this.box.getBoundingClientRect().top;
    if (from <= 0) return null;
    const n = Math.min(this.items.length - 1, Math.floor(from / this.height));
    return n < 0 ? null : { item: this.items[n], n };
  }

  /** Scrolls on so that a row that has moved is where it was. */
  hold(anchor) {
    if (!anchor) return;
    const now = this.items.indexOf(anchor.item);
    if (now >= 0 && now !== anchor.n) scrollBy({ top: (now - anchor.n) * this.height, behavior: "instant" });
  }

  paint(all = false) {
    const { items: list, height, nodes, box } = this;
    const top = box.getBoundingClientRect().top;
    const first = all ? 0 : Math.max(0, Math.floor(-top / height) - AROUND);
    const last = all ? Math.min(list.length, MOST_PRINTED) : Math.min(list.length, Math.ceil((innerHeight - top) / height) + AROUND);
    const wanted = new Map();
    for (let n = first; n < last; n += 1) wanted.set(list[n].id, n);
    if (this.pinned !== null && !wanted.has(this.pinned)) {
      const n = list.findIndex((item) => item.id === this.pinned);
      if (n >= 0) wanted.set(this.pinned, n);
    }
    for (const [id, node] of nodes) {
      if (wanted.has(id)) continue;
      node.remove();
      nodes.delete(id);
    }
    for (const [id, n] of wanted) {
      let node = nodes.get(id);
      const stamp = this.draw.stamp(list[n]);
      if (!node || node.stamp !== stamp) {
        const next = this.draw(list[n]);
        next.stamp = stamp;
        const focus = node?.contains(document.activeElement) ? document.activeElement.dataset.uiid : "";
        if (node) node.replaceWith(next);
        else box.append(next);
        if (focus) next.querySelector(`[data-uiid="${CSS.escape(focus)}"]`)?.focus({ preventScroll: true });
        nodes.set(id, next);
        node = next;
      }
      if (node.place === n && node.tall === height) continue;
      Object.assign(node, { place: n, tall: height });
      node.style.transform = `translateY(${n * height}px)`;
      node.setAttribute("aria-rowindex", String(n + 2));
    }
  }

  /** Brings a row onto the screen. */
  reveal(n, above, below) {
    const top = this.box.getBoundingClientRect().top + n * this.height;
    if (top < above) scrollBy({ top: top - above, behavior: "instant" });
    else if (top + this.height > innerHeight - below) scrollBy({ top: top + this.height - innerHeight + below, behavior: "instant" });
  }
}

/** The screen. */
export async function sessions({ main, query, signal, go }) {
  kept ??= new Archive();
  const archive = kept;
  const wishes = wishesOf(query);
  let found = null;
  let selected = [];
  let current = null;
  let sorted = { version: -1, sort: "", rows: [] };
  let isFilling = true;
  let trouble = null;

  await archive.begin(signal);

  const lede = el("p", "lede");
  lede.setAttribute("role", "status");
  const field = el("input", "sessions-filter");
  Object.assign(field, { type: "search", value: wishes.q, placeholder: "Filter by title, project, branch, agent, model", autocomplete: "off", spellcheck: false, maxLength: 400 });
  field.setAttribute("aria-label", "Filter sessions. Enter looks into their text.");
  field.dataset.uiid = "sessions-filter";
  const chips = el("div", "sessions-chips");
  const order = el("div", "sessions-order");
  const head = el("div", "sessions-head");
  head.setAttribute("role", "row");
  head.setAttribute("aria-rowindex", "1");
  const box = el("div", "sessions-rows");
  box.setAttribute("role", "rowgroup");
  const table = el("div", "sessions-table", groupOf(head), box);
  table.setAttribute("role", "table");
  table.setAttribute("aria-label", "Sessions");
  const none = el("div", "sessions-none");
  const choice = el("div", "sessions-choice");
  choice.setAttribute("role", "status");
  const hint = el("p", "small sessions-hint", el("kbd", "", "j"), " ", el("kbd", "", "k"), " move, ", el("kbd", "", "Enter"), " opens, ", el("kbd", "", "x"), " chooses two to compare, ", el("kbd", "", "f"), " filters; ", el("kbd", "", "Enter"), " in the filter looks into the text");
  main.replaceChildren(heading("Sessions", lede), el("div", "sessions-tools-row", field, order), chips, hint, table, none, choice);

  const draw = (item) => (item.isGroup ? groupNode(item) : rowNode(item, wishes, selected.includes(item.id), item.id === current, choose));
  draw.stamp = (item) => (item.isGroup ? `${item.rows.length} ${archive.version} ${wishes.group}` : `${item.version} ${wishes.group} ${selected.includes(item.id)} ${item.id === current} ${today()} ${isRunning(item)}`);
  const rows = new Rows(box, draw);
  rows.measure();

  function visibleRows() {
    if (sorted.version !== archive.version || sorted.sort !== wishes.sort) {
      const list = sorted.sort === wishes.sort && sorted.rows.length <= archive.rows.size ? merged(sorted.rows, archive.rows) : [...archive.rows.values()];
      sorted = { version: archive.version, sort: wishes.sort, rows: list.sort(COMPARE[wishes.sort]) };
    }
    const fits = matcher(wishes.q);
    const [agents, projects, labels] = [new Set(wishes.agents), new Set(wishes.projects), wishes.labels];
    return sorted.rows.filter((row) => (agents.size === 0 || agents.has(row.agent)) && (projects.size === 0 || projects.has(row.project)) && labels.every((label) => row.labels.includes(label)) && (!wishes.errors || row.bad > 0) && (!found?.ids || found.ids.has(row.id)) && (!wishes.q || fits(row.hay)));
  }

  const stickyTop = () => (document.getElementById("bar")?.offsetHeight ?? 0) + head.offsetHeight;

  let chipsAre = "";
  let orderIs = "";

  /** Draws what changed. With `isAsked`, the reader asked for something else; else what is read stays where it is. */
  function update(isAsked = false) {
    if (signal.aborted) return;
    const anchor = isAsked ? null : rows.anchor(stickyTop());
    const list = visibleRows();
    rows.set(inGroups(list, wishes.group));
    if (anchor) {
      rows.hold(anchor);
      rows.paint();
    } else if (isAsked) {
      const top = table.getBoundingClientRect().top;
      const above = document.getElementById("bar")?.offsetHeight ?? 0;
      if (top < above) scrollBy({ top: top - above, behavior: "instant" });
      rows.paint();
    }
    table.setAttribute("aria-rowcount", String(rows.items.length + 1));
    table.hidden = list.length === 0;
    drawLede(list);
    const chipsNow = `${archive.version} ${addressOf({ ...wishes, q: "" })}`;
    if (chipsNow !== chipsAre) {
      chipsAre = chipsNow;
      drawChips();
    }
    const orderNow = `${wishes.sort} ${wishes.group} ${wishes.errors}`;
    if (orderNow !== orderIs) {
      orderIs = orderNow;
      drawOrder();
      drawHead();
      table.dataset.group = wishes.group;
    }
    drawNone(list);
  }

  function drawLede(list) {
    const all = archive.rows.size;
    const said = [];
    const isAll = list.length === all;
    if (all === 0) said.push("There are none yet.");
    else if (list.length === 0) said.push(`None of ${count(all, "session")}.`);
    else {
      const agents = new Set();
      const projects = new Set();
      let [usd, bad] = [0, 0];
      for (const row of list) {
        agents.add(row.agent);
        if (row.project) projects.add(row.project);
        const one = row.usd;
        if (one !== null) usd += one;
        if (row.bad > 0) bad += 1;
      }
      said.push(el("strong", "", isAll ? count(all, "session") : grouped.format(list.length)), isAll ? "" : ` of ${count(all, "session")}`, ` by ${count(agents.size, "agent")}`, projects.size > 0 ? ` in ${count(projects.size, "project")}` : "");
      if (usd > 0) said.push(", ", el("strong", "", dollars(usd)));
      if (bad > 0) said.push(`; ${grouped.format(bad)} had errors`);
      said.push(".");
    }
    if (isFilling && archive.cursor) said.push(` Reading on${archive.total ? ` to ${grouped.format(archive.total)}` : ""}…`);
    if (found?.ids) said.push(" ", el("span", "", `Their text has “${visible(wishes.text)}”${found.more ? ", going by the best 200 hits" : ""}. `, link(at("/search", { q: wishes.text }), "", "sessions-search", "See each hit")));
    if (found?.isAsked) said.push(" Looking into the text…");
    lede.replaceChildren(...said.filter((it) => it !== ""));
  }

  function drawChips() {
    const focus = chips.contains(document.activeElement) ? document.activeElement.dataset.uiid : "";
    const line = (name, label, key, of) => {
      const counts = new Map(wishes[key].map((value) => [value, 0]));
      for (const row of archive.rows.values()) for (const value of of(row)) counts.set(value, (counts.get(value) ?? 0) + 1);
      if (counts.size < 2 && wishes[key].length === 0) return null;
      const all = [...counts].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
      const few = open.has(name) ? all : all.filter(([value], n) => n < FEW_CHIPS || wishes[key].includes(value));
      const row = el("div", "sessions-chip-line");
      row.setAttribute("role", "group");
      row.setAttribute("aria-label", label);
      row.append(el("span", "sessions-chip-name", label));
      for (const [value, n] of few) {
        const node = press("", "sessions-chip", `${name}-${value || "none"}`, () => wish({ [key]: wishes[key].includes(value) ? wishes[key].filter((it) => it !== value) : [...wishes[key], value] }, true));
        node.append(el("span", "", name === "agent" ? agentName(value) : value || "no project"), el("span", "n", grouped.format(n)));
        node.setAttribute("aria-pressed", String(wishes[key].includes(value)));
        row.append(node);
      }
      if (all.length > few.length || open.has(name)) {
        const more = press(open.has(name) ? "fewer" : `${grouped.format(all.length - few.length)} more`, "sessions-more", `${name}-more`, () => {
          if (!open.delete(name)) open.add(name);
          drawChips();
        });
        more.setAttribute("aria-expanded", String(open.has(name)));
        row.append(more);
      }
      return row;
    };
    const text = wishes.text ? el("div", "sessions-chip-line", el("span", "sessions-chip-name", "Text"), press(`“${visible(wishes.text)}” ×`, "sessions-chip is-on", "text-remove", () => wish({ text: "" }, true))) : null;
    if (text) text.querySelector("button").setAttribute("aria-label", `Stop looking for ${visible(wishes.text)} in the text`);
    chips.replaceChildren(...[text, line("agent", "Agent", "agents", (row) => [row.agent]), line("project", "Project", "projects", (row) => [row.project]), line("label", "Label", "labels", (row) => row.labels)].filter(Boolean));
    if (focus) chips.querySelector(`[data-uiid="${CSS.escape(focus)}"]`)?.focus({ preventScroll: true });
  }

  function drawOrder() {
    const focus = order.contains(document.activeElement) ? document.activeElement.dataset.uiid : "";
    const choices = (label, all, now, key) => {
      const node = el("span", `sessions-choices sessions-by-${key}`, el("span", "sessions-chip-name", label));
      node.setAttribute("role", "group");
      node.setAttribute("aria-label", label);
      for (const [value, words] of Object.entries(all)) {
        const button = press(words, "sessions-word", `${key}-${value}`, () => wish({ [key]: value }, true));
        button.setAttribute("aria-pressed", String(value === now));
        node.append(button);
      }
      return node;
    };
    const errors = press("with errors", "sessions-chip", "only-errors", () => wish({ errors: !wishes.errors }, true));
    errors.setAttribute("aria-pressed", String(wishes.errors));
    order.replaceChildren(choices("Group by", GROUPS, wishes.group, "group"), choices("Sort by", SORTS, wishes.sort, "sort"), errors);
    if (focus) order.querySelector(`[data-uiid="${CSS.escape(focus)}"]`)?.focus({ preventScroll: true });
  }

  function drawHead() {
    const cells = [headCell("", "sessions-knot", el("span", "off-screen", "Choose")), headCell("", "sessions-title", "Title")];
    for (const [name, words, key, sort] of COLUMNS) {
      const cell = headCell(words, `sessions-${key}`, sort ? press(name, "sessions-sort", `sort-by-${key}`, () => wish({ sort }, true)) : key === "project" && wishes.group === "project" ? "Branch" : name);
      if (sort) cell.setAttribute("aria-sort", sort === wishes.sort ? "descending" : "none");
      cells.push(cell);
    }
    const focus = head.contains(document.activeElement) ? document.activeElement.dataset.uiid : "";
    head.replaceChildren(...cells);
    if (focus) head.querySelector(`[data-uiid="${CSS.escape(focus)}"]`)?.focus({ preventScroll: true });
  }

  function drawNone(list) {
    none.replaceChildren();
    if (trouble) none.append(failed(trouble, () => fill()));
    if (list.length > 0) return;
    if (archive.rows.size === 0) none.append(empty("No session is here yet.", el("p", "small", "“quipu import” takes in what agents have left on this machine; “quipu up” goes on doing so.")));
    else if (!archive.cursor || !isFilling) {
      const clear = press("Show all sessions", "plain", "sessions-clear", () => {
        field.value = "";
        wish({ q: "", text: "", agents: [], projects: [], labels: [], errors: false }, true);
        field.focus();
      });
      none.append(empty(wishes.q && !wishes.text ? `No title, project, branch, agent or model is like “${visible(wishes.q)}”.` : "Nothing is like that.", wishes.q && !wishes.text ? press(`Look into the text for “${visible(wishes.q)}”`, "plain", "sessions-text", lookInside) : "", clear));
    }
  }

  /** Takes a wish into the address and onto the screen. */
  function wish(change, isStep = false) {
    const hadText = wishes.text;
    Object.assign(wishes, change);
    const address = addressOf(wishes);
    if (address !== location.pathname + location.search) {
      if (isStep) history.pushState({}, "", address);
      else history.replaceState(history.state, "", address);
    }
    if (wishes.text !== hadText) look();
    update(true);
  }

  /** Looks into the text of sessions. */
  async function look() {
    const words = wishes.text;
    found = words ? { isAsked: true, ids: new Set() } : null;
    if (!words) return;
    try {
      const answer = await get("/api/v1/search", { q: words, limit: 200, snippet: 40, lenient: true }, signal);
      if (words !== wishes.text) return;
      if (answer.problem) throw new Refused(400, answer.problem);
      found = { ids: new Set(answer.hits.map((hit) => hit.id)), more: answer.more };
      trouble = null;
    } catch (error) {
      if (signal.aborted || words !== wishes.text) return;
      found = null;
      wishes.text = "";
      trouble = error;
    }
    update(true);
  }

  const lookInside = () => {
    const words = wishes.q.trim();
    field.value = "";
    wish({ text: words, q: "" }, true);
  };

  function choose(id) {
    selected = selected.includes(id) ? selected.filter((it) => it !== id) : [...selected, id].slice(-2);
    rows.paint();
    const names = selected.map((it) => archive.rows.get(it)?.title ?? it);
    choice.replaceChildren();
    choice.classList.toggle("is-open", selected.length > 0);
    if (selected.length === 0) return;
    const end = press("Choose none", "more", "choose-none", () => {
      selected = [];
      choice.classList.remove("is-open");
      choice.replaceChildren();
      rows.paint();
    });
    if (selected.length === 1) choice.append(el("span", "sessions-chosen", `“${names[0]}” is chosen. Choose another to compare both.`), end);
    else choice.append(el("span", "sessions-chosen", `“${names[0]}” and “${names[1]}”`), link(at("/compare", { a: selected[0], b: selected[1] }), "sessions-go", "compare-chosen", "Compare"), end);
  }

  /** Moves to the row so many further; groups are passed over. */
  function step(by) {
    const list = rows.items;
    if (list.length === 0) return;
    let n = list.findIndex((item) => item.id === current);
    if (n < 0) {
      const anchor = rows.anchor(stickyTop());
      n = anchor ? anchor.n - (by > 0 ? 1 : 0) : -1;
      if (by < 0) n = Math.max(n, 0) + 1;
    }
    do n += by;
    while (list[n]?.isGroup);
    if (!list[n]) return;
    point(list[n].id, n);
  }

  function point(id, n) {
    current = id;
    rows.pinned = id;
    rows.reveal(n, stickyTop() + rows.height, rows.height);
    rows.paint();
    rows.nodes.get(id)?.querySelector("a")?.focus({ preventScroll: true });
  }

  const currentRow = () => archive.rows.get(current);

  // Pages come in the background. The list is drawn anew a few times a second at most.
  const soon = paced(() => update(), 250, signal);
  const news = () => soon();
  archive.onNews = news;
  signal.addEventListener("abort", () => {
    if (archive.onNews !== news) return;
    archive.onNews = () => {};
    archive.onChange = null;
  });
  async function fill() {
    trouble = null;
    isFilling = true;
    try {
      await archive.fill(signal);
      await archive.refresh(signal);
    } catch (error) {
      if (signal.aborted) return;
      trouble = error;
    }
    isFilling = false;
    update();
  }
  let isBusy = false;
  const live = paced(async () => {
    if (isBusy || isFilling) return live();
    isBusy = true;
    try {
      await archive.refresh(signal);
      rows.paint();
    } catch {
      // The next change tries again.
    } finally {
      isBusy = false;
    }
  }, 1500, signal);
  archive.onChange = live;
  get("/api/v1/status", {}, signal).then((status) => (archive.total = status.transcripts.sessions), () => {});

  field.addEventListener("input", () => wish({ q: field.value }));
  field.addEventListener("keydown", (event) => {
    if (event.isComposing) return;
    if (event.key === "Enter" && wishes.q.trim()) lookInside();
    else if (event.key === "Escape") {
      if (field.value) {
        field.value = "";
        wish({ q: "" });
      } else field.blur();
    } else if (event.key === "ArrowDown") {
      current = null;
      step(1);
    } else return;
    event.preventDefault();
  });
  box.addEventListener("focusin", (event) => {
    const id = event.target.closest(".sessions-row")?.dataset.id;
    if (!id || id === current) return;
    current = id;
    rows.pinned = id;
    requestAnimationFrame(() => rows.paint());
  });

  // Painting happens within the frame that scrolls. Where the reader is stays in the history, for coming back.
  let isAsked = false;
  const remember = paced(() => {
    if (!signal.aborted) history.replaceState({ ...history.state, at: scrollY }, "");
  }, 400, signal);
  const scrolled = () => {
    if (isAsked || signal.aborted) return;
    isAsked = true;
    requestAnimationFrame(() => {
      isAsked = false;
      if (signal.aborted) return;
      document.body.classList.toggle("is-scrolled", scrollY > 60);
      rows.paint();
      remember();
    });
  };
  addEventListener("scroll", scrolled, { passive: true, signal });
  addEventListener("resize", () => {
    rows.measure();
    scrolled();
  }, { signal });
  addEventListener("beforeprint", () => rows.paint(true), { signal });
  addEventListener("afterprint", () => rows.paint(), { signal });

  if (wishes.text) look();
  update();
  const from = num(history.state?.at);
  if (from !== null && from > 0) {
    scrollTo({ top: from, behavior: "instant" });
    rows.paint();
  }
  fill();

  return {
    title: "Sessions",
    keepsScroll: from !== null && from > 0,
    moved: () => {
      const next = wishesOf(new URLSearchParams(location.search));
      const hadText = wishes.text;
      Object.assign(wishes, next);
      if (field.value !== wishes.q) field.value = wishes.q;
      if (hadText !== wishes.text) look();
      update(true);
    },
    keys: {
      j: () => step(1),
      k: () => step(-1),
      x: () => current && choose(current),
      c: () => selected.length === 2 && go(at("/compare", { a: selected[0], b: selected[1] })),
      f: () => {
        field.focus();
        field.select();
      },
      v: () => wish({ group: following(GROUPS, wishes.group) }, true),
      s: () => wish({ sort: following(SORTS, wishes.sort) }, true),
      Enter: (event) => {
        const it = event.target.closest?.("a, button");
        if (it) it.click();
        else if (currentRow()) go(to(current));
      },
    },
    help: [["j k", "next, previous session"], ["Enter", "open the session"], ["f", "filter; Enter then looks into the text"], ["x", "choose the session, two at most"], ["c", "compare the two that are chosen"], ["v", "group by day, project, nothing"], ["s", "sort by time, cost, tokens, length"]],
  };
}

const open = new Set();
const today = () => new Date().getDate();

let running = { at: 0, ids: new Map() };

/** Whether a session has grown within the last minutes. Asked for each row, so it is looked up once a second. */
function isRunning(row) {
  if (Date.now() - running.at > 1000) running = { at: Date.now(), ids: recently() };
  return running.ids.has(row.id);
}

function following(all, now) {
  const names = Object.keys(all);
  return names[(names.indexOf(now) + 1) % names.length];
}

/** Rows in their order so far, then those that are new: sorting that again is quick. */
function merged(before, all) {
  const known = new Set();
  const list = [];
  for (const row of before) {
    if (all.get(row.id) !== row) continue;
    known.add(row.id);
    list.push(row);
  }
  if (list.length < all.size) for (const row of all.values()) if (!known.has(row.id)) list.push(row);
  return list;
}

function groupOf(...children) {
  const node = el("div", "sessions-head-group", ...children);
  node.setAttribute("role", "rowgroup");
  return node;
}

function headCell(title, className, ...children) {
  const node = el("div", `sessions-cell ${className}`, ...children);
  node.setAttribute("role", "columnheader");
  if (title) node.title = title;
  return node;
}

function cell(className, ...children) {
  const node = el("div", `sessions-cell sessions-${className}`, ...children);
  node.setAttribute("role", "cell");
  return node;
}

/** The name of a group, and what is in it. */
function groupNode(group) {
  let [usd, isSome, isOpen, bad] = [0, false, false, 0];
  for (const row of group.rows) {
    const one = row.usd;
    if (one !== null) {
      usd += one;
      isSome = true;
    } else if (row.figures.hasCalls) isOpen = true;
    bad += row.bad;
  }
  const words = [count(group.rows.length, "session"), isSome ? `${dollars(usd)}${isOpen ? " + ?" : ""}` : ""].filter(Boolean).join(", ");
  const inner = cell("group-cell", el("strong", "", group.by === "day" ? dayWords(group.name) : group.name || "No project"), el("span", "sessions-group-sum", words), bad > 0 ? el("span", "mark bad", `✕ ${count(bad, "error")}`) : "");
  inner.setAttribute("aria-colspan", String(COLUMNS.length + 2));
  const node = el("div", "sessions-row sessions-group", inner);
  node.setAttribute("role", "row");
  return node;
}

const unit = (words) => el("span", "sessions-unit", ` ${words}`);

/** A session. */
function rowNode(row, wishes, isChosen, isCurrent, choose) {
  const knot = press("", "sessions-knot-button", `choose-${row.id}`, () => choose(row.id));
  knot.setAttribute("role", "checkbox");
  knot.setAttribute("aria-checked", String(isChosen));
  knot.setAttribute("aria-label", `Choose ${row.title} to compare`);
  knot.title = "Choose to compare (x)";
  const mark = el("span", `sessions-knot-mark${row.bad > 0 ? " is-error" : ""}${row.usd === null ? " is-unknown" : ""}`);
  mark.style.setProperty("--wide", `${(6 + 8 * weight(row.usd)).toFixed(1)}px`);
  knot.append(mark);
  const title = cell("title", link(to(row.id), row.hasTitle ? "" : "sessions-untitled", `session-${row.id}`, row.title));
  if (isRunning(row)) title.append(" ", el("span", "badge live", "live"));
  for (const label of row.labels.slice(0, 3)) title.append(" ", el("span", "label-chip", label));
  if (row.labels.length > 3) title.append(" ", el("span", "small", `+${row.labels.length - 3}`));
  if (row.isCopy) title.append(" ", el("span", "mark", "copy"));
  if (row.isReconstructed) title.append(" ", el("span", "mark", "reconstructed"));
  if (row.from) title.append(" ", el("span", "mark", `from ${row.from}`));
  title.title = row.hasTitle ? row.title : "";
  const agent = cell("agent", agentName(row.agent));
  if (row.models) agent.title = row.models;
  const where = [wishes.group === "project" ? "" : row.project, row.branch].filter(Boolean).join(" · ");
  const project = cell("project", where);
  if (row.where) project.title = row.where;
  const time = when(row.ended);
  if (wishes.group === "day" && row.day) time.textContent = CLOCK.format(row.time);
  const tokens = row.figures.tokens ?? row.usage;
  const bad = row.bad;
  const node = el("div", `sessions-row${isCurrent ? " is-current" : ""}${isChosen ? " is-chosen" : ""}`, cell("knot", knot), title, agent, project, cell("when", time), cell("took", row.took === null ? el("span", "unknown", "unknown") : duration(row.took)), cell("tokens", tokensOf(tokens), unit("tokens")), cell("cost", costNode(row.figures)), cell("tools", row.calls === null ? el("span", "unknown", "unknown") : row.calls > 0 ? short(row.calls) : "", row.calls > 0 ? unit(row.calls === 1 ? "tool call" : "tool calls") : ""), cell("errors", bad > 0 ? el("span", "mark bad", `✕ ${short(bad)}`) : "", bad > 0 ? unit(bad === 1 ? "error" : "errors") : ""), cell("children", row.children > 0 ? String(row.children) : "", row.children > 0 ? unit(row.children === 1 ? "sub-agent" : "sub-agents") : ""));
  node.setAttribute("role", "row");
  node.dataset.id = row.id;
  return node;
}
