// A transcript: the conversation first, drawn as it comes near the screen, growing while it is read.

import { copyButton } from "./markdown.js";
import { entriesOf } from "./model.js";
import { Pages, relate } from "./pages.js";
import { chipsOf, stripOf } from "./session.js";
import { Search } from "./search.js";
import { printing } from "./print.js";
import { View } from "./view.js";
import { obj, str } from "./text.js";
import { at, download, get, hasKey, pictureAddress, send } from "./api.js";
import { onAdvance, settled } from "./live.js";
import { agentName, count, duration, el, facts, grouped, link, marks, money, press, projectOf, titleOf, to, tokensOf, visible, when } from "./parts.js";
import { Source } from "./source.js";

const VIEWS = [["", "Conversation"], ["timeline", "Timeline"], ["context", "Context"], ["tools", "Tools"], ["cost", "Cost"]];

/** The head that all views of a transcript share. */
export function transcriptHead(detail, view, ...rest) {
  const { transcript, lineage, spent } = detail;
  const [start, end] = [new Date(str(transcript.started_at)), new Date(str(transcript.ended_at))];
  const models = transcript.models ?? [];
  const where = [projectOf(transcript), str(transcript.branch)].filter(Boolean).join(" · ");
  const tabs = el("nav", "tabs");
  tabs.setAttribute("aria-label", "Views of this transcript");
  for (const [name, label] of VIEWS) {
    const tab = link(to(transcript.id, name), "tab", `view-${name || "conversation"}`, label);
    if (name === view) tab.setAttribute("aria-current", "page");
    tabs.append(tab);
  }
  const title = el("h1", "", titleOf(transcript));
  if (detail.live) title.append(" ", el("span", "badge live", "live"));
  const head = el("header", "session", title, el("p", "head-marks", ...marks(transcript)), facts(
    ["Agent", [agentName(str(transcript.agent)), str(transcript.agent_version)].filter(Boolean).join(" ")],
    models.length > 0 && [models.length > 1 ? "Models" : "Model", models.slice(0, 3).join(", ") + (models.length > 3 ? ` and ${models.length - 3} more` : "")],
    ["Started", when(transcript.started_at)],
    ["Took", Number.isNaN(end - start) ? el("span", "unknown", "unknown") : duration(end - start)],
    ["Tokens", tokensOf(spent.tokens)],
    ["Cost", link(to(transcript.id, "cost"), "quiet-link", "head-cost", money(spent.usd))],
    where && ["Where", where],
  ));
  const related = [];
  if (lineage.parent) related.push(el("span", "", "part of ", relative(lineage.parent)));
  if (lineage.forked_from) related.push(el("span", "", "forked from ", relative(lineage.forked_from)));
  if (lineage.copy_of) related.push(el("span", "", "a copy of ", relative(lineage.copy_of)));
  if (related.length > 0) head.append(el("p", "small related", ...related));
  head.append(tabs, ...rest);
  return head;
}

function relative(it) {
  const name = visible(str(it.title)) || visible(str(it.run_id));
  return it.id ? link(to(it.id), "", `relative-${it.id}`, name) : el("span", "", `${name} (not kept)`);
}

/** Draws entries with what the server knows beyond them: sub-agents in their place, notes of people, the raw event. */
class ServedView extends View {
  constructor(detail, annotations, act) {
    const { transcript } = detail;
    super({ session: { environment: { cwd: str(transcript.cwd) } }, source: { agent: str(transcript.agent) } }, { get: pictureOf });
    Object.assign(this, { detail, act, annotations });
    this.children = new Map(detail.lineage.children.filter((it) => it.call && it.id).map((it) => [it.call, it]));
    this.byRun = new Map(detail.lineage.children.filter((it) => it.id).map((it) => [it.run_id, it]));
  }

  body(entry) {
    const body = super.body(entry);
    const call = str(obj(entry.event.tool)?.callId);
    const child = this.children.get(call) ?? this.byRun.get(str(entry.event.child)) ?? this.byRun.get(str(obj(entry.event.meta)?.childRunId));
    if (child) body.append(this.child(child));
    for (const note of this.annotations.notes.filter((it) => entry.seqs.includes(it.seq))) body.append(noteNode(note));
    const labels = this.annotations.labels.filter((it) => entry.seqs.includes(it.seq));
    if (labels.length > 0) body.append(el("p", "labels", ...labels.map((it) => el("span", "label-chip", it.label))));
    return body;
  }

  /** A sub-agent or a called run, inside the call that began it. */
  child(child) {
    const name = visible(str(child.title)) || visible(child.run_id);
    const fold = this.fold(null, async (inner) => {
      inner.replaceChildren(el("p", "quiet", "Reading…"));
      try {
        const detail = await get(`/api/v1/transcripts/${encodeURIComponent(child.id)}`);
        const page = await get(`/api/v1/transcripts/${encodeURIComponent(child.id)}/events`, { form: "normalized", limit: 300 });
        const annotations = await get(`/api/v1/transcripts/${encodeURIComponent(child.id)}/annotations`);
        const view = new ServedView(detail, annotations, this.act);
        const entries = entriesOf(page.events);
        relate(entries);
        const nodes = entries.map((entry) => {
          const node = view.node(entry);
          node.removeAttribute("id");
          return node;
        });
        inner.replaceChildren(...nodes);
        if (page.more) inner.append(el("p", "quiet", `… ${grouped.format(page.total - page.events.length)} more: `, link(to(child.id), "", `child-rest-${child.id}`, "open it")));
      } catch (error) {
        inner.replaceChildren(el("p", "nothing", `It cannot be read: ${error.message}`));
      }
    }, el("span", "tool-name", "Sub-agent"), el("span", "told", name));
    fold.classList.add("child");
    // Beside the fold: what unfolds may hold nothing else to press.
    const open = link(to(child.id), "child-link", `child-${child.id}`, "open");
    open.setAttribute("aria-label", `Open ${name}`);
    return el("div", "child-line", fold, open);
  }
}

function pictureOf(sha256, it) {
  if (!/^[0-9a-f]{64}$/.test(sha256) || !/^image\/(png|jpeg|gif|webp)$/.test(str(it?.mime))) return undefined;
  return hasKey() ? pictureAddress(sha256) : `/api/v1/blobs/${sha256}`;
}

function noteNode(note) {
  return el("aside", "person-note", el("p", "", note.text), el("p", "small", `${note.by} · `, when(note.at)));
}

/** The screen. */
export async function transcript({ main, params, signal }) {
  const base = `/api/v1/transcripts/${encodeURIComponent(params.id)}`;
  const [detail, cord, annotations] = await Promise.all([get(base, {}, signal), get(`${base}/cord`, {}, signal), get(`${base}/annotations`, {}, signal)]);
  const { id } = detail.transcript;
  const source = new Source(id, cord, signal);
  source.isRemote = true;
  const holder = el("div", "events");
  const view = new ServedView(detail, annotations, null);
  const pages = new Pages(view, source, holder);
  source.onRelate = (entries) => relateNear(source, entries);
  const head = transcriptHead(detail, "");
  head.append(labelsOf(detail, annotations, base));
  head.append(actions(detail, base, pages, annotations));
  const bar = findBar();
  const chips = chipsOf(pages);
  const strip = stripOf(pages);
  if (strip) head.append(strip);
  head.append(chips);
  const foot = el("footer", "end", el("p", "small", footWords(source, detail)));
  const pill = press("", "pill", "new-events", () => scrollTo(0, document.documentElement.scrollHeight));
  pill.hidden = true;
  main.replaceChildren(bar, head, holder, foot, pill);
  document.getElementById("bar-title").textContent = titleOf(detail.transcript);
  const search = new Search(pages);
  // The outline works on what the cord says, since events come later.
  const moved = outlineOf(pages, cord, source, signal);
  let isAsked = false;
  const scrolled = () => {
    if (isAsked || signal.aborted) return;
    isAsked = true;
    requestAnimationFrame(() => {
      isAsked = false;
      document.body.classList.toggle("is-scrolled", scrollY > head.offsetHeight * 0.5);
      moved();
      search.paint();
      if (isAtEnd()) pill.hidden = true;
    });
  };
  pages.onDraw = (chunk) => {
    chunk.entries.forEach((entry) => search.markEntry(entry));
    scrolled();
  };
  for (const happened of ["toggle", "click"]) holder.addEventListener(happened, scrolled, { capture: true });
  document.addEventListener("scroll", scrolled, { passive: true, capture: true, signal });
  holder.addEventListener("pointerdown", (event) => {
    const node = event.target.closest?.(".ev");
    const entry = node?.id && pages.bySeq.get(Number(node.id.slice(3)));
    if (entry?.node) pages.point(entry);
  });
  printing(pages, search);
  follow(id, source, pages, { foot, pill, detail, signal });
  const jump = () => {
    const hash = location.hash.slice(1);
    const seq = /^ev-\d+$/.test(hash) ? Number(hash.slice(3)) : null;
    const entry = seq === null ? null : (pages.bySeq.get(seq) ?? source.callBefore(seq));
    if (entry) pages.goto(entry);
    else if (hash.startsWith("q=")) {
      search.box.value = decodeURIComponent(hash.slice(2));
      search.set(search.box.value).then(() => search.step(1));
    }
  };
  await pages.draw(pages.chunks[0]);
  scrolled();
  jump();
  const isMessage = (entry) => entry.kind === "user";
  const unfold = () => pages.unfoldAll(!pages.isUnfolded);
  return {
    title: titleOf(detail.transcript),
    moved: jump,
    keepsScroll: Boolean(location.hash),
    keys: {
      j: () => pages.step(1),
      k: () => pages.step(-1),
      u: () => pages.step(1, isMessage),
      i: () => pages.step(-1, isMessage),
      x: () => pages.step(1, (entry) => entry.isError),
      n: () => search.step(1),
      N: () => search.step(-1),
      e: unfold,
      f: () => search.box.select(),
      r: () => pages.current && showRaw(base, pages.current),
      m: () => pages.current && writeNote(base, pages, annotations),
      Enter: () => {
        const fold = pages.current?.node?.querySelector("details.fold");
        if (fold) fold.open ? (fold.open = false) : fold.unfold();
      },
    },
    help: [["j k", "next, previous entry"], ["u i", "next, previous message of a person"], ["x", "next error"], ["Enter", "fold or unfold the entry"], ["e", "unfold all, fold all"], ["f", "search this transcript, folds included"], ["n N", "next, previous match"], ["r", "the raw event"], ["m", "write a note on the entry"]],
  };
}

const footWords = (source, detail) => `${count(source.known, "event")}${detail.transcript.path ? ` · read from ${visible(str(detail.transcript.path))}` : ""}`;
const isAtEnd = () => innerHeight + scrollY > document.documentElement.scrollHeight - 120;

/** What depends on the entry before, for entries that have just come. */
function relateNear(source, entries) {
  const first = entries[0]?.index ?? 0;
  const last = entries.at(-1)?.index ?? 0;
  const near = source.entries.slice(Math.max(0, first - 1), last + 1).filter((entry) => entry.event);
  relate(near);
  const [before] = near;
  if (before && before.index >= first && before.event && ["user", "assistant"].includes(before.kind)) before.hasHead = true;
}

/** The box that searches this transcript. It has the ids that the search looks for. */
function findBar() {
  const box = el("input");
  Object.assign(box, { type: "search", id: "find", placeholder: "Search this transcript", autocomplete: "off", spellcheck: false, maxLength: 400 });
  box.setAttribute("aria-label", "Search this transcript");
  box.dataset.uiid = "find";
  const found = el("output");
  found.id = "found";
  found.setAttribute("aria-live", "polite");
  const step = (id, mark, words) => {
    const button = press(mark, "icon", id, () => {});
    button.id = id;
    button.setAttribute("aria-label", words);
    return button;
  };
  const node = el("search", "find find-here", box, found, step("find-before", "↑", "Match before"), step("find-after", "↓", "Match after"));
  return node;
}

// So many lines of the outline are made at a time.
const OUTLINED = 100;

/** The outline: what people asked, and what was answered below it. It is made piece by piece while nothing else is to do. */
function outlineOf(pages, cord, source, signal) {
  const nav = document.getElementById("outline");
  nav.replaceChildren();
  const lines = cord.lines.filter((line) => line.text.trim());
  if (lines.length < 2) return () => {};
  nav.append(el("h2", "", "Outline"));
  nav.hidden = false;
  document.body.classList.add("with-outline");
  const links = [];
  const idle = globalThis.requestIdleCallback ?? ((act) => setTimeout(act, 30));
  const more = () => {
    if (signal.aborted) return;
    const part = lines.slice(links.length, links.length + OUTLINED);
    const items = el("ol", "outline-part");
    items.style.containIntrinsicSize = `auto ${part.length * 30}px`;
    for (const line of part) {
      const anchor = el("a", "", el("span", "", line.text));
      anchor.href = `#ev-${line.seq}`;
      items.append(el("li", line.person ? "asked" : "answered", anchor));
      links.push(anchor);
    }
    nav.append(items);
    if (links.length < lines.length) idle(more);
    else if (cord.more_lines > 0) nav.append(el("p", "outline-rest", `… ${grouped.format(cord.more_lines)} more, not in this outline`));
    if (links.length === part.length) moved();
  };
  let active = null;
  const moved = () => {
    const top = source.entries[pages.topIndex()]?.seqs[0] ?? 1;
    const n = Math.max(0, lines.findLastIndex((line) => line.seq <= top + 1));
    if (links[n] === active || !links[n]) return;
    active?.removeAttribute("aria-current");
    active = links[n];
    active.setAttribute("aria-current", "true");
    const [box, frame] = [active.getBoundingClientRect(), nav.getBoundingClientRect()];
    if (frame.height > 0 && (box.top < frame.top + 40 || box.bottom > frame.bottom - 40)) nav.scrollTop += box.top - frame.top - frame.height / 2;
  };
  idle(more);
  return moved;
}

/** Takes in what is added while it is read. Scroll and folds stay; whoever is at the end stays there. */
function follow(id, source, pages, { foot, pill, detail, signal }) {
  let unseen = 0;
  let isBusy = false;
  let again = false;
  const grow = async () => {
    if (isBusy) {
      again = true;
      return;
    }
    isBusy = true;
    const wasAtEnd = isAtEnd();
    try {
      do {
        again = false;
        const { added, changed } = await source.grow();
        pages.append(added);
        for (const entry of changed) if (entry.node) pages.redraw(entry);
        unseen += added.length;
      } while ((source.isBehind || again) && !signal.aborted);
      foot.firstChild.textContent = footWords(source, detail);
      if (wasAtEnd) {
        unseen = 0;
        scrollTo({ top: document.documentElement.scrollHeight });
      } else if (unseen > 0) {
        pill.textContent = `${count(unseen, "new entry", "new entries")} ↓`;
        pill.hidden = false;
      }
    } catch (error) {
      // The next change tries again.
      if (!signal.aborted && error.status !== 0) console.warn(`What was added cannot be read: ${error.message}`);
    } finally {
      isBusy = false;
    }
  };
  const soon = settled(grow, 60);
  onAdvance((change) => {
    if (change.transcript === id || change.reload) soon();
  }, signal);
  pill.addEventListener("click", () => {
    unseen = 0;
    pill.hidden = true;
  });
}

/** Labels of people, and a way to add one. */
function labelsOf(detail, annotations, base) {
  const row = el("p", "labels");
  const draw = () => {
    row.replaceChildren(...annotations.labels.filter((it) => it.seq === null).map((it) => {
      const node = el("span", "label-chip", it.label);
      const remove = press("×", "label-remove", `label-remove-${it.label}`, async () => {
        await send("DELETE", `${base}/labels`, { label: it.label });
        Object.assign(annotations, await get(`${base}/annotations`));
        draw();
      });
      remove.setAttribute("aria-label", `Remove the label ${visible(it.label)}`);
      node.append(remove);
      return node;
    }), ...annotations.notes.filter((it) => it.seq === null).map(noteNode), press("+ label", "label-add", "label-add", () => {
      askWords("A label for this transcript", "", "Add", async (words) => {
        await send("POST", `${base}/labels`, { label: words });
        Object.assign(annotations, await get(`${base}/annotations`));
        draw();
      });
    }));
  };
  draw();
  return row;
}

/** Asks for words in a dialog. */
function askWords(title, value, verb, act, isLong = false) {
  const field = el(isLong ? "textarea" : "input", "words");
  field.value = value;
  field.required = true;
  field.setAttribute("aria-label", title);
  field.dataset.uiid = "words";
  const said = el("p", "lock-said");
  said.setAttribute("role", "alert");
  const dialog = el("dialog", "ask-words");
  const ok = el("button", "plain", verb);
  ok.dataset.uiid = "words-ok";
  const form = el("form", "", el("h2", "", title), field, said, el("div", "dialog-row", press("Cancel", "plain", "words-cancel", () => dialog.close()), ok));
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    try {
      await act(field.value.trim());
      dialog.close();
    } catch (error) {
      said.textContent = `${error.message} ${error.hint ?? ""}`;
    }
  });
  dialog.append(form);
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
  field.focus();
}

function writeNote(base, pages, annotations) {
  const entry = pages.current;
  const [seq] = entry.seqs;
  askWords(`A note on event ${seq}`, "", "Write", async (text) => {
    await send("POST", `${base}/notes`, { text, seq });
    Object.assign(annotations, await get(`${base}/annotations`));
    pages.redraw(entry);
  }, true);
}

/** The event as the exchange format has it. */
async function showRaw(base, entry) {
  const page = await get(`${base}/events`, { from: entry.seqs[0], limit: 1 });
  const text = JSON.stringify(page.events[0], null, 2);
  const dialog = el("dialog", "raw", el("h2", "", `Event ${entry.seqs[0]}`), copyButton(() => text), el("pre", "code", text), el("div", "dialog-row", press("Close", "plain", "raw-close", () => dialog.close())));
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}

/** What can be done with a transcript from here. */
function actions(detail, base, pages, annotations) {
  const { transcript } = detail;
  const command = `quipu resume ${transcript.run_id}`;
  const resume = copyButton(() => command);
  resume.textContent = "Copy resume command";
  resume.title = command;
  resume.className = "more";
  resume.dataset.uiid = "copy-resume";
  return el("p", "actions", press("Export…", "more", "export", () => exportDialog(detail, base)), resume, link(at("/compare", { a: transcript.id }), "more", "compare-with", "Compare…"), press("Note on the entry", "more", "note-add", () => {
    if (!pages.current) pages.step(1);
    if (pages.current) writeNote(base, pages, annotations);
  }));
}

const PROFILES = [["", "as it is, secrets included"], ["team", "team: secrets and personal data removed"], ["research", "research: anonymised"], ["public", "public: only what may be published"]];

/** Exports, after a look at what a profile removes. */
async function exportDialog(detail, base) {
  const formats = await get("/api/v1/formats");
  const pick = (label, uiid, options) => {
    const select = el("select", "", ...options.map(([value, words]) => Object.assign(el("option", "", words), { value })));
    select.id = uiid;
    select.dataset.uiid = uiid;
    const name = el("label", "", label);
    name.htmlFor = uiid;
    return [name, select];
  };
  const [formatName, format] = pick("Format", "export-format", formats.map((it) => [it.name, `${it.name}: ${it.about}`]));
  const [profileName, profile] = pick("For whom", "export-profile", PROFILES);
  profile.value = "team";
  const review = el("div", "review");
  review.setAttribute("aria-live", "polite");
  const look = async () => {
    review.replaceChildren(el("p", "quiet", "Looking…"));
    if (!profile.value) {
      review.replaceChildren(el("p", "", "Nothing is removed. Secrets in this transcript are in the export."));
      return;
    }
    try {
      const preview = await get(`${base}/redaction`, { profile: profile.value });
      const rules = preview.rules.filter((rule) => rule.removed > 0).map((rule) => `${rule.rule} ${grouped.format(rule.removed)}`);
      review.replaceChildren(el("p", "", preview.removed === 0 ? "This profile finds nothing to remove." : `${count(preview.removed, "place")} would be removed: ${rules.join(", ")}.`), preview.nearly > 0 ? el("p", "small", `${count(preview.nearly, "place")} look like findings, but not enough to be removed.`) : "");
    } catch (error) {
      review.replaceChildren(el("p", "nothing", error.message));
    }
  };
  profile.addEventListener("change", look);
  const said = el("p", "lock-said");
  const dialog = el("dialog", "export", el("h2", "", "Export this transcript"), formatName, format, profileName, profile, review, said, el("div", "dialog-row", press("Cancel", "plain", "export-cancel", () => dialog.close()), press("Download", "plain", "export-go", async () => {
    try {
      await download(at(`${base}/export`, { format: format.value, profile: profile.value }));
      dialog.close();
    } catch (error) {
      said.textContent = error.message;
    }
  })));
  format.value = formats.some((it) => it.name === "html") ? "html" : formats[0]?.name;
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
  look();
}
