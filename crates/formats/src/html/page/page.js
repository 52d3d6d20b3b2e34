// The page: its list, its outline, its keys.

const PER_CHUNK = 20;
const MOST_AHEAD = 60;
const GUESSED_HEIGHT = { user: 110, assistant: 150, tool: 34, reasoning: 34, note: 28, system: 34 };
// A silence of so many milliseconds is said.
const SILENCE = 20 * 60 * 1000;
// What agents note for themselves, and people seldom want to see.
const QUIET = new Set(["attachment", "context", "file_snapshot", "hook", "mode", "model_call", "progress", "queue", "session", "title", "todo", "turn", "usage", "run", "step"]);

/** The list of entries, drawn piece by piece as they come near the screen. */
class Pages {
  constructor(view, entries, holder) {
    Object.assign(this, { view, entries, holder, shown: [], chunks: [], current: null, isUnfolded: false, near: [] });
    this.bySeq = new Map();
    for (const entry of entries) for (const seq of entry.seqs) if (!this.bySeq.has(seq)) this.bySeq.set(seq, entry);
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
    this.shown = this.entries.filter(passes);
    this.shown.forEach((entry, n) => (entry.place = n));
    this.isShown = new Set(this.shown);
    this.chunks = [];
    const nodes = [];
    for (let at = 0; at < this.shown.length; at += PER_CHUNK) {
      const entries = this.shown.slice(at, at + PER_CHUNK);
      const node = el("div", "chunk");
      node.dataset.n = String(this.chunks.length);
      const height = entries.reduce((sum, entry) => sum + GUESSED_HEIGHT[entry.kind], 0);
      node.style.minHeight = `${height}px`;
      node.style.containIntrinsicSize = `auto ${height}px`;
      this.chunks.push({ node, entries, height, isDrawn: false });
      nodes.push(node);
      this.watch.observe(node);
    }
    if (nodes.length === 0) nodes.push(el("p", "nothing centred", this.entries.length === 0 ? "This session has no events." : "Nothing of this kind."));
    this.holder.replaceChildren(...nodes);
  }

  draw(chunk) {
    if (!chunk || chunk.isDrawn) return;
    chunk.isDrawn = true;
    this.watch.unobserve(chunk.node);
    chunk.node.replaceChildren(...chunk.entries.map((entry) => this.view.node(entry)));
    chunk.node.style.minHeight = "";
    if (this.isUnfolded) for (const entry of chunk.entries) setFolds(entry.node, true);
    this.onDraw(chunk);
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
  reveal(entry) {
    if (!this.isShown.has(entry)) this.showAll();
    this.draw(this.chunks[Math.floor(entry.place / PER_CHUNK)]);
    this.point(entry);
  }

  /** Makes an entry the one that keys work on. */
  point(entry) {
    this.current?.node?.classList.remove("is-current");
    this.current = entry;
    entry.node.classList.add("is-current");
  }

  goto(entry, block = "start") {
    this.reveal(entry);
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

function setFolds(node, isOpen) {
  for (const fold of node.querySelectorAll("details.fold")) {
    if (isOpen) fold.unfold?.();
    else fold.open = false;
  }
}

/** What depends on the entry before: who speaks, which day it is, how long nothing happened. */
function relate(entries) {
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

/** What is known of the session as a whole. */
function headOf(transcript, entries) {
  const source = obj(transcript.source) ?? {};
  const session = obj(transcript.session) ?? {};
  const metrics = obj(transcript.metrics) ?? {};
  const environment = obj(session.environment) ?? {};
  const repo = obj(environment.repo) ?? {};
  const tokens = obj(metrics.tokens) ?? {};
  const facts = [];
  const fact = (name, value, title) => {
    if (!value) return;
    const node = el("div", "", el("dt", "", name), el("dd", "", value));
    if (title) node.title = title;
    facts.push(node);
  };
  fact("Agent", [agentName(str(source.agent)), str(source.agentVersion)].filter(Boolean).join(" "));
  const models = list(metrics.models ?? session.models).map(str).filter(Boolean);
  if (models.length === 0) for (const entry of entries) {
    const model = str(entry.event.model);
    if (model && !models.includes(model) && models.length < 20) models.push(model);
  }
  fact(models.length > 1 ? "Models" : "Model", models.slice(0, 3).join(", ") + (models.length > 3 ? ` and ${models.length - 3} more` : ""), visible(models.join("\n")));
  const [start, end] = [new Date(str(session.startedAt)), new Date(str(session.endedAt))];
  const isKnown = !Number.isNaN(start.getTime());
  if (isKnown) fact("Started", moment.format(start).replace(/:\d\d(?!.*:)/, ""), visible(str(session.startedAt)));
  const ms = num(metrics.durationMs) ?? (isKnown && !Number.isNaN(end.getTime()) ? end - start : null);
  if (ms !== null) fact("Took", duration(ms));
  const prompt = [tokens.input, tokens.cacheRead, tokens.cacheWrite].map(num).filter((n) => n !== null).reduce((a, b) => a + b, 0);
  const output = num(tokens.output);
  const buckets = Object.entries(tokens).filter(([, n]) => num(n) !== null).map(([name, n]) => `${name} ${grouped.format(n)}`);
  if (prompt > 0 || output !== null) fact("Tokens", [prompt > 0 ? `${short(prompt)} in` : "", output !== null ? `${short(output)} out` : ""].filter(Boolean).join(" · "), visible(buckets.join("\n")));
  fact("Cost", dollars(metrics.costUsd ?? null), typeof metrics.costUsd === "undefined" ? "" : visible(`$${metrics.costUsd}`));
  const where = [str(environment.cwd), str(environment.gitBranch) || str(repo.branch), str(repo.commit).slice(0, 10)].filter(Boolean).join(" · ");
  fact("Where", where, visible([str(repo.name), str(repo.remote), str(environment.os), str(environment.shell)].filter(Boolean).join("\n")));
  const title = titleOf(transcript, entries);
  const head = el("header", "session", el("h1", "", title), el("dl", "facts", ...facts));
  const privacy = obj(transcript.privacy) ?? {};
  if (privacy.redactionApplied === true) head.append(el("p", "small", `▒ Redacted${str(privacy.profile) ? ` by the profile “${str(privacy.profile)}”` : ""}: ${count(num(privacy.redactionCount) ?? 0, "place")}.`));
  return { head, title };
}

function titleOf(transcript, entries) {
  const session = obj(transcript.session) ?? {};
  const given = str(session.title) || str(transcript.title);
  if (given) return firstLine(given, 200);
  const first = entries.find((entry) => entry.kind === "user" && str(entry.event.text).trim());
  return (first && firstLine(first.event.text, 90)) || "A session without a title";
}

/** The session at a glance: a cord with a string for everything that happened, and a knot where it failed. */
function stripOf(pages) {
  const { entries } = pages;
  if (entries.length < 8) return null;
  const columns = Math.min(entries.length, 120);
  const node = el("div", columns > 60 ? "strip is-dense" : "strip");
  node.setAttribute("aria-hidden", "true");
  const weights = entries.map((entry) => ({ user: 3, assistant: 2, tool: 1.5, reasoning: 1, note: 0.4, system: 0.6 })[entry.kind]);
  const bars = [];
  for (let n = 0; n < columns; n += 1) {
    const [from, to] = [Math.floor((n * entries.length) / columns), Math.floor(((n + 1) * entries.length) / columns)];
    const part = entries.slice(from, to);
    const lead = part.reduce((best, entry) => (weights[entry.index] > weights[best.index] ? entry : best), part[0]);
    const bar = el("i", `kind-${lead.kind}`);
    if (part.some((entry) => entry.isError)) bar.classList.add("has-error");
    bar.style.height = `${Math.round(25 + 75 * Math.min(1, weights[lead.index] / 3))}%`;
    bar.dataset.at = String((part.find((entry) => entry.isError) ?? lead).index);
    bars.push(bar);
  }
  node.append(...bars);
  node.addEventListener("click", (event) => {
    const at = event.target.dataset?.at;
    if (at !== undefined) pages.goto(entries[Number(at)]);
  });
  return node;
}

/** Which kinds are listed. */
function chipsOf(pages) {
  const kinds = [
    { name: "Messages", has: (entry) => MESSAGES.has(entry.kind), isOn: true },
    { name: "Tools", has: (entry) => entry.kind === "tool", isOn: true },
    { name: "Reasoning", has: (entry) => entry.kind === "reasoning", isOn: true },
    { name: "Notes", has: (entry) => entry.kind === "note" && !isQuiet(entry), isOn: true },
    { name: "Bookkeeping", has: (entry) => entry.kind === "note" && isQuiet(entry), isOn: false },
  ];
  const total = pages.entries.length;
  const node = el("div", "chips");
  node.setAttribute("role", "group");
  node.setAttribute("aria-label", "What is listed");
  let onlyErrors = false;
  const apply = () => pages.list((entry) => (onlyErrors ? entry.isError : kinds.some((kind) => kind.isOn && kind.has(entry))));
  for (const kind of kinds) {
    const some = pages.entries.filter(kind.has).length;
    if (some === 0) continue;
    if (some === total) kind.isOn = true;
    kind.chip = button("", "chip-button", () => {
      kind.isOn = !kind.isOn;
      press(kind.chip, kind.isOn);
      apply();
    });
    kind.chip.append(kind.name, el("span", "n", grouped.format(some)));
    press(kind.chip, kind.isOn);
    node.append(kind.chip);
  }
  const bad = pages.entries.filter((entry) => entry.isError).length;
  let only = null;
  if (bad > 0) {
    only = button("", "chip-button only-errors", () => {
      onlyErrors = !onlyErrors;
      press(only, onlyErrors);
      apply();
    });
    only.append("✕ Errors only", el("span", "n", grouped.format(bad)));
    press(only, false);
    node.append(only);
  }
  pages.showAll = () => {
    onlyErrors = false;
    if (only) press(only, false);
    for (const kind of kinds) {
      kind.isOn = true;
      if (kind.chip) press(kind.chip, true);
    }
    apply();
  };
  apply();
  return node;
}

const isQuiet = (entry) => !entry.isError && !hasPicture(entry.event) && (QUIET.has(noteKind(entry.event)) || /^(run|step)\./.test(noteKind(entry.event)));
const press = (node, isOn) => node.setAttribute("aria-pressed", String(isOn));

const MOST_OUTLINED = 1500;

/** The outline: what people asked, and what was answered below it. */
function outline(pages, node) {
  let picked = pages.entries.filter((entry) => (entry.kind === "user" || entry.kind === "assistant") && !entry.agent && str(entry.event.text).trim());
  if (picked.length > MOST_OUTLINED) picked = picked.filter((entry) => entry.kind === "user");
  if (picked.length < 2) return () => {};
  const rest = picked.splice(MOST_OUTLINED);
  const links = new Map();
  const items = el("ol");
  for (const entry of picked) {
    const anchor = el("a", "", el("span", "", firstLine(entry.event.text, 90) || "(no words)"));
    anchor.href = `#ev-${entry.seqs[0]}`;
    items.append(el("li", entry.kind === "user" ? "asked" : "answered", anchor));
    links.set(entry, anchor);
  }
  if (rest.length > 0) items.append(el("li", "outline-rest", `… ${grouped.format(rest.length)} more, not in this outline`));
  node.append(el("h2", "", "Outline"), items);
  node.hidden = false;
  document.body.classList.add("with-outline");
  const indexes = picked.map((entry) => entry.index);
  let active = null;
  return () => {
    const top = pages.topIndex();
    let at = indexes.findLastIndex((index) => index <= top + 1);
    if (at < 0) at = 0;
    // Behind the last that is listed, none of them is where the reader is.
    const next = rest.length > 0 && rest[0].index <= top + 1 ? null : links.get(picked[at]);
    if (next === active) return;
    active?.removeAttribute("aria-current");
    active = next;
    if (!next) return;
    next.setAttribute("aria-current", "true");
    const [box, frame] = [next.getBoundingClientRect(), node.getBoundingClientRect()];
    if (frame.height > 0 && (box.top < frame.top + 40 || box.bottom > frame.bottom - 40)) node.scrollTop += box.top - frame.top - frame.height / 2;
  };
}

const THEMES = [["", "◐", "as the system"], ["light", "☀", "light"], ["dark", "☾", "dark"]];

function themes() {
  const node = document.getElementById("theme");
  let at = 0;
  const next = () => {
    at = (at + 1) % THEMES.length;
    const [name, mark, words] = THEMES[at];
    if (name) document.documentElement.dataset.theme = name;
    else delete document.documentElement.dataset.theme;
    node.textContent = mark;
    node.setAttribute("aria-label", `Colours: ${words}`);
  };
  node.addEventListener("click", next);
  return next;
}

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
    search.set(words);
    search.step(1);
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
  const pages = new Pages(new View(transcript, images), entries, holder);
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
