// The list of entries, drawn as they come near the screen.

import { duration, el, str } from "./text.js";
import { hasPicture, noteKind, timeOf, wordsOf } from "./model.js";
import { dayName } from "./view.js";

export const PER_CHUNK = 20;
// So many pieces are in a group: a browser is slow with thousands of neighbours.
const PER_GROUP = 32;
const MOST_AHEAD = 60;
const GUESSED_HEIGHT = { user: 110, assistant: 150, tool: 34, reasoning: 34, note: 28, system: 34 };
// A silence of so many milliseconds is said.
const SILENCE = 20 * 60 * 1000;
// What agents note for themselves, and people seldom want to see.
const QUIET = new Set(["attachment", "context", "file_snapshot", "hook", "mode", "model_call", "progress", "queue", "session", "title", "todo", "turn", "usage", "run", "step"]);

/** Entries that are all at hand, as in a file. Another source gives their events when they are asked for. */
export class Whole {
  constructor(entries) {
    this.entries = entries;
    this.bySeq = new Map();
    for (const entry of entries) for (const seq of entry.seqs) if (!this.bySeq.has(seq)) this.bySeq.set(seq, entry);
  }

  isQuiet = isQuiet;

  has = () => true;

  load = async () => {};

  drop() {}

  find = async (words) => this.entries.filter((entry) => wordsOf(entry).includes(words));
}

// So many pieces are kept drawn where events can be asked for again, and so many are asked for at a time.
const MOST_DRAWN = 16;
const MOST_COMING = 4;

/** The list of entries, drawn piece by piece as they come near the screen. */
export class Pages {
  constructor(view, source, holder) {
    Object.assign(this, { view, source, entries: source.entries, bySeq: source.bySeq, holder, shown: [], chunks: [], groups: [], current: null, isUnfolded: false, near: new Set(), coming: 0, drawnOrder: [] });
    this.watch = new IntersectionObserver((seen) => {
      for (const it of seen) {
        const chunk = this.chunks[it.target.dataset.n];
        // What was listed before may still be told of.
        if (chunk?.node !== it.target) continue;
        if (!it.isIntersecting) this.near.delete(chunk);
        else if (!chunk.isDrawn) this.near.add(chunk);
        chunk.isNear = it.isIntersecting;
        if (chunk.isDrawn && !chunk.isNear) chunk.height = it.boundingClientRect.height || chunk.height;
      }
      this.drawNear();
    }, { rootMargin: "2000px 0px" });
    // Only pieces of groups near the screen are watched one by one.
    this.watchGroups = new IntersectionObserver((seen) => {
      for (const it of seen) {
        const group = this.groups[it.target.dataset.n];
        if (group?.node === it.target) this.approach(group, it.isIntersecting);
      }
    }, { rootMargin: "4000px 0px" });
    this.onDraw = () => {};
  }

  /** Lists the entries that pass. */
  list(passes) {
    this.watch.disconnect();
    this.watchGroups.disconnect();
    this.near.clear();
    this.passes = passes;
    this.shown = this.entries.filter(passes);
    this.shown.forEach((entry, n) => (entry.place = n));
    this.isShown = new Set(this.shown);
    this.chunks = [];
    this.groups = [];
    this.drawnOrder = [];
    for (let at = 0; at < this.shown.length; at += PER_CHUNK) this.chunk(this.shown.slice(at, at + PER_CHUNK));
    for (const group of this.groups) this.sizeGroup(group);
    const nodes = this.groups.map((group) => group.node);
    if (nodes.length === 0) nodes.push(el("p", "nothing centred", this.entries.length === 0 ? "This session has no events." : "Nothing of this kind."));
    this.holder.replaceChildren(...nodes);
  }

  /** A group of pieces that comes near the screen or leaves it. */
  approach(group, isNear) {
    if (group.isNear === isNear) return;
    group.isNear = isNear;
    for (const chunk of group.chunks) {
      if (isNear) this.watch.observe(chunk.node);
      else {
        this.watch.unobserve(chunk.node);
        this.near.delete(chunk);
        chunk.isNear = false;
      }
    }
  }

  sizeGroup(group) {
    group.node.style.containIntrinsicSize = `auto ${group.chunks.reduce((sum, chunk) => sum + chunk.height, 0)}px`;
  }

  /** Adds a piece of the list that is not drawn yet; gives its group. */
  chunk(entries) {
    const node = el("div", "chunk");
    node.dataset.n = String(this.chunks.length);
    const height = entries.reduce((sum, entry) => sum + GUESSED_HEIGHT[entry.kind], 0);
    node.style.minHeight = `${height}px`;
    node.style.containIntrinsicSize = `auto ${height}px`;
    const chunk = { node, entries, height, isDrawn: false, isNear: false };
    this.chunks.push(chunk);
    let group = this.groups.at(-1);
    if (!group || group.chunks.length >= PER_GROUP) {
      group = { node: el("div", "group"), chunks: [], isNear: false };
      group.node.dataset.n = String(this.groups.length);
      this.groups.push(group);
      this.watchGroups.observe(group.node);
    }
    group.chunks.push(chunk);
    group.node.append(node);
    if (group.isNear) this.watch.observe(node);
    return group;
  }

  /** Draws a piece: at once where its events are at hand, else when they have come. */
  draw(chunk) {
    if (!chunk || chunk.isDrawn) return Promise.resolve();
    chunk.isWanted = true;
    if (this.source.has(chunk.entries)) {
      this.put(chunk);
      return Promise.resolve();
    }
    return this.load(chunk);
  }

  /** Asks for the events of a piece, and draws it if it is still near the screen or wanted then. */
  load(chunk) {
    if (chunk.coming) return chunk.coming;
    this.coming += 1;
    chunk.coming = this.source.load(chunk.entries).then(() => {
      if (chunk.isDrawn || !chunk.node.isConnected) return;
      if (chunk.isWanted) this.put(chunk);
      else if (chunk.isNear) this.near.add(chunk);
      else this.source.drop(chunk.entries);
    }, (error) => {
      if (error.name !== "AbortError") chunk.node.replaceChildren(el("p", "nothing centred", `These events cannot be read: ${error.message}`));
    }).finally(() => {
      chunk.coming = null;
      this.coming -= 1;
      this.drawNear();
    });
    return chunk.coming;
  }

  put(chunk) {
    chunk.isDrawn = true;
    chunk.isWanted = false;
    this.near.delete(chunk);
    chunk.node.replaceChildren(...chunk.entries.map((entry) => this.view.node(entry)));
    chunk.node.style.minHeight = "";
    if (this.isUnfolded) for (const entry of chunk.entries) setFolds(entry.node, true);
    this.drawnOrder.push(chunk);
    this.onDraw(chunk);
  }

  /** Takes back what is far from the screen, where it can be asked for again. */
  letGo() {
    if (!this.source.isRemote) return;
    const some = this.drawnOrder.length - MOST_DRAWN;
    const far = some > 0 ? this.drawnOrder.filter((chunk) => !chunk.isNear && !chunk.entries.includes(this.current)) : [];
    for (const chunk of far.slice(0, Math.min(some, 2))) {
      this.undraw(chunk);
      this.source.drop(chunk.entries);
    }
  }

  /** Adds entries behind all others. */
  append(entries) {
    const more = entries.filter((entry) => this.passes(entry));
    for (const entry of more) {
      entry.place = this.shown.length;
      this.shown.push(entry);
      this.isShown.add(entry);
      const last = this.chunks.at(-1);
      if (last && last.entries.length < PER_CHUNK) {
        last.entries.push(entry);
        if (last.isDrawn) last.node.append(this.view.node(entry));
      } else {
        if (this.chunks.length === 0) this.holder.replaceChildren();
        const group = this.chunk([entry]);
        this.sizeGroup(group);
        if (!group.node.isConnected) this.holder.append(group.node);
      }
    }
  }

  /** Takes back what was drawn. */
  undraw(chunk) {
    chunk.isDrawn = false;
    this.drawnOrder = this.drawnOrder.filter((it) => it !== chunk);
    for (const entry of chunk.entries) entry.node = null;
    chunk.node.replaceChildren();
    chunk.node.style.minHeight = `${chunk.height}px`;
    if (chunk.isNear) this.near.add(chunk);
  }

  /** Draws an entry anew, folded as it was at first. */
  redraw(entry) {
    const before = entry.node;
    entry.node = null;
    before.replaceWith(this.view.node(entry));
    if (entry === this.current) this.point(entry);
  }

  /** Draws what is near the screen, one piece between two frames, so that scrolling goes on. What is on the screen comes first. */
  drawNear() {
    if (this.isDrawing || this.near.size === 0) return;
    this.isDrawing = true;
    requestAnimationFrame(() => {
      this.isDrawing = false;
      const ready = [];
      for (const chunk of this.near) {
        if (chunk.isDrawn) this.near.delete(chunk);
        else if (this.source.has(chunk.entries)) ready.push(chunk);
      }
      const waiting = [...this.near].filter((chunk) => !ready.includes(chunk) && !chunk.coming);
      const [next] = ready.length > 1 ? byDistance(ready) : ready;
      const some = MOST_COMING - this.coming;
      const wanted = some > 0 && waiting.length > 0 ? byDistance(waiting).slice(0, some) : [];
      if (next) {
        this.letGo();
        this.put(next);
      }
      for (const chunk of wanted) {
        this.near.delete(chunk);
        this.load(chunk);
      }
      if (ready.length > 1) this.drawNear();
    });
  }

  /** Draws the rest while nothing else is to do, so that the browser's own search finds it; not without end. */
  drawAhead() {
    const idle = globalThis.requestIdleCallback ?? ((act) => setTimeout(act, 50));
    const next = () => {
      const chunk = this.chunks.slice(0, MOST_AHEAD).find((it) => !it.isDrawn);
      if (!chunk) return;
      this.draw(chunk);
      idle(next);
    };
    idle(next);
  }

  *drawn() {
    for (const chunk of this.chunks) if (chunk.isDrawn) yield* chunk.entries;
  }

  /** The entries that are drawn on the screen and a little around it, from its top on. */
  drawnNear() {
    const top = this.entries[this.topIndex()]?.place ?? 0;
    const at = Math.floor(top / PER_CHUNK);
    const near = [];
    for (let n = Math.max(0, at - 1); n < this.chunks.length && n < at + 40; n += 1) {
      const chunk = this.chunks[n];
      if (chunk.node.getBoundingClientRect().top > 2 * innerHeight) break;
      if (chunk.isDrawn) near.push(...chunk.entries);
    }
    return near;
  }

  /** Makes sure that an entry is in the list and drawn. */
  async reveal(entry) {
    if (!this.isShown.has(entry)) this.showAll();
    await this.draw(this.chunks[Math.floor(entry.place / PER_CHUNK)]);
    if (entry.node) this.point(entry);
  }

  /** Makes an entry the one that keys work on. */
  point(entry) {
    this.current?.node?.classList.remove("is-current");
    this.current = entry;
    entry.node.classList.add("is-current");
  }

  async goto(entry, block = "start") {
    if (!this.isShown.has(entry)) this.showAll();
    const chunk = this.chunks[Math.floor(entry.place / PER_CHUNK)];
    if (!chunk.isDrawn) this.scrollTo(chunk.node, block);
    await this.reveal(entry);
    if (!entry.node) return;
    this.scrollTo(entry.node, block);
    entry.node.focus({ preventScroll: true });
  }

  /** Scrolls to a place, again while what is around it is being drawn. Whoever scrolls meanwhile is not scrolled back. */
  scrollTo(target, block) {
    this.turn?.abort();
    const turn = (this.turn = new AbortController());
    const { signal } = turn;
    for (const happened of ["wheel", "touchmove", "pointerdown", "keydown"]) addEventListener(happened, () => turn.abort(), { signal, passive: true, capture: true });
    let rounds = 0;
    const go = () => {
      if (signal.aborted) return;
      const box = scrollInside(target);
      const bar = 72;
      const want = block === "center" ? Math.max(bar, (innerHeight - Math.min(box.height, innerHeight / 2)) / 2) : bar;
      if (Math.abs(box.top - want) > 2) scrollBy({ top: box.top - want, behavior: "instant" });
      rounds += 1;
      if (rounds < 10) requestAnimationFrame(go);
      else turn.abort();
    };
    go();
  }

  /** The first entry on the screen. */
  topIndex() {
    // What is inside of groups far away is not laid out, so groups first.
    const chunk = firstBelow(firstBelow(this.groups)?.chunks ?? []);
    const entry = chunk?.entries.find((it) => (it.node?.getBoundingClientRect().bottom ?? 0) > 80);
    return entry?.index ?? 0;
  }

  step(by, passes = () => true) {
    let at = this.current && this.isShown.has(this.current) ? this.current.place + by : (this.entries[this.topIndex()]?.place ?? 0);
    while (at >= 0 && at < this.shown.length && !passes(this.shown[at])) at += by;
    if (this.shown[at]) this.goto(this.shown[at]);
  }

  unfoldAll(isUnfolded) {
    this.isUnfolded = isUnfolded;
    const anchor = this.shown[this.entries[this.topIndex()]?.place ?? 0];
    for (const entry of this.drawn()) setFolds(entry.node, isUnfolded);
    if (anchor?.node && scrollY > 100) this.scrollTo(anchor.node, "start");
  }
}

/** The first of these, from top to bottom, that is not above the screen. */
function firstBelow(all) {
  let [low, high] = [0, all.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (all[middle].node.getBoundingClientRect().bottom > 80) high = middle;
    else low = middle + 1;
  }
  return all[low];
}

/** Pieces by how far they are from the middle of the screen. */
function byDistance(chunks) {
  const far = new Map(chunks.map((chunk) => {
    const { top, bottom } = chunk.node.getBoundingClientRect();
    return [chunk, Math.max(0, top - innerHeight / 2, innerHeight / 2 - bottom)];
  }));
  return chunks.sort((a, b) => far.get(a) - far.get(b));
}

/** Scrolls the boxes around a place, such as those of long outputs, until it is inside of them; where it is then. */
function scrollInside(target) {
  let { top, height } = target.getBoundingClientRect();
  const inner = target.startContainer ?? target;
  for (let box = inner.parentElement; box && box !== document.body; box = box.parentElement) {
    const isTall = box.scrollHeight > box.clientHeight + 1;
    const isWide = box.scrollWidth > box.clientWidth + 1;
    if ((!isTall && !isWide) || !/auto|scroll/.test(getComputedStyle(box).overflow)) continue;
    const [place, frame] = [target.getBoundingClientRect(), box.getBoundingClientRect()];
    if (isTall && (place.top < frame.top || place.bottom > frame.bottom)) box.scrollTop += place.top - frame.top - frame.height / 2;
    if (isWide && (place.left < frame.left || place.right > frame.right)) box.scrollLeft += place.left - frame.left - frame.width / 2;
    // What is not on the screen is not laid out in full, and the place may seem to be outside. So the box first.
    top = Math.max(frame.top, Math.min(target.getBoundingClientRect().top, frame.bottom - Math.min(height, frame.height)));
    height = Math.min(height, frame.height);
  }
  return { top, height };
}

export function setFolds(node, isOpen) {
  for (const fold of node.querySelectorAll("details.fold")) {
    if (isOpen) fold.unfold?.();
    else fold.open = false;
  }
}

/** What depends on the entry before: who speaks, which day it is, how long nothing happened. */
export function relate(entries) {
  let speaker = "";
  let agent = "";
  let before = null;
  for (const entry of entries) {
    const { event, kind } = entry;
    if (kind === "user" || kind === "assistant") {
      const now = `${kind}\n${str(event.model)}\n${entry.agent}`;
      entry.hasHead = kind === "user" || now !== speaker;
      speaker = now;
    }
    entry.isFirstOfAgent = entry.agent !== "" && entry.agent !== agent;
    agent = entry.agent;
    const at = timeOf(event);
    if (!at) continue;
    const lines = [];
    if (before && at.toDateString() !== before.toDateString()) lines.push(dayName.format(at));
    else if (before && at - before > SILENCE) lines.push(`${duration(at - before)} later`);
    if (lines.length > 0) entry.before = () => el("p", "gap", ...lines);
    before = at;
  }
}


/** Whether an entry is what an agent notes for itself. */
export const isQuiet = (entry) => !entry.isError && !hasPicture(entry.event) && (QUIET.has(noteKind(entry.event)) || /^(run|step)\./.test(noteKind(entry.event)));
