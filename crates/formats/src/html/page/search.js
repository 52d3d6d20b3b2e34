// Searching all that is said, also what is folded or not yet drawn.

import { count, grouped } from "./text.js";

const MOST_RANGES = 2000;

export class Search {
  constructor(pages) {
    this.pages = pages;
    this.query = "";
    this.matches = [];
    this.found = new Set();
    this.at = -1;
    this.box = document.getElementById("find");
    this.count = document.getElementById("found");
    this.marks = typeof Highlight === "function" && CSS.highlights ? new Highlight() : null;
    if (this.marks) CSS.highlights.set("found", this.marks);
    let timer = 0;
    this.box.addEventListener("input", () => {
      clearTimeout(timer);
      timer = setTimeout(() => this.set(this.box.value), this.pages.source.isRemote ? 40 : 140);
    });
    this.box.addEventListener("keydown", async (event) => {
      if (event.key === "Enter") {
        event.preventDefault();
        clearTimeout(timer);
        if (this.box.value.trim().toLowerCase() !== this.query) await this.set(this.box.value);
        this.step(event.shiftKey ? -1 : 1);
      } else if (event.key === "Escape") {
        this.box.value = "";
        this.set("");
        this.box.blur();
      }
    });
    document.getElementById("find-before").addEventListener("click", () => this.step(-1));
    document.getElementById("find-after").addEventListener("click", () => this.step(1));
    this.show();
  }

  /** Looks for something; nothing moves until a match is asked for. */
  async set(query) {
    this.query = query.trim().toLowerCase();
    this.at = -1;
    // Until they are known, what matched before does not count.
    this.matches = [];
    this.found = new Set();
    this.asked?.abort();
    this.asked = new AbortController();
    const { signal } = this.asked;
    try {
      // What was found so far is shown while the rest is looked for.
      const some = (matches) => !signal.aborted && this.take(matches, true);
      const matches = this.query ? await this.pages.source.find(this.query, signal, some) : [];
      if (!signal.aborted) this.take(matches, false);
    } catch {
      if (!signal.aborted) this.take([], false);
    }
  }

  take(matches, isComing) {
    Object.assign(this, { matches, isComing });
    this.found = new Set(matches);
    this.show();
    this.mark();
  }

  /** Goes to the next match, or the one before; the first is that behind what is on the screen. */
  async step(by) {
    if (this.matches.length === 0) return;
    if (this.at < 0) {
      const here = this.pages.current?.index ?? this.pages.topIndex();
      const next = this.matches.findIndex((entry) => entry.index >= here);
      this.at = by > 0 ? (next < 0 ? 0 : next) : (next <= 0 ? this.matches.length : next) - 1;
    } else this.at = (this.at + by + this.matches.length) % this.matches.length;
    const entry = this.matches[this.at];
    await this.pages.reveal(entry);
    if (!entry.node) return;
    this.unfold(entry);
    this.show();
    this.mark();
    const mark = this.firstMark(entry);
    // What is around the match is laid out now: it would move when that is done later.
    const piece = mark?.startContainer.parentElement.closest(".piece");
    for (const it of [piece?.previousElementSibling, piece, piece?.nextElementSibling]) it?.classList.add("is-near");
    this.pages.scrollTo(mark ?? entry.node, "center");
  }

  /** Unfolds what holds a match, and shows more of texts until it can be seen. */
  unfold(entry) {
    if (this.firstMark(entry)) return;
    for (const fold of entry.node.querySelectorAll("details")) fold.unfold?.();
    for (let rounds = 0; rounds < 40 && !this.firstMark(entry); rounds += 1) {
      const more = [...entry.node.querySelectorAll("[data-more]")];
      if (more.length === 0) return;
      for (const it of more) it.click();
    }
  }

  show() {
    const some = this.matches.length;
    this.count.textContent = !this.query ? "" : some === 0 ? "none" : this.at < 0 ? `${grouped.format(some)}${this.isComing ? "…" : ""}` : `${grouped.format(this.at + 1)}/${grouped.format(some)}`;
    this.count.title = this.query ? count(some, "entry matches", "entries match") : "";
    document.body.classList.toggle("is-searching", this.query !== "");
    for (const id of ["find-before", "find-after"]) document.getElementById(id).disabled = some === 0;
  }

  /** Marks the matches in what is drawn. The text itself is not touched. */
  mark() {
    for (const entry of this.marked ?? []) entry.node?.classList.remove("is-match", "is-current-match");
    this.marked = [];
    if (this.query) for (const entry of this.pages.drawn()) this.markEntry(entry);
    this.paint();
  }

  markEntry(entry) {
    if (!this.query || !this.found?.has(entry) || !entry.node) return;
    this.marked.push(entry);
    entry.node.classList.add("is-match");
    if (this.matches[this.at] === entry) entry.node.classList.add("is-current-match");
  }

  /** Marks the words: those that were jumped to, then those near the screen. Far away nobody sees them. */
  paint() {
    if (!this.marks || (!this.query && this.marks.size === 0)) return;
    this.marks.clear();
    if (!this.query) return;
    const now = this.matches[this.at];
    const near = this.pages.drawnNear().filter((entry) => entry !== now && this.found.has(entry));
    const first = now?.node && this.firstMark(now);
    if (first) this.marks.add(first);
    const isFirst = (range) => first && range.startContainer === first.startContainer && range.startOffset === first.startOffset;
    for (const entry of now?.node ? [now, ...near] : near) {
      for (const range of this.ranges(entry.node, isNearScreen)) {
        if (this.marks.size >= MOST_RANGES) return;
        if (!isFirst(range)) this.marks.add(range);
      }
    }
  }

  /** The first match that can be seen: not in what is folded, nor behind the end of a line that is cut. */
  firstMark(entry) {
    for (const range of this.ranges(entry.node)) {
      const parent = range.startContainer.parentElement;
      if (parent?.checkVisibility?.() === false) continue;
      const line = parent?.closest(".told");
      if (line && range.getBoundingClientRect().right > line.getBoundingClientRect().right + 1) continue;
      return range;
    }
    return null;
  }

  /** The matches below a node, in those of its elements that pass; also such as go over several words in colour. */
  *ranges(node, passes = () => true) {
    const walk = document.createTreeWalker(node, NodeFilter.SHOW_TEXT);
    let [line, run] = [null, []];
    for (let text; (text = walk.nextNode()); ) {
      const parent = text.parentElement;
      const next = passes(parent) ? parent.closest(LINES) : null;
      if (next !== line) {
        yield* this.rangesOf(run);
        [line, run] = [next, []];
      }
      if (next) run.push(text);
    }
    yield* this.rangesOf(run);
  }

  *rangesOf(run) {
    // As long as what stands there, character for character.
    const lower = run.map((text) => text.data.replace(/\u0130/g, "i").toLowerCase()).join("");
    let [n, from] = [0, 0];
    const place = (at, isEnd) => {
      while (at - from > run[n].data.length - (isEnd ? 0 : 1)) {
        from += run[n].data.length;
        n += 1;
      }
      return [run[n], at - from];
    };
    for (let at = lower.indexOf(this.query); at >= 0; at = lower.indexOf(this.query, at + this.query.length)) {
      const range = new Range();
      range.setStart(...place(at, false));
      range.setEnd(...place(at + this.query.length, true));
      yield range;
    }
  }
}

// What stands on lines of its own; a match does not go from one to the next.
const LINES = "p, li, pre, .line, .piece, td, th, dt, dd, h1, h2, h3, h4, h5, h6, summary > *, button, figcaption, .chip, .time, article";

/** Whether an element is on the screen, or nearly. */
function isNearScreen(node) {
  const box = node.getBoundingClientRect();
  return box.bottom > -innerHeight && box.top < 2 * innerHeight;
}
