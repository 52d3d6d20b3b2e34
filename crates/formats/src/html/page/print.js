// Paper: what is listed, unfolded and in full, as far as a browser can print it.

import { count, el } from "./text.js";
import { PER_CHUNK, setFolds } from "./pages.js";

// So much is printed, which takes a browser minutes already. What is left out is said.
const MOST_PRINTED = { characters: 8_000_000, entries: 6000 };

export function printing(pages, search) {
  let undo = [];
  addEventListener("beforeprint", () => {
    if (undo.length > 0) return;
    let room = MOST_PRINTED.characters;
    for (const chunk of pages.chunks.slice(0, MOST_PRINTED.entries / PER_CHUNK)) {
      if (room <= 0) break;
      const wasDrawn = chunk.isDrawn;
      pages.draw(chunk);
      // What is still on a server cannot be drawn in time.
      if (!chunk.isDrawn) continue;
      if (!wasDrawn) undo.push(() => pages.undraw(chunk));
      for (const entry of chunk.entries) {
        const back = unfoldForPrint(entry, room);
        if (wasDrawn) undo.push(() => back(pages));
        room -= entry.node.textContent.length;
      }
      chunk.isPrinted = true;
    }
    const rest = pages.chunks.filter((chunk) => !chunk.isPrinted);
    for (const chunk of rest) chunk.node.classList.add("not-printed");
    const left = rest.reduce((sum, chunk) => sum + chunk.entries.length, 0);
    const said = el("p", "print-rest", `… ${count(left, "more entry is", "more entries are")} not printed.`);
    if (left > 0) pages.holder.append(said);
    undo.push(() => {
      said.remove();
      for (const chunk of pages.chunks) {
        chunk.isPrinted = false;
        chunk.node.classList.remove("not-printed");
      }
    });
  });
  addEventListener("afterprint", () => {
    for (const act of undo) act();
    undo = [];
    search.mark();
  });
}

/** Unfolds an entry and shows all of its texts, as far as there is room; gives back what undoes that. */
function unfoldForPrint(entry, room) {
  const folded = [...entry.node.querySelectorAll("details.fold:not([open])")];
  const open = [...entry.node.querySelectorAll("details.fold")].map((fold) => fold.open);
  // What is unfolded may hold more that is folded.
  for (let depth = 0; depth < 4 && entry.node.querySelector("details.fold:not([open])"); depth += 1) setFolds(entry.node, true);
  let isLonger = false;
  for (let more; entry.node.textContent.length < room && (more = entry.node.querySelector("[data-more]")); isLonger = true) more.click();
  for (const more of entry.node.querySelectorAll("[data-more]")) more.after(el("p", "print-rest", `… ${more.textContent.replace(/^Show (all: )?/, "")}: not printed.`));
  // A picture that is loaded when it is seen is never seen on paper.
  for (const image of entry.node.querySelectorAll("img")) image.loading = "eager";
  return (pages) => {
    if (!isLonger) {
      for (const fold of folded) fold.open = false;
      for (const it of entry.node.querySelectorAll(".print-rest")) it.remove();
      return;
    }
    pages.redraw(entry);
    entry.node.querySelectorAll("details.fold").forEach((fold, n) => {
      if (open[n]) fold.unfold();
    });
  };
}
