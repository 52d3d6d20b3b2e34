// Searching all that is said, also what is folded or not yet drawn.

const MOST_RANGES = 2000;

class Search {
  constructor(pages) {
    this.pages = pages;
    this.query = "";
    this.matches = [];
    this.at = -1;
    this.box = document.getElementById("find");
    this.count = document.getElementById("found");
    this.marks = typeof Highlight === "function" && CSS.highlights ? new Highlight() : null;
    if (this.marks) CSS.highlights.set("found", this.marks);
    let timer = 0;
    this.box.addEventListener("input", () => {
      clearTimeout(timer);
      timer = setTimeout(() => this.set(this.box.value), 140);
    });
    this.box.addEventListener("keydown", (event) => {
      if (event.key === "Enter") {
        event.preventDefault();
        clearTimeout(timer);
        if (this.box.value.trim().toLowerCase() !== this.query) this.set(this.box.value);
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
  set(query) {
    this.query = query.trim().toLowerCase();
    this.at = -1;
    this.matches = this.query ? this.pages.entries.filter((entry) => wordsOf(entry).includes(this.query)) : [];
    this.found = new Set(this.matches);
    this.show();
    this.mark();
  }

  /** Goes to the next match, or the one before; the first is that behind what is on the screen. */
  step(by) {
    if (this.matches.length === 0) return;
    if (this.at < 0) {
      const here = this.pages.current?.index ?? this.pages.topIndex();
      const next = this.matches.findIndex((entry) => entry.index >= here);
      this.at = by > 0 ? (next < 0 ? 0 : next) : (next <= 0 ? this.matches.length : next) - 1;
    } else this.at = (this.at + by + this.matches.length) % this.matches.length;
    const entry = this.matches[this.at];
    this.pages.reveal(entry);
    this.unfold(entry);
    this.show();
    this.mark();
    this.pages.scrollTo(this.firstMark(entry) ?? entry.node, "center");
  }

  /** Unfolds what holds a match, and shows more of texts until it can be seen. */
  unfold(entry) {
    if (entry.node.textContent.toLowerCase().includes(this.query)) return;
    for (const fold of entry.node.querySelectorAll("details")) fold.unfold?.();
    for (let rounds = 0; rounds < 40 && !entry.node.textContent.toLowerCase().includes(this.query); rounds += 1) {
      const more = [...entry.node.querySelectorAll("[data-more]")];
      if (more.length === 0) return;
      for (const it of more) it.click();
    }
  }

  show() {
    const some = this.matches.length;
    this.count.textContent = !this.query ? "" : some === 0 ? "none" : this.at < 0 ? `${grouped.format(some)}` : `${grouped.format(this.at + 1)}/${grouped.format(some)}`;
    this.count.title = this.query ? count(some, "entry matches", "entries match") : "";
    document.body.classList.toggle("is-searching", this.query !== "");
    for (const id of ["find-before", "find-after"]) document.getElementById(id).disabled = some === 0;
  }

  /** Marks the matches in what is drawn. The text itself is not touched. */
  mark() {
    for (const entry of this.marked ?? []) entry.node?.classList.remove("is-match", "is-current-match");
    this.marked = [];
    this.marks?.clear();
    if (!this.query) return;
    for (const entry of this.pages.drawn()) this.markEntry(entry);
  }

  markEntry(entry) {
    if (!this.query || !this.found?.has(entry) || !entry.node) return;
    this.marked.push(entry);
    entry.node.classList.add("is-match");
    if (this.matches[this.at] === entry) entry.node.classList.add("is-current-match");
    if (this.marks) for (const range of this.ranges(entry.node)) if (this.marks.size < MOST_RANGES) this.marks.add(range);
  }

  firstMark(entry) {
    for (const range of this.ranges(entry.node)) {
      if (range.startContainer.parentElement?.checkVisibility?.() !== false) return range;
    }
    return null;
  }

  *ranges(node) {
    const walk = document.createTreeWalker(node, NodeFilter.SHOW_TEXT);
    for (let text; (text = walk.nextNode()); ) {
      const lower = text.data.toLowerCase();
      if (lower.length !== text.data.length) continue;
      for (let at = lower.indexOf(this.query); at >= 0; at = lower.indexOf(this.query, at + this.query.length)) {
        const range = new Range();
        range.setStart(text, at);
        range.setEnd(text, at + this.query.length);
        yield range;
      }
    }
  }
}
