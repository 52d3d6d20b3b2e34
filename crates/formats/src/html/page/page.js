// The exported page: one session, all of it in the file.

import { count, el, list, obj, str, visible } from "./text.js";
import { entriesOf } from "./model.js";
import { View } from "./view.js";
import { Pages, Whole, relate } from "./pages.js";
import { chipsOf, headOf, outline, press, stripOf, themes } from "./session.js";
import { Search } from "./search.js";
import { printing } from "./print.js";
import { askFor } from "./seal.js";

function keys(pages, search, actions) {
  const isMessage = (entry) => entry.kind === "user";
  const act = {
    j: () => pages.step(1),
    k: () => pages.step(-1),
    u: () => pages.step(1, isMessage),
    i: () => pages.step(-1, isMessage),
    n: () => search.step(1),
    N: () => search.step(-1),
    e: actions.unfold,
    t: actions.theme,
    "/": () => search.box.select(),
    "?": actions.help,
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if (event.target.closest?.("input, textarea, select, dialog")) return;
    if (event.key === "Enter" && pages.current && event.target === pages.current.node) {
      const fold = pages.current.node.querySelector("details.fold");
      if (fold) fold.open ? (fold.open = false) : fold.unfold();
      return;
    }
    if (!Object.hasOwn(act, event.key)) return;
    event.preventDefault();
    act[event.key]();
  });
}

function saving(text, transcript) {
  document.getElementById("save").addEventListener("click", () => {
    const link = el("a");
    link.href = URL.createObjectURL(new Blob([text], { type: "application/json" }));
    const id = (str(transcript.transcriptId) || "session").replace(/[^A-Za-z0-9._-]/g, "_").slice(0, 80);
    link.download = `${id}.json`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60000);
  });
}

/** `#ev-12` is an entry, `#q=words` a search. */
function follow(pages, search) {
  const hash = location.hash.slice(1);
  const entry = /^ev-\d+$/.test(hash) ? pages.bySeq.get(Number(hash.slice(3))) : undefined;
  if (entry) pages.goto(entry);
  else if (hash.startsWith("q=")) {
    let words = hash.slice(2);
    try {
      words = decodeURIComponent(words);
    } catch {
      // As it stands, then.
    }
    search.box.value = words;
    search.set(words).then(() => search.step(1));
  }
}

/** Draws the session. */
function open(text, imagesText) {
  const main = document.getElementById("session");
  let transcript;
  let images;
  try {
    transcript = obj(JSON.parse(text)) ?? {};
    images = new Map(Object.entries(obj(JSON.parse(imagesText)) ?? {}).filter(([, url]) => /^data:image\/(png|jpeg|gif|webp);base64,/.test(str(url))));
  } catch (error) {
    main.replaceChildren(el("p", "wait", `The session in this file cannot be read: ${error.message}`));
    return;
  }
  const entries = entriesOf(list(transcript.events));
  relate(entries);
  const holder = el("div", "events");
  const pages = new Pages(new View(transcript, images), new Whole(entries), holder);
  const { head, title } = headOf(transcript, entries);
  const chips = chipsOf(pages);
  const strip = stripOf(pages);
  if (strip) head.append(strip);
  head.append(chips);
  main.replaceChildren(head, holder, el("footer", "end", el("p", "small", `${count(entries.length, "entry", "entries")}. Written by Quipu; the transcript is in this file as JSON, and nothing is loaded from elsewhere.`)));
  document.getElementById("bar").hidden = false;
  document.getElementById("bar-title").textContent = visible(title);
  document.title = visible(title);
  const nav = document.getElementById("outline");
  const where = outline(pages, nav);
  const search = new Search(pages);
  const theme = themes();
  const dialog = document.getElementById("keys");
  const help = () => dialog.showModal();
  const unfold = document.getElementById("unfold");
  const unfoldAll = () => {
    const isOn = unfold.getAttribute("aria-pressed") !== "true";
    press(unfold, isOn);
    unfold.title = isOn ? "Fold all (e)" : "Unfold all (e)";
    pages.unfoldAll(isOn);
  };
  unfold.addEventListener("click", unfoldAll);
  document.getElementById("help").addEventListener("click", help);
  const toggle = document.getElementById("outline-toggle");
  const setOutline = (isOpen) => {
    document.body.classList.toggle("has-outline", isOpen);
    toggle.setAttribute("aria-expanded", String(isOpen));
  };
  toggle.hidden = nav.hidden;
  toggle.addEventListener("click", () => setOutline(!document.body.classList.contains("has-outline")));
  nav.addEventListener("click", () => setOutline(false));
  keys(pages, search, { unfold: unfoldAll, theme, help });
  printing(pages, search);
  saving(text, transcript);
  holder.addEventListener("pointerdown", (event) => {
    const node = event.target.closest?.(".ev");
    const entry = node && pages.bySeq.get(Number(node.id.slice(3)));
    if (entry) pages.point(entry);
  });
  let isAsked = false;
  const moved = () => {
    if (isAsked) return;
    isAsked = true;
    requestAnimationFrame(() => {
      isAsked = false;
      document.body.classList.toggle("is-scrolled", scrollY > head.offsetHeight * 0.5);
      where();
      search.paint();
    });
  };
  pages.onDraw = (chunk) => {
    chunk.entries.forEach((entry) => search.markEntry(entry));
    moved();
  };
  // What is unfolded or shown in full has to be marked.
  for (const happened of ["toggle", "click"]) holder.addEventListener(happened, moved, { capture: true });
  // Boxes of long outputs scroll as well.
  document.addEventListener("scroll", moved, { passive: true, capture: true });
  addEventListener("hashchange", () => follow(pages, search));
  moved();
  follow(pages, search);
  pages.drawAhead();
}

const text = (id) => document.getElementById(id)?.textContent ?? "";
const seal = text("quipu-sealed");
if (seal) askFor(JSON.parse(seal), open);
else open(text("quipu-transcript"), text("quipu-images") || "{}");
