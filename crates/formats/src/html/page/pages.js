// The list of entries, drawn as they come near the screen.

import { duration, el, str } from "./text.js";
import { hasPicture, noteKind, timeOf, wordsOf } from "./model.js";
import { dayName } from "./view.js";

export const PER_CHUNK = 20;
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

// So many pieces are kept drawn where events can be asked for again.
const MOST_DRAWN = 160;

/** The list of entries, drawn piece by piece as they come near the screen. */
export class Pages {
  constructor(view, source, holder) {
    Object.assign(this, { view, source, entries: source.entries, bySeq: source.bySeq, holder, shown: [], chunks: [], current: null, isUnfolded: false, near: [], drawnOrder: [] });
    this.watch = new IntersectionObserver((seen) => {
      for (const it of seen) {
        if (!it.isIntersecting) continue;
        const box = it.boundingClientRect;
        // What is on the screen now; what is near it one by one, so that scrolling goes on.
        if (box.bottom > 0 && box.top < innerHeight) this.draw(this.chunks[it.target.dataset.n]);
        else this.near.push(this.chunks[it.target.dataset.n]);
      }
      this.drawNear();
    }, { rootMargin: "2000px 0px" });
    this.onDraw = () => {};
  }

  /** Lists the entries that pass. */
  list(passes) {
    this.watch.disconnect();
    this.near = [];
    this.passes = passes;
    this.shown = this.entries.filter(passes);
    this.shown.forEach((entry, n) => (entry.place = n));
    this.isShown = new Set(this.shown);
    this.chunks = [];
    this.drawnOrder = [];
    const nodes = [];
    for (let at = 0; at < this.shown.length; at += PER_CHUNK) nodes.push(this.chunk(this.shown.slice(at, at + PER_CHUNK)));
    if (nodes.length === 0) nodes.push(el("p", "nothing centred", this.entries.length === 0 ? "This session has no events." : "Nothing of this kind."));
    this.holder.replaceChildren(...nodes);
  }

  /** A piece of the list that is not drawn yet. */
  chunk(entries) {
    const node = el("div", "chunk");
    node.dataset.n = String(this.chunks.length);
    const height = entries.reduce((sum, entry) => sum + GUESSED_HEIGHT[entry.kind], 0);
    node.style.minHeight = `${height}px`;
    node.style.containIntrinsicSize = `auto ${height}px`;
    this.chunks.push({ node, entries, height, isDrawn: false });
    this.watch.observe(node);
    return node;
  }

  /** Draws a piece: at once where its events are at hand, else when they have come. */
  draw(chunk) {
    if (!chunk || chunk.isDrawn) return Promise.resolve();
    if (this.source.has(chunk.entries)) {
      this.put(chunk);
      return Promise.resolve();
    }
    chunk.coming ??= this.source.load(chunk.entries).then(() => {
      chunk.coming = null;
      if (!chunk.isDrawn && chunk.node.isConnected) this.put(chunk);
    }, (error) => {
      chunk.coming = null;
      if (error.name !== "AbortError") chunk.node.replaceChildren(el("p", "nothing centred", `These events cannot be read: ${error.message}`));
    });
    return chunk.coming;
  }

  put(chunk) {
    chunk.isDrawn = true;
    this.watch.unobserve(chunk.node);
    chunk.node.replaceChildren(...chunk.entries.map((entry) => this.view.node(entry)));
    chunk.node.style.minHeight = "";
    if (this.isUnfolded) for (const entry of chunk.entries) setFolds(entry.node, true);
    this.drawnOrder.push(chunk);
    this.letGo();
    this.onDraw(chunk);
  }

  /** Takes back what is far from the screen, where it can be asked for again. */
  letGo() {
    if (!this.source.isRemote || this.drawnOrder.length <= MOST_DRAWN) return;
    const far = this.drawnOrder.findIndex((chunk) => {
      const box = chunk.node.getBoundingClientRect();
      return box.bottom < -3 * innerHeight - 4000 || box.top > 4 * innerHeight + 4000;
    });
    if (far < 0) return;
    const [chunk] = this.drawnOrder.splice(far, 1);
    chunk.height = chunk.node.getBoundingClientRect().height || chunk.height;
    this.undraw(chunk);
    this.source.drop(chunk.entries);
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
        this.holder.append(this.chunk([entry]));
      }
    }
  }

  /** Takes back what was drawn. */
  undraw(chunk) {
    chunk.isDrawn = false;
    for (const entry of chunk.entries) entry.node = null;
    chunk.node.replaceChildren();
    chunk.node.style.minHeight = `${chunk.height}px`;
    this.watch.observe(chunk.node);
  }

  /** Draws an entry anew, folded as it was at first. */
  redraw(entry) {
    const before = entry.node;
    entry.node = null;
    before.replaceWith(this.view.node(entry));
    if (entry === this.current) this.point(entry);
  }

  /** Draws what is near the screen, one piece between two frames. */
  drawNear() {
    if (this.isDrawing || this.near.length === 0) return;
    this.isDrawing = true;
    requestAnimationFrame(() => {
      this.isDrawing = false;
      this.draw(this.near.pop());
      this.drawNear();
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

  /** Scrolls to a place, again while what is around it is being drawn. */
  scrollTo(target, block) {
    let rounds = 0;
    const turn = (this.turn = {});
    const go = () => {
      if (this.turn !== turn) return;
      const box = scrollInside(target);
      const bar = 72;
      const want = block === "center" ? Math.max(bar, (innerHeight - Math.min(box.height, innerHeight / 2)) / 2) : bar;
      if (Math.abs(box.top - want) > 2) scrollBy({ top: box.top - want, behavior: "instant" });
      rounds += 1;
      if (rounds < 10) requestAnimationFrame(go);
    };
    go();
  }

  /** The first entry on the screen. */
  topIndex() {
    let [low, high] = [0, this.chunks.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.chunks[middle].node.getBoundingClientRect().bottom > 80) high = middle;
      else low = middle + 1;
    }
    const chunk = this.chunks[low];
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
