// Text that others wrote, as nodes. Nothing here makes HTML of a string.

export const str = (value) => (typeof value === "string" ? value : "");
export const num = (value) => (typeof value === "number" && Number.isFinite(value) ? value : null);
export const obj = (value) => (value !== null && typeof value === "object" && !Array.isArray(value) ? value : null);
export const list = (value) => (Array.isArray(value) ? value : []);

/** An element of a fixed kind, with children that are nodes or plain text. */
export function el(tag, className, ...children) {
  const node = document.createElement(tag);
  if (className) node.className = className;
  for (const child of children) {
    if (child === null || child === undefined || child === "") continue;
    if (typeof child === "string") put(node, child);
    else node.append(child);
  }
  return node;
}

/** A button. */
export function button(label, className, act) {
  const node = el("button", className, label);
  node.type = "button";
  node.addEventListener("click", act);
  return node;
}

// What a screen would act on, or not show at all: controls, marks of direction, things without width.
const UNSEEN =
  /\x1b(?:\[[0-9;:?<=>]*[ -\/]*[@-~]|\][^\x07\x1b\n]{0,4096}(?:\x07|\x1b\\))|[\0-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\ud800-\udfff]|[\u{e0000}-\u{e0fff}]/gu;
const NAMES = new Map([
  [0x061c, "ALM"], [0x00ad, "SHY"], [0x200b, "ZWSP"], [0x200c, "ZWNJ"], [0x200d, "ZWJ"], [0x200e, "LRM"], [0x200f, "RLM"],
  [0x2028, "LS"], [0x2029, "PS"], [0x202a, "LRE"], [0x202b, "RLE"], [0x202c, "PDF"], [0x202d, "LRO"], [0x202e, "RLO"],
  [0x2060, "WJ"], [0x2066, "LRI"], [0x2067, "RLI"], [0x2068, "FSI"], [0x2069, "PDI"], [0xfeff, "BOM"],
]);
// So many marks in one text are elements of their own; behind them they are plain characters.
const MOST_MARKS = 4000;

const hex = (code) => "U+" + code.toString(16).toUpperCase().padStart(4, "0");

/** What stands for a character that cannot be seen. */
function symbol(char) {
  const code = char.codePointAt(0);
  if (code < 0x20) return String.fromCharCode(0x2400 + code);
  if (code === 0x7f) return "\u2421";
  return NAMES.has(code) ? `⟨${NAMES.get(code)}⟩` : `⟨${hex(code)}⟩`;
}

const isJoined = (char) => char !== undefined && char > "\x7f" && !/\s/u.test(char);

/** The same text with all that cannot be seen made visible, as one string. */
export function visible(text) {
  return text.replace(/\r\n/g, "\n").replace(UNSEEN, (match) => (match.length > 2 && match[0] === "\x1b" ? [...match].map((char) => (char < " " ? symbol(char) : char)).join("") : symbol(match)));
}

/** The same text without colours, for searching. */
export const plain = (text) => (text.includes("\x1b") ? text.replace(/\x1b\[[0-9;:?]*[ -\/]*[@-~]/g, "") : text);

/** Appends text: colours of terminals as colours, what cannot be seen as marks. */
export function put(parent, text) {
  if (text.includes("\r\n")) text = text.replace(/\r\n/g, "\n");
  UNSEEN.lastIndex = 0;
  if (!UNSEEN.test(text)) {
    parent.append(text);
    return;
  }
  UNSEEN.lastIndex = 0;
  let at = 0;
  let marks = 0;
  let style = null;
  const run = (end) => {
    if (end <= at) return;
    const part = text.slice(at, end);
    parent.append(style ? style.node(part) : part);
  };
  for (let match; marks < MOST_MARKS && (match = UNSEEN.exec(text)); ) {
    const found = match[0];
    const end = match.index + found.length;
    if ((found === "\u200d" || found === "\u200c") && isJoined(text[match.index - 1]) && isJoined(text[end])) continue;
    run(match.index);
    at = end;
    marks += 1;
    if (found[0] === "\x1b" && found.length > 2 && found.endsWith("m") && found[1] === "[") {
      style = Colours.after(style, found.slice(2, -1));
      continue;
    }
    const isEscape = found[0] === "\x1b" && found.length > 2;
    const mark = el("span", "unseen");
    mark.append(isEscape ? [...found].map((char) => (char < " " ? symbol(char) : char)).join("") : symbol(found));
    mark.title = isEscape ? "an instruction to a terminal" : hex(found.codePointAt(0));
    parent.append(mark);
  }
  const rest = text.slice(at);
  if (rest) parent.append(style && marks < MOST_MARKS ? style.node(rest) : marks < MOST_MARKS ? rest : visible(rest));
}

/** The colours of a terminal, as far as they make sense on a page. */
class Colours {
  constructor(from) {
    Object.assign(this, { ink: null, paper: null, bold: false, dim: false, italic: false, under: false, strike: false, turned: false }, from);
  }

  /** What holds after an instruction; nothing when all is as it was at first. */
  static after(before, codes) {
    const next = new Colours(before ?? {});
    const numbers = codes.split(/[;:]/).slice(0, 32).map((code) => Number.parseInt(code || "0", 10));
    for (let n = 0; n < numbers.length; n += 1) {
      const code = numbers[n];
      if (code === 0) Object.assign(next, new Colours({}));
      else if (code === 1) next.bold = true;
      else if (code === 2) next.dim = true;
      else if (code === 3) next.italic = true;
      else if (code === 4) next.under = true;
      else if (code === 7) next.turned = true;
      else if (code === 9) next.strike = true;
      else if (code === 22) next.bold = next.dim = false;
      else if (code === 23) next.italic = false;
      else if (code === 24) next.under = false;
      else if (code === 27) next.turned = false;
      else if (code === 29) next.strike = false;
      else if (code >= 30 && code <= 37) next.ink = code - 30;
      else if (code === 39) next.ink = null;
      else if (code >= 40 && code <= 47) next.paper = code - 40;
      else if (code === 49) next.paper = null;
      else if (code >= 90 && code <= 97) next.ink = code - 82;
      else if (code >= 100 && code <= 107) next.paper = code - 92;
      else if (code === 38 || code === 48) {
        const [colour, used] = Colours.wide(numbers.slice(n + 1));
        if (code === 38) next.ink = colour;
        else next.paper = colour;
        n += used;
      }
    }
    const isPlain = Object.values(next).every((value) => value === null || value === false);
    return isPlain ? null : next;
  }

  /** One of 256 colours, or of all. */
  static wide(rest) {
    const byte = (value) => Math.max(0, Math.min(255, value | 0));
    if (rest[0] === 2) return [`rgb(${byte(rest[1])} ${byte(rest[2])} ${byte(rest[3])})`, 4];
    if (rest[0] !== 5) return [null, 1];
    const index = byte(rest[1]);
    if (index < 16) return [index, 2];
    if (index >= 232) {
      const grey = 8 + (index - 232) * 10;
      return [`rgb(${grey} ${grey} ${grey})`, 2];
    }
    const level = (value) => (value === 0 ? 0 : 55 + value * 40);
    const cube = index - 16;
    return [`rgb(${level(Math.floor(cube / 36))} ${level(Math.floor(cube / 6) % 6)} ${level(cube % 6)})`, 2];
  }

  node(text) {
    const node = document.createElement("span");
    const [ink, paper] = this.turned ? [this.paper ?? "turned", this.ink ?? "turned"] : [this.ink, this.paper];
    for (const [name, value] of [["ink", ink], ["paper", paper]]) {
      if (typeof value === "number") node.classList.add(`${name}-${value}`);
      else if (value === "turned") node.classList.add(`${name}-turned`);
      else if (value) node.style[name === "ink" ? "color" : "backgroundColor"] = value;
    }
    for (const name of ["bold", "dim", "italic", "under", "strike"]) if (this[name]) node.classList.add(`sgr-${name}`);
    node.append(text);
    return node;
  }
}

export const grouped = new Intl.NumberFormat("en");
const cents = new Intl.NumberFormat("en", { minimumFractionDigits: 2, maximumFractionDigits: 2 });
export const count = (n, one, many) => `${grouped.format(n)} ${n === 1 ? one : (many ?? `${one}s`)}`;

/** A number of tokens, short. */
export function short(n) {
  if (n < 1000) return String(n);
  if (n < 99950) return `${(n / 1000).toFixed(1)}k`;
  if (n < 999500) return `${Math.round(n / 1000)}k`;
  if (n < 1e9) return `${(n / 1e6).toFixed(1)}M`;
  return `${(n / 1e9).toFixed(1)}G`;
}

/** How long something took. */
export function duration(ms) {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  const seconds = ms / 1000;
  if (seconds < 9.95) return `${seconds.toFixed(1)} s`;
  if (seconds < 59.5) return `${Math.round(seconds)} s`;
  const minutes = Math.round(seconds / 60);
  const whole = Math.round(seconds);
  if (whole < 3570) return `${Math.floor(whole / 60)} min${whole < 600 ? ` ${whole % 60} s` : ""}`;
  if (minutes < 60 * 48) return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
  return `${Math.floor(minutes / 1440)} d ${Math.floor((minutes % 1440) / 60)} h`;
}

/** How many bytes. */
export function size(bytes) {
  if (bytes < 1000) return `${bytes} B`;
  if (bytes < 999500) return `${(bytes / 1000).toFixed(bytes < 9950 ? 1 : 0)} kB`;
  return `${(bytes / 1e6).toFixed(1)} MB`;
}

/** A sum of dollars, from a number or an exact text. */
export function dollars(value) {
  const sum = typeof value === "string" ? Number(value) : value;
  if (typeof sum !== "number" || !Number.isFinite(sum)) return "";
  const sign = sum < 0 ? "-" : "";
  const some = Math.abs(sum);
  // Little is not nothing.
  if (some > 0 && some < 0.0001) return `${sign}<$0.0001`;
  return `${sign}$${some > 0 && some < 0.00995 ? some.toFixed(4) : cents.format(some)}`;
}

/** The first line that says something, without Markdown at its beginning. */
export function firstLine(text, most) {
  const head = plain(text.slice(0, most * 8));
  const line = head.split("\n").map((it) => it.trim()).find((it) => it && !/^(```|~~~|---)/.test(it)) ?? "";
  const bare = line.replace(/^(#{1,6}|>|[-*+]|\d+[.)])\s+/, "").replace(/\[([^\][]+)\]\([^\s()]+\)/g, "$1").replace(/(\*{1,3}|`{1,3})(\S[^*`]*\S|\S)\1/g, "$2");
  return shorten(bare, most);
}

/** The first line as it stands. */
export function firstRaw(text, most) {
  const head = plain(text.slice(0, most * 8));
  return shorten(head.split("\n").map((it) => it.trim()).find(Boolean) ?? "", most);
}

const shorten = (line, most) => (line.length > most ? `${line.slice(0, most - 1).trimEnd()}…` : line);
