// The page: which screen is open, the keys of all screens, and what is said of the connection.

import { el } from "./text.js";
import { themes } from "./session.js";
import { hasKey, signIn, whoAmI } from "./api.js";
import { begin, end } from "./live.js";
import { failed, heading, press, waiting } from "./parts.js";
import { openPalette } from "./palette.js";
import { overview } from "./overview.js";
import { sessions } from "./sessions.js";
import { transcript } from "./transcript.js";
import { timeline } from "./timeline.js";
import { context } from "./context.js";
import { ledger, ledgerOfOne } from "./ledger.js";
import { cost, costOfOne } from "./cost.js";
import { find } from "./find.js";
import { run, runs } from "./runs.js";
import { compare } from "./compare.js";
import { shared } from "./shared.js";

/**
 * The screens. Each is `open({ main, params, query, signal, go })`: it draws into `main`, may give back `{ keys, title, moved }`,
 * and ends what it began when `signal` is aborted.
 */
const SCREENS = [
  [/^\/$/, overview],
  [/^\/sessions$/, sessions],
  [/^\/search$/, find],
  [/^\/cost$/, cost],
  [/^\/tools$/, ledger],
  [/^\/runs$/, runs],
  [/^\/runs\/(?<id>[^/]+)$/, run],
  [/^\/compare$/, compare],
  [/^\/shared$/, shared],
  [/^\/signin$/, signin],
  [/^\/t\/(?<id>[^/]+)$/, transcript],
  [/^\/t\/(?<id>[^/]+)\/timeline$/, timeline],
  [/^\/t\/(?<id>[^/]+)\/context$/, context],
  [/^\/t\/(?<id>[^/]+)\/tools$/, ledgerOfOne],
  [/^\/t\/(?<id>[^/]+)\/cost$/, costOfOne],
];

/** Keys that work on every screen. */
const KEYS = [
  ["/", "search everything"],
  ["g then o, s, c, t, r", "overview, sessions, cost, tools, runs"],
  ["Ctrl-K", "commands"],
  ["t", "colours: system, light, dark"],
  ["?", "these keys"],
];
const GO = { o: "/", s: "/sessions", c: "/cost", t: "/tools", r: "/runs" };

const main = document.getElementById("main");
const nav = document.getElementById("nav");
const ask = document.getElementById("ask");
let current = null;
let place = "";

/** Opens an address of the page. */
export function go(address, { replace = false } = {}) {
  const url = new URL(address, location.href);
  if (url.origin !== location.origin) return;
  if (replace) history.replaceState(null, "", url);
  else history.pushState({ from: scrollY }, "", url);
  show();
}

const pathOf = () => location.pathname + location.search;

async function show() {
  if (place === pathOf() && current) {
    current.moved?.();
    return;
  }
  place = pathOf();
  current?.ending.abort();
  const ending = new AbortController();
  const mine = { ending, keys: {}, moved: null };
  current = mine;
  document.body.className = "";
  document.getElementById("outline").hidden = true;
  document.getElementById("bar-title").textContent = "";
  for (const link of nav.querySelectorAll("a")) {
    const isHere = location.pathname === link.pathname || location.pathname.startsWith(`${link.pathname}/`);
    if (isHere) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  const query = new URLSearchParams(location.search);
  if (document.activeElement !== ask) ask.value = location.pathname === "/search" ? (query.get("q") ?? "") : "";
  const found = SCREENS.map(([pattern, open]) => [pattern.exec(location.pathname), open]).find(([match]) => match);
  if (!found) {
    main.replaceChildren(heading("Nothing is here"), el("p", "", "This address is not a screen of Quipu."));
    return;
  }
  const [match, open] = found;
  const params = Object.fromEntries(Object.entries(match.groups ?? {}).map(([name, value]) => [name, decoded(value)]));
  // What stands there stays until the next screen has something to show, unless that takes long.
  const before = main.firstChild;
  const patience = setTimeout(() => !ending.signal.aborted && main.firstChild === before && main.replaceChildren(waiting()), 150);
  try {
    const opened = await open({ main, params, query, signal: ending.signal, go });
    if (ending.signal.aborted) return;
    Object.assign(mine, opened ?? {});
    document.title = opened?.title ? `${opened.title} · Quipu` : "Quipu";
    if (!location.hash && !opened?.keepsScroll) scrollTo(0, 0);
    main.dataset.screen = location.pathname.split("/")[1] || "overview";
    document.body.dataset.screen = main.dataset.screen;
    main.dataset.ready = pathOf();
  } catch (error) {
    if (ending.signal.aborted) return;
    if (error.status === 401 && !hasKey()) go("/signin", { replace: true });
    else {
      main.replaceChildren(failed(error, () => reopen()));
      main.dataset.ready = pathOf();
    }
  } finally {
    clearTimeout(patience);
  }
}

function reopen() {
  place = "";
  show();
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Asks for a key, on a server that wants one. */
async function signin({ main }) {
  const field = el("input");
  field.type = "password";
  field.id = "key";
  field.autocomplete = "off";
  field.required = true;
  field.dataset.uiid = "signin-key";
  const label = el("label", "", "Key");
  label.htmlFor = "key";
  const said = el("p", "lock-said");
  said.setAttribute("role", "alert");
  const button = el("button", "plain", "Sign in");
  button.type = "submit";
  button.dataset.uiid = "signin";
  const form = el("form", "lock", el("h1", "", "This archive needs a key"), el("p", "", "Whoever runs the server makes one with “quipu keys new --scope read”. The key stays in this tab, and is forgotten when you close it."), label, el("div", "lock-row", field, button), said);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    signIn(field.value.trim());
    try {
      const { read } = await whoAmI();
      if (!read) throw new Error("This key may not read.");
      start();
      go("/", { replace: true });
    } catch (error) {
      signIn("");
      said.textContent = error.message;
      field.select();
    }
  });
  main.replaceChildren(form);
  field.focus();
  return { title: "Sign in" };
}

function showKeys() {
  const list = el("dl");
  const all = [...KEYS, ...(current?.help ?? [])];
  for (const [keys, what] of all) list.append(el("div", "", el("dt", "", el("kbd", "", keys)), el("dd", "", what)));
  document.getElementById("keys-list").replaceChildren(list);
  document.getElementById("keys").showModal();
}

function keys(theme) {
  let waits = 0;
  document.addEventListener("keydown", (event) => {
    if ((event.ctrlKey || event.metaKey) && event.key === "k") {
      event.preventDefault();
      openPalette(go);
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if (event.target.closest?.("input, textarea, select, dialog")) return;
    if (waits > Date.now() && Object.hasOwn(GO, event.key)) {
      event.preventDefault();
      waits = 0;
      go(GO[event.key]);
      return;
    }
    waits = 0;
    const own = current?.keys ?? {};
    if (Object.hasOwn(own, event.key)) {
      event.preventDefault();
      own[event.key](event);
    } else if (event.key === "g") waits = Date.now() + 1500;
    else if (event.key === "/") {
      event.preventDefault();
      ask.focus();
      ask.select();
    } else if (event.key === "t") theme();
    else if (event.key === "?") showKeys();
  });
}

/** Looks things up while they are typed. */
function asking() {
  let timer = 0;
  const look = () => {
    clearTimeout(timer);
    const words = ask.value.trim();
    if (words) go(`/search?q=${encodeURIComponent(words)}`, { replace: location.pathname === "/search" });
  };
  ask.addEventListener("input", () => {
    clearTimeout(timer);
    if (location.pathname === "/search") timer = setTimeout(look, 20);
  });
  ask.addEventListener("keydown", (event) => {
    if (event.key === "Enter") look();
    else if (event.key === "Escape") ask.blur();
  });
}

function links() {
  document.addEventListener("click", (event) => {
    if (event.defaultPrevented || event.button !== 0 || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    const link = event.target.closest?.("a[href]");
    if (!link || link.download || link.target || link.origin !== location.origin || link.pathname.startsWith("/api/")) return;
    if (link.pathname + link.search === pathOf() && link.hash) return;
    event.preventDefault();
    go(link.href);
  });
  addEventListener("popstate", () => show());
  addEventListener("hashchange", () => current?.moved?.());
}

const mark = document.getElementById("live-mark");
const banner = document.getElementById("banner");

function connection(isOpen) {
  mark.classList.toggle("is-live", isOpen);
  mark.title = isOpen ? "Live: what agents do shows up by itself" : "Not connected";
  banner.hidden = isOpen;
  banner.textContent = isOpen ? "" : "The server does not answer. What is shown may be old; the page connects again by itself.";
}

function start() {
  begin(connection);
  // A page that a browser keeps aside must not keep its connection.
  addEventListener("pagehide", end);
  addEventListener("pageshow", (event) => event.persisted && begin(connection));
  whoAmI().then((me) => (document.getElementById("nav-shared").hidden = !me.write)).catch(() => {});
}

keys(themes());
asking();
links();
document.getElementById("help").addEventListener("click", showKeys);
document.getElementById("palette-button").addEventListener("click", () => openPalette(go));
show();
start();
