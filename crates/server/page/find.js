// Search: results while words are typed, the words of the query language at hand, mistakes shown at their place.

import { el, num, str } from "./text.js";
import { at, get } from "./api.js";
import { agentName, count, empty, failed, grouped, heading, link, press, projectOf, section, titleOf, to, visible, when } from "./parts.js";

const FIRST = 40;
const MOST = 200;
const IN_GROUP = 4;
// So long what was shown stays alone on the screen; the page waits a little longer than this.
const PATIENCE = 120;

/** The filters: name, what it is for, values that are always there. */
const FILTERS = [
  ["agent", "the agent", []],
  ["model", "the model", []],
  ["role", "who speaks", [["user", "prompts"], ["assistant", "answers"], ["reasoning", "what the model thought"], ["tool_call", "what tools were asked"], ["tool_result", "what tools answered"], ["tool", "either"], ["system", "instructions by programs"], ["note", "what agents write down"]]],
  ["tool", "the tool that is called, or answers", []],
  ["project", "the project of the session", []],
  ["path", "a file that is named", []],
  ["branch", "the branch of the session", []],
  ["since", "what is not earlier", [["today", ""], ["yesterday", ""], ["24h", "the last day"], ["7d", "the last week"], ["1mo", "the last month"], ["1y", "the last year"]]],
  ["until", "what is not later", [["yesterday", ""], ["24h", "a day ago"], ["7d", "a week ago"], ["1mo", "a month ago"]]],
  ["status", "how a tool call ended", [["ok", ""], ["error", ""], ["denied", ""], ["timeout", ""]]],
  ["has", "errors, attachments", [["error", "something went wrong"], ["attachment", "something is attached"]]],
  ["cost", "what the session cost, in dollars", [[">1", "more than a dollar"], [">0.10", "more than ten cents"], ["<0.01", "less than a cent"], ["1..5", "from one to five"]]],
  ["session", "a session, by its id", []],
  ["title", "words in the title", []],
];
const NAMES = new Set(FILTERS.map(([name]) => name));
const OPERATORS = new Set(["AND", "OR", "NOT", "|"]);

/** Words for who says something. */
const ROLES = { user: "prompt", assistant: "answer", reasoning: "reasoning", system: "instruction", tool_call: "call", tool_result: "result", note: "note" };

const ask = () => document.getElementById("ask");

/* The query */

/** The parts of a query: `{ from, to, text, depth }`. Quotation marks hold theirs together. */
export function partsOfQuery(text) {
  const parts = [];
  let depth = 0;
  let i = 0;
  while (i < text.length) {
    if (/\s/.test(text[i])) i += 1;
    else if (text[i] === "(" || text[i] === ")") {
      if (text[i] === ")") depth -= 1;
      parts.push({ from: i, to: i + 1, text: text[i], depth });
      if (text[i] === "(") depth += 1;
      i += 1;
    } else {
      const from = i;
      while (i < text.length && !/[\s()]/.test(text[i])) {
        const closing = text[i] === '"' ? /["]/ : text[i] === "“" ? /[”"]/ : null;
        i += 1;
        if (!closing) continue;
        while (i < text.length && !closing.test(text[i])) i += text[i] === "\\" ? 2 : 1;
        i = Math.min(text.length, i + 1);
      }
      parts.push({ from, to: i, text: text.slice(from, i), depth });
    }
  }
  return parts;
}

/** A part as a filter, or nothing: `{ isNot, name, value }`. */
function filterOf(part) {
  const [, not, name, value] = /^(-?)([a-z]+):(.*)$/s.exec(part.text) ?? [];
  return NAMES.has(name) ? { isNot: not === "-", name, value } : null;
}

/** The filters that can be taken away without changing what the rest means. */
function looseFilters(text) {
  const parts = partsOfQuery(text);
  const isOperator = (part) => part !== undefined && (OPERATORS.has(part.text) || /^NEAR(\/\d+)?$/.test(part.text));
  return parts.map((part, n) => ({ ...part, filter: filterOf(part), isBound: part.depth !== 0 || isOperator(parts[n - 1]) || isOperator(parts[n + 1]) })).filter((part) => part.filter?.value && !part.isBound);
}

const without = (text, part) => `${text.slice(0, part.from).trimEnd()} ${text.slice(part.to).trimStart()}`.trim();
const quoted = (value) => (/[\s,"()“”]/.test(value) ? `"${value.replace(/[\\"]/g, "\\$&")}"` : value);

/** Gives the place of a byte of UTF-8 in a text; ask in ascending order. */
function placesIn(text) {
  let [place, bytes] = [0, 0];
  return (wanted) => {
    while (place < text.length && bytes < wanted) {
      const code = text.codePointAt(place);
      bytes += code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
      place += code > 0xffff ? 2 : 1;
    }
    return place;
  };
}

/** Where in a query the mistake is. Null where it is no single place. */
function mistakeIn(text, at) {
  if (!Array.isArray(at)) return null;
  const place = placesIn(text);
  return [place(num(at[0]) ?? 0), place(num(at[1]) ?? 0)];
}

/* Values for completion, asked for once */

let asked = null;

function valuesSeen() {
  asked ??= Promise.all([get("/api/v1/transcripts", { limit: 1000, fields: "agent,models,cwd,branch,repository,run_id,title,id" }), get("/api/v1/tools")]).then(([page, tools]) => {
    const seen = new Map(["agent", "model", "tool", "project", "path", "branch", "session"].map((name) => [name, new Map()]));
    const add = (name, value, note = "", n = 1) => {
      const text = str(value);
      if (!text || text.length > 200) return;
      const known = seen.get(name).get(text);
      seen.get(name).set(text, { n: (known?.n ?? 0) + n, note });
    };
    for (const it of page.transcripts) {
      add("agent", it.agent, agentName(str(it.agent)));
      add("project", projectOf(it));
      add("branch", it.branch);
      for (const model of it.models ?? []) add("model", model);
      if (seen.get("session").size < 50) add("session", it.id, titleOf(it));
    }
    for (const row of tools.tools ?? tools.rows ?? []) {
      if (row.tool) add("tool", row.tool, "", row.calls);
      for (const file of row.files ?? []) add("path", file.path, "", file.calls);
    }
    return seen;
  }).catch(() => {
    asked = null;
    return new Map();
  });
  return asked;
}

/** What can stand at the caret: `{ from, to, items: [{ text, note, after }] }`, or nothing. */
async function offers(text, caret, isWanted) {
  const before = text.slice(0, caret);
  const part = partsOfQuery(before).at(-1);
  const isInside = part && part.to === caret && part.text !== "(" && part.text !== ")";
  const [from, typed] = isInside ? [part.from, part.text] : [caret, ""];
  if (!typed && !isWanted) return null;
  const filter = isInside ? filterOf(part) : null;
  if (!filter) {
    const bare = typed.replace(/^-/, "");
    if (!/^[a-z]*$/.test(bare)) return null;
    const items = FILTERS.filter(([name]) => name.startsWith(bare)).map(([name, about]) => ({ text: `${name}:`, note: about, after: "" }));
    return items.length > 0 ? { from: from + typed.length - bare.length, to: caret, items } : null;
  }
  const begun = filter.value.split(",").pop();
  const wanted = begun.replace(/^["“]/, "").toLowerCase();
  const [, , always] = FILTERS.find(([name]) => name === filter.name);
  const seen = always.length > 0 ? null : (await valuesSeen()).get(filter.name);
  const all = seen ? [...seen].sort(([, a], [, b]) => b.n - a.n).map(([value, { note }]) => [value, note]) : always;
  const fit = all.filter(([value, note]) => value.toLowerCase().includes(wanted) || note.toLowerCase().includes(wanted));
  fit.sort(([a], [b]) => Number(b.toLowerCase().startsWith(wanted)) - Number(a.toLowerCase().startsWith(wanted)));
  const items = fit.slice(0, 10).map(([value, note]) => ({ text: quoted(value), label: value, note: note === value ? "" : note, after: " " }));
  if (items.length === 0 || (items.length === 1 && items[0].text === begun)) return null;
  return { from: caret - begun.length, to: caret, items };
}

/** The list below the field in the bar. The field keeps the focus. */
class Completion {
  constructor(go) {
    this.go = go;
    this.field = ask();
    this.ending = new AbortController();
    this.list = el("ul", "find-complete");
    this.list.id = "find-complete";
    this.list.setAttribute("role", "listbox");
    this.list.setAttribute("aria-label", "Completions");
    this.list.hidden = true;
    this.at = -1;
    document.body.append(this.list);
    const { signal } = this.ending;
    for (const [name, value] of [["role", "combobox"], ["aria-autocomplete", "list"], ["aria-controls", "find-complete"], ["aria-expanded", "false"]]) this.field.setAttribute(name, value);
    this.field.addEventListener("input", () => {
      if (this.field.value.trim() === "") go("/search", { replace: true });
      this.look(false);
    }, { signal });
    this.field.addEventListener("blur", () => this.hide(), { signal });
    // Before what the field does by itself.
    this.field.addEventListener("keydown", (event) => this.key(event), { signal, capture: true });
    addEventListener("resize", () => this.hide(), { signal });
  }

  end() {
    this.ending.abort();
    this.list.remove();
    for (const name of ["role", "aria-autocomplete", "aria-controls", "aria-expanded", "aria-activedescendant"]) this.field.removeAttribute(name);
  }

  async look(isWanted) {
    const [text, caret] = [this.field.value, this.field.selectionStart ?? 0];
    const found = await offers(text, caret, isWanted);
    if (this.ending.signal.aborted || this.field.value !== text || document.activeElement !== this.field) return;
    this.found = found;
    if (!found) {
      this.hide();
      return;
    }
    this.list.replaceChildren(...found.items.map((item, n) => {
      const node = el("li", "", el("span", "find-offer", item.label ?? item.text), el("span", "small", item.note));
      node.id = `find-offer-${n}`;
      node.dataset.uiid = `offer-${item.text}`;
      node.setAttribute("role", "option");
      // The field keeps the focus.
      node.addEventListener("pointerdown", (event) => {
        event.preventDefault();
        this.take(n);
      });
      return node;
    }));
    const box = this.field.closest(".find").getBoundingClientRect();
    this.list.style.top = `${Math.round(box.bottom + 4)}px`;
    this.list.style.left = `${Math.round(Math.max(8, Math.min(box.left, innerWidth - 330)))}px`;
    this.list.style.minWidth = `${Math.round(Math.min(box.width, innerWidth - 16))}px`;
    this.list.hidden = false;
    this.field.setAttribute("aria-expanded", "true");
    this.point(-1);
  }

  hide() {
    this.list.hidden = true;
    this.found = null;
    this.field.setAttribute("aria-expanded", "false");
    this.field.removeAttribute("aria-activedescendant");
  }

  point(n) {
    this.at = n;
    [...this.list.children].forEach((node, i) => node.setAttribute("aria-selected", String(i === n)));
    if (n < 0) this.field.removeAttribute("aria-activedescendant");
    else {
      this.field.setAttribute("aria-activedescendant", `find-offer-${n}`);
      this.list.children[n].scrollIntoView({ block: "nearest" });
    }
  }

  take(n) {
    const { from, to: end, items } = this.found;
    const { text, after } = items[n];
    const value = this.field.value;
    this.field.value = value.slice(0, from) + text + after + value.slice(end).replace(/^ /, after ? "" : " ");
    const caret = from + text.length + after.length;
    this.field.setSelectionRange(caret, caret);
    this.field.dispatchEvent(new Event("input", { bubbles: true }));
  }

  key(event) {
    if (event.isComposing || event.altKey || event.metaKey) return;
    const isOpen = !this.list.hidden;
    const n = this.list.children.length;
    if (event.key === " " && event.ctrlKey) this.look(true);
    else if (event.ctrlKey) return;
    else if (event.key === "ArrowDown" && !isOpen) {
      const first = document.querySelector(".find-hit");
      if (!first || this.field.selectionStart !== this.field.value.length) this.look(true);
      else first.focus();
    } else if (!isOpen) return;
    else if (event.key === "ArrowDown") this.point((this.at + 1) % n);
    else if (event.key === "ArrowUp") this.point(this.at <= 0 ? n - 1 : this.at - 1);
    else if (event.key === "Tab" && !event.shiftKey) this.take(Math.max(0, this.at));
    else if (event.key === "Enter" && this.at >= 0) this.take(this.at);
    else if (event.key === "Escape") this.hide();
    else {
      if (event.key === "Enter") this.hide();
      return;
    }
    event.preventDefault();
    event.stopImmediatePropagation();
  }
}

/* What was found */

/** A snippet with what was found marked. Places are bytes of the whole text. */
function snippetOf(hit) {
  const text = str(hit.snippet);
  const node = el("span", "find-snippet");
  if (hit.problem) {
    node.append(el("span", "unknown", `its text cannot be read: ${visible(str(hit.problem))}`));
    return node;
  }
  const begin = num(hit.snippet_offset) ?? 0;
  const place = placesIn(text);
  let at = 0;
  if (begin > 0) node.append("… ");
  for (const [from, end] of hit.matches ?? []) {
    if (end <= begin) continue;
    const start = place(Math.max(0, from - begin));
    if (start >= text.length) break;
    const stop = place(end - begin);
    if (start < at || stop <= start) continue;
    if (start > at) node.append(el("span", "", text.slice(at, start)));
    node.append(el("mark", "", text.slice(start, stop)));
    at = stop;
  }
  if (at < text.length) node.append(el("span", "", text.slice(at)));
  if (begin + utf8Length(text) < (num(hit.text_bytes) ?? 0)) node.append(" …");
  return node;
}

const encoder = new TextEncoder();
const utf8Length = (text) => encoder.encode(text).length;

/** A group of hits: a session, its title, what was said in it. */
function groupNode({ id, hits }, isOpen, unfold) {
  const [first] = hits;
  const name = link(to(id), "find-title", `session-${id}`, titleOf(first));
  const about = [agentName(str(first.agent)), projectOf({ cwd: first.project }), visible(str(first.branch))].filter(Boolean).join(" · ");
  const list = el("ol", "find-hits", ...hits.map((hit, n) => {
    const isTitle = hit.seq === 0;
    const who = isTitle ? "title" : hit.tool ? `${visible(hit.tool)} ${ROLES[hit.role] ?? ""}` : (ROLES[hit.role] ?? visible(str(hit.role)));
    const step = hit.path ? ` in ${visible(hit.path)}${hit.iterations?.length ? `, pass ${hit.iterations.map((it) => it + 1).join(".")}` : ""}` : "";
    const line = el("span", "find-who", el("span", "find-role", who), step, isTitle ? "" : el("span", "find-seq", ` · event ${grouped.format(hit.seq)}`));
    if (hit.timestamp) line.append(" · ", when(hit.timestamp));
    if (hit.copies > 0) line.append(` · also in ${count(hit.copies, "copy", "copies")}`);
    const node = link(isTitle ? to(id) : to(id, "", hit.seq), `find-hit kind-${ROLES[hit.role] ?? "note"}`, `hit-${id}-${hit.seq}`, line, snippetOf(hit));
    const item = el("li", "", node);
    item.hidden = !isOpen && n >= IN_GROUP;
    return item;
  }));
  const group = el("div", "find-group", el("h2", "", name), el("p", "small", about), list);
  if (!isOpen && hits.length > IN_GROUP) {
    const more = press(`${count(hits.length - IN_GROUP, "more event")} of this session`, "find-rest", `rest-${id}`, () => {
      unfold();
      for (const item of list.children) item.hidden = false;
      list.children[IN_GROUP].firstChild.focus();
      more.remove();
    });
    group.append(more);
  }
  return group;
}

/** The screen while it is open: words change, it stays. */
class Screen {
  static current = null;

  constructor(main, go) {
    Object.assign(this, { main, go, query: null, sort: "relevance", limit: FIRST, hits: [], unfolded: new Set() });
    this.completion = new Completion(go);
    this.problem = el("div", "find-problem");
    this.problem.setAttribute("role", "status");
    this.said = el("p", "lede find-said");
    this.said.setAttribute("role", "status");
    this.chips = el("div", "find-chips");
    this.results = el("div", "find-results");
    this.results.addEventListener("keydown", (event) => {
      if (!["ArrowDown", "ArrowUp"].includes(event.key) || !event.target.classList.contains("find-hit")) return;
      event.preventDefault();
      if (event.key === "ArrowUp" && event.target === this.hitNodes()[0]) ask().focus();
      else this.step(event.key === "ArrowDown" ? 1 : -1);
    });
    this.root = el("div", "find-screen", heading("Search", this.said), this.problem, this.chips, this.results);
    Screen.current = this;
  }

  end() {
    this.completion.end();
    if (Screen.current === this) Screen.current = null;
  }

  place() {
    if (this.root.parentNode !== this.main) this.main.replaceChildren(this.root);
  }

  address(query, sort = this.sort) {
    return at("/search", { q: query, sort: sort === "relevance" ? "" : sort });
  }

  /** Looks for something. What is shown stays until the answer is there. */
  async look(query, sort, signal, limit = FIRST) {
    if (query === "") {
      this.query = "";
      await this.examples(signal);
      return;
    }
    const slow = setTimeout(() => !signal.aborted && this.wait(true), 250);
    try {
      // Half a query is no error while somebody types.
      const answer = await get("/api/v1/search", { q: query, sort, limit, lenient: true }, signal);
      if (signal.aborted) return;
      if (answer.problem) {
        const { detail, hint, at } = answer.problem;
        this.mistake(query, sort, { detail: str(detail), hint: str(hint), place: mistakeIn(query, at) });
        this.place();
        return;
      }
      if (this.query !== query || this.sort !== sort) this.unfolded.clear();
      Object.assign(this, { query, sort, limit, hits: answer.hits });
      this.problem.replaceChildren();
      this.draw(answer);
    } catch (error) {
      if (signal.aborted) return;
      if (error.status === 401) throw error;
      else this.refuse(error, () => this.look(query, sort, signal, limit));
    } finally {
      clearTimeout(slow);
      if (!signal.aborted) this.wait(false);
    }
    if (!signal.aborted) this.place();
  }

  wait(isWaiting) {
    this.results.setAttribute("aria-busy", String(isWaiting));
    if (isWaiting && this.hits.length === 0) this.said.replaceChildren("Looking…");
  }

  refuse(error, again) {
    this.hits = [];
    this.problem.replaceChildren();
    this.said.replaceChildren();
    this.results.classList.remove("is-old");
    this.results.replaceChildren(failed(error, again));
  }

  /** A query that cannot be read: where, why, and what to do. What was found before stays, paler. */
  mistake(query, sort, { detail, hint, place }) {
    Object.assign(this, { query, sort });
    const line = el("p", "find-line");
    if (place) {
      const [from, end] = place[1] > place[0] ? place : [place[0], place[0] + 1];
      line.append(el("span", "", query.slice(0, from)), el("span", "find-wrong", query.slice(from, end) || " "), el("span", "", query.slice(end)));
    } else line.append(el("span", "", query));
    // Whoever is still typing is not told off.
    const isTyped = document.activeElement === ask() && place !== null && place[1] >= query.length;
    const why = /^[a-z]+:/.test(detail) ? detail : detail.charAt(0).toUpperCase() + detail.slice(1);
    this.problem.className = `find-problem${isTyped ? " is-soft" : ""}`;
    this.problem.replaceChildren(line, el("p", "find-why", `${why}.`), hint ? el("p", "small", hint) : "");
    this.drawChips(query);
    if (this.hits.length === 0) this.results.replaceChildren();
    this.results.classList.add("is-old");
    this.said.replaceChildren(this.hits.length > 0 ? "Below is what was found before." : "");
    this.root.dataset.shown = query;
  }

  drawChips(query) {
    const nodes = looseFilters(query).map((part) => {
      const { isNot, name, value } = part.filter;
      const words = `${isNot ? "not " : ""}${name} ${value}`;
      const node = el("span", "label-chip", words);
      const remove = press("×", "label-remove", `chip-remove-${part.text}`, () => this.go(this.address(without(query, part))));
      remove.setAttribute("aria-label", `Remove the filter ${visible(words)}`);
      node.append(remove);
      return node;
    });
    const has = new Set(looseFilters(query).map((part) => part.filter.name));
    const ideas = this.problem.childElementCount > 0 ? [] : this.narrower(has);
    const narrow = ideas.map((filter) => link(this.address(`${query} ${filter}`), "label-add", `narrow-${filter}`, filter));
    this.chips.replaceChildren(...nodes, ...(narrow.length > 0 ? [el("span", "small", nodes.length > 0 ? "and" : "narrow by"), ...narrow] : []));
  }

  /** Filters that would divide what was found. */
  narrower(has) {
    const ideas = [];
    for (const [name, of] of [["agent", (hit) => str(hit.agent)], ["role", (hit) => (hit.seq === 0 ? "" : str(hit.role))], ["project", (hit) => projectOf({ cwd: hit.project })], ["tool", (hit) => str(hit.tool)]]) {
      if (has.has(name)) continue;
      const found = new Map();
      for (const hit of this.hits) if (of(hit)) found.set(of(hit), (found.get(of(hit)) ?? 0) + 1);
      if (found.size > 1) ideas.push(...[...found].sort(([, a], [, b]) => b - a).slice(0, 2).map(([value]) => `${name}:${quoted(value)}`));
    }
    return ideas.slice(0, 7);
  }

  draw({ hits, more, not_indexed: missing }) {
    const groups = new Map();
    for (const hit of hits) {
      if (!groups.has(hit.id)) groups.set(hit.id, { id: hit.id, hits: [] });
      groups.get(hit.id).hits.push(hit);
    }
    this.results.classList.remove("is-old");
    this.drawChips(this.query);
    const order = el("span", "find-order", ...[["relevance", "best first"], ["newest", "newest first"]].map(([sort, words]) => {
      const node = link(this.address(this.query, sort), "", `sort-${sort}`, words);
      if (sort === this.sort) node.setAttribute("aria-current", "true");
      return node;
    }));
    if (hits.length === 0) {
      this.said.replaceChildren("Nothing was found.");
      const loose = looseFilters(this.query);
      const words = loose.length > 0 ? "Take a filter away, or look for fewer words." : "Words have to be in the same event. Try fewer of them, or the beginning of one with an asterisk: panic*.";
      this.results.replaceChildren(empty(words));
    } else {
      this.said.replaceChildren(more ? "The first " : "", el("strong", "", grouped.format(hits.length)), ` ${hits.length === 1 ? "event" : "events"} in `, el("strong", "", grouped.format(groups.size)), ` ${groups.size === 1 ? "session" : "sessions"}, `, order);
      const held = this.results.contains(document.activeElement) ? str(document.activeElement.dataset.uiid) : "";
      const nodes = [...groups.values()].map((group) => groupNode(group, this.unfolded.has(group.id) || groups.size === 1, () => this.unfolded.add(group.id)));
      this.results.replaceChildren(...nodes);
      if (more && this.limit < MOST) this.results.append(press("Show more", "plain find-more", "more", (event) => this.more(event.target)));
      else if (more) this.results.append(el("p", "small find-more", `More than ${MOST} events match. Add a word or a filter to see the others.`));
      if (held) (this.hitNodes().find((node) => node.dataset.uiid === held) ?? this.hitNodes()[0])?.focus({ preventScroll: true });
    }
    if (missing > 0) this.results.append(el("p", "small", `${count(missing, "transcript")} ${missing === 1 ? "is" : "are"} not indexed yet; the next import does that.`));
    this.root.dataset.shown = this.query;
  }

  async more(button) {
    button.disabled = true;
    const [seen, before] = [this.hits.length, this.hitNodes().length];
    await this.look(this.query, this.sort, this.signal, Math.min(MOST, this.limit * 3));
    if (this.hits.length > seen) this.hitNodes()[before]?.focus({ preventScroll: true });
  }

  /** What to look for, when nothing is asked: examples that find something here. */
  async examples(signal) {
    const seen = await valuesSeen();
    const best = (name) => [...(seen.get(name) ?? [])].sort(([, a], [, b]) => b.n - a.n).map(([value]) => value);
    const [tool] = best("tool");
    const [agent, second] = best("agent");
    const [project] = best("project");
    const file = best("path").map((path) => path.split("/").pop()).find((name) => /^[\w-]+\.\w+$/.test(name));
    const ideas = [
      ["test failed", "both words, in the same event"],
      ['"not found"', "the words in a row"],
      ["role:user fix*", "prompts with a word that begins like this"],
      tool && [`tool:${quoted(tool)} has:error`, `calls of ${tool} that went wrong`],
      agent && second && [`agent:${quoted(agent)},${quoted(second)} role:assistant error OR warning`, "answers of two agents"],
      project && [`project:${quoted(project)} since:1y`, "what went on in a project"],
      file && [`path:${file}`, "where a file is named"],
      ["status:denied", "tool calls that were not allowed"],
      ["cost:>1 role:user", "prompts of sessions that cost more than a dollar"],
      ["-role:tool timeout", "a word, but not in what tools say"],
    ].filter(Boolean);
    const found = await Promise.all(ideas.map(([query]) => get("/api/v1/search", { q: query, limit: 1, lenient: true }, signal).then((answer) => answer.hits.length > 0).catch(() => false)));
    if (signal.aborted) return;
    const shown = ideas.filter((_, n) => found[n]).slice(0, 7);
    Object.assign(this, { hits: [] });
    this.problem.replaceChildren();
    this.chips.replaceChildren();
    this.results.classList.remove("is-old");
    this.said.replaceChildren("Type words above. They are looked for in prompts, answers, reasoning, and in what tools were asked and answered.");
    const list = el("dl", "find-examples", ...shown.map(([query, about]) => el("div", "", el("dt", "", link(this.address(query, "relevance"), "", `example-${query}`, query)), el("dd", "", about))));
    const filters = el("dl", "find-examples", ...FILTERS.map(([name, about, values]) => el("div", "", el("dt", "", el("code", "", `${name}:`)), el("dd", "", about, values.length > 0 ? el("span", "small", ` ${values.slice(0, 5).map(([value]) => value).join(", ")}`) : ""))));
    this.results.replaceChildren(...(shown.length > 0 ? [section("Such as", list)] : [empty("Nothing is kept yet that could be found.")]), section("Filters", filters));
    this.root.dataset.shown = "";
    this.place();
  }

  hitNodes() {
    return [...this.results.querySelectorAll(".find-hit")].filter((node) => !node.parentNode.hidden);
  }

  step(by) {
    const nodes = this.hitNodes();
    const now = nodes.indexOf(document.activeElement);
    const next = nodes[now < 0 ? (by > 0 ? 0 : nodes.length - 1) : Math.max(0, Math.min(nodes.length - 1, now + by))];
    next?.focus();
  }
}

/** The screen. */
export async function find({ main, query, signal, go }) {
  const isOpen = Screen.current?.root.parentNode === main;
  if (!isOpen) Screen.current?.end();
  const screen = isOpen ? Screen.current : new Screen(main, go);
  Object.assign(screen, { go, signal });
  // Typing goes on here; anything else is another screen.
  signal.addEventListener("abort", () => location.pathname !== "/search" && screen.end());
  const words = (query.get("q") ?? "").trim();
  let sort = query.get("sort") === "newest" ? "newest" : "relevance";
  if (isOpen && sort !== screen.sort && document.activeElement === ask()) {
    // The field knows the words only; the order stays.
    sort = screen.sort;
    history.replaceState(history.state, "", screen.address(words, sort));
  }
  const done = screen.look(words, sort, signal);
  await Promise.race([done, new Promise((go) => setTimeout(go, PATIENCE))]);
  done.catch(() => {});
  if (!signal.aborted) screen.place();
  return {
    title: words ? `${visible(words)} · Search` : "Search",
    keys: {
      j: () => screen.step(1),
      k: () => screen.step(-1),
      s: () => words && go(screen.address(words, screen.sort === "newest" ? "relevance" : "newest"), { replace: true }),
    },
    help: [["j k", "next, previous event"], ["Enter", "open it"], ["s", "best first, newest first"], ["Tab ↓ ↑", "in the field: complete a filter"], ["Ctrl-Space", "in the field: all filters"]],
  };
}
