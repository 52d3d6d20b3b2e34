// The events of a transcript, asked for as they come near the screen.

import { entriesOf } from "./model.js";
import { isQuiet } from "./pages.js";
import { num, obj, str } from "./text.js";
import { get } from "./api.js";

const PAGE = 256;
const MOST_PAGES = 24;
// So many events are taken in at once when a transcript grows.
const MOST_ADDED = 1000;

const KINDS = { u: "user", a: "assistant", s: "system", r: "reasoning", t: "tool", o: "tool", n: "note", q: "note" };

/** The letter of an event that was added, as the server's cord has it. */
function letterOf(entry) {
  const letter = entry.kind === "note" ? (isQuiet(entry) ? "q" : "n") : Object.keys(KINDS).find((it) => KINDS[it] === entry.kind);
  return entry.isError ? letter.toUpperCase() : letter;
}

/** Entries of a transcript whose events are on the server. What is far from the screen is let go again. */
export class Source {
  constructor(id, cord, signal) {
    Object.assign(this, { id, signal, entries: [], bySeq: new Map(), pages: new Map(), far: new Map(cord.far), total: cord.events, known: cord.events });
    [...cord.kinds].forEach((letter, n) => this.add(letter, n + 1));
  }

  add(letter, seq) {
    const low = letter.toLowerCase();
    if (low === "p") return;
    const entry = { index: this.entries.length, kind: KINDS[low] ?? "note", isQuietKind: low === "q", isError: letter !== low, event: null, result: null, pasted: [], seqs: [seq], agent: "", node: null, text: null };
    this.entries.push(entry);
    this.bySeq.set(seq, entry);
  }

  isQuiet = (entry) => (entry.event ? isQuiet(entry) : entry.isQuietKind && !entry.isError);

  has = (entries) => entries.every((entry) => entry.event !== null);

  /** Fills entries with their events. */
  async load(entries) {
    const wanted = new Set(entries.filter((entry) => entry.event === null).map((entry) => Math.floor((entry.seqs[0] - 1) / PAGE)));
    await Promise.all([...wanted].map((page) => this.page(page)));
    await Promise.all(entries.map((entry) => this.fill(entry)));
    // Who speaks depends on the entry before.
    this.relate(entries);
  }

  /** The events of a page, by their number. */
  page(n) {
    const known = this.pages.get(n);
    if (known) {
      this.pages.delete(n);
      this.pages.set(n, known);
      return known;
    }
    const asked = this.ask(n * PAGE + 1, PAGE);
    this.pages.set(n, asked);
    asked.catch(() => this.pages.delete(n));
    for (const old of [...this.pages.keys()].slice(0, -MOST_PAGES)) this.pages.delete(old);
    return asked;
  }

  async ask(from, limit) {
    const events = new Map();
    for (let next = from; next < from + limit; ) {
      const page = await get(`/api/v1/transcripts/${encodeURIComponent(this.id)}/events`, { form: "normalized", from: next, limit: from + limit - next }, this.signal);
      for (const event of page.events) events.set(num(event.seq), event);
      this.total = Math.max(this.total, page.total);
      if (!page.more || page.next <= next) break;
      next = page.next;
    }
    return events;
  }

  async event(seq) {
    const page = await this.page(Math.floor((seq - 1) / PAGE));
    return page.get(seq) ?? { seq, type: "meta", text: "This event is not kept any more.", undated: true };
  }

  async fill(entry) {
    if (entry.event) return;
    const event = await this.event(entry.seqs[0]);
    const [made] = entriesOf([event]);
    const { kind, isError, agent } = made;
    Object.assign(entry, { kind, agent, event, isError: entry.isError || isError });
    const id = str(obj(event.tool)?.callId);
    if (str(event.type) !== "tool_call" || !id) return;
    const result = await this.resultOf(entry.seqs[0], id);
    if (!result) return;
    entry.result = result;
    if (!entry.seqs.includes(num(result.seq))) entry.seqs.push(num(result.seq));
    this.bySeq.set(num(result.seq), entry);
  }

  async resultOf(seq, id) {
    const far = this.far.get(seq);
    if (far) return this.event(far);
    for (let next = seq + 1; next <= Math.min(seq + 32, this.total); next += 1) {
      const event = await this.event(next);
      if (str(event.type) === "tool_result" && str(obj(event.tool)?.callId) === id) return event;
    }
    return null;
  }

  relate(entries) {
    this.onRelate?.(entries);
  }

  /** Lets go of what entries hold. */
  drop(entries) {
    for (const entry of entries) Object.assign(entry, { event: null, result: null, node: null, text: null, before: null });
  }

  /** Takes in what was added since; gives back the new entries, and those that got their result. */
  async grow() {
    const before = this.known;
    const events = await this.ask(before + 1, MOST_ADDED);
    // Pages that had room have grown.
    for (let page = Math.floor(Math.max(0, before - 1) / PAGE); page <= Math.floor(this.total / PAGE); page += 1) this.pages.delete(page);
    const [added, changed] = [[], []];
    const open = new Map();
    for (const entry of this.entries.slice(-2000)) {
      const call = str(obj(entry.event?.tool)?.callId);
      if (call && !entry.result) open.set(call, entry);
    }
    for (const [seq, event] of events) {
      const call = open.get(str(obj(event.tool)?.callId));
      if (str(event.type) === "tool_result" && call) {
        call.result = event;
        call.seqs.push(seq);
        this.bySeq.set(seq, call);
        open.delete(str(event.tool.callId));
        changed.push(call);
        continue;
      }
      const [made] = entriesOf([event]);
      this.add(letterOf(made), seq);
      const entry = this.entries.at(-1);
      Object.assign(entry, { kind: made.kind, agent: made.agent, event, isError: made.isError });
      if (str(event.type) === "tool_call") open.set(str(obj(event.tool)?.callId), entry);
      added.push(entry);
    }
    this.known = Math.max(before, ...events.keys());
    this.isBehind = this.total > this.known && this.known > before;
    this.relate(added);
    return { added, changed };
  }

  /** The entries with these words, looked for by the server, with a call of `found` as they come in. */
  async find(words, signal, found) {
    const matches = [];
    const sorted = () => [...new Set(matches)].sort((a, b) => a.index - b.index);
    for (let next = 1; next <= this.total; ) {
      const page = await get(`/api/v1/transcripts/${encodeURIComponent(this.id)}/events`, { text: words, fields: "seq", from: next, limit: 1000 }, signal);
      for (const { seq } of page.events) {
        const entry = this.bySeq.get(seq) ?? this.callBefore(seq);
        if (entry && matches.at(-1) !== entry) matches.push(entry);
      }
      if (!page.more || page.next <= next) break;
      if (next === 1) found(sorted());
      next = page.next;
    }
    return sorted();
  }

  /** The entry that a result belongs to which was not drawn yet. */
  callBefore(seq) {
    for (const [call, result] of this.far) if (result === seq) return this.bySeq.get(call);
    for (let n = seq - 1; n >= Math.max(1, seq - 32); n -= 1) {
      const entry = this.bySeq.get(n);
      if (entry?.kind === "tool") return entry;
    }
    return null;
  }
}

