// One entry as nodes.

import { button, count, dollars, duration, el, firstLine, firstRaw, grouped, list, num, obj, short, size, str, visible } from "./text.js";
import { copyButton, markdown } from "./markdown.js";
import { changeOf, inputOf, longText, putInput, told } from "./tools.js";
import { givenBack, outputText, picturesOf } from "./output.js";
import { STATUS, durationOf, noteKind, noteText, statusOf, timeOf } from "./model.js";

const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
export const moment = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium", hourCycle: "h23" });
export const dayName = new Intl.DateTimeFormat(undefined, { weekday: "long", day: "numeric", month: "long", year: "numeric" });

// From so many lines or characters on, a message is folded at first.
const LONG_PROMPT = [30, 3000];
const LONG_REPLY = [160, 16000];
// An edit of so few lines is shown without being asked for.
const SMALL_CHANGE = 40;
const MOST_ATTACHED = 100;

/** Draws entries; knows what they have in common. */
export class View {
  constructor(transcript, images) {
    const environment = obj(obj(transcript.session)?.environment);
    this.cwd = str(environment?.cwd);
    this.agent = agentName(str(obj(transcript.source)?.agent));
    this.images = images;
  }

  /** The node of an entry, drawn once. */
  node(entry) {
    entry.node ??= this.draw(entry);
    return entry.node;
  }

  draw(entry) {
    const { event } = entry;
    const node = el("article", `ev ${entry.kind}`);
    node.id = `ev-${entry.seqs[0]}`;
    node.tabIndex = -1;
    if (entry.isError) node.classList.add("is-error");
    if (entry.agent) node.classList.add("sub");
    if (event.superseded === true) node.classList.add("is-superseded");
    if (entry.before) node.append(entry.before());
    node.append(this.time(entry), el("span", "knot"), this.body(entry));
    return node;
  }

  time(entry) {
    const at = timeOf(entry.event);
    const node = el("a", "time", at ? clock.format(at) : "·");
    node.href = `#ev-${entry.seqs[0]}`;
    node.title = at ? `${moment.format(at)} · ${visible(str(entry.event.timestamp))}` : "no time in the log";
    node.setAttribute("aria-label", `Entry ${entry.seqs[0]}${at ? `, ${moment.format(at)}` : ""}: link to it`);
    return node;
  }

  body(entry) {
    const body = el("div", "body");
    if (entry.agent && entry.isFirstOfAgent) body.append(el("p", "agent-label", "Sub-agent ", el("code", "", entry.agent)));
    if (entry.kind === "tool") this.tool(body, entry);
    else if (entry.kind === "reasoning") this.reasoning(body, entry);
    else if (entry.kind === "note") this.note(body, entry);
    else this.message(body, entry);
    return body;
  }

  message(body, entry) {
    const { event, kind } = entry;
    const text = str(event.text);
    if (kind === "system") {
      const isInjected = str(event.type) === "user_message";
      const fold = this.fold(entry, (inner) => this.said(inner, event, text, LONG_REPLY), el("span", "tool-name", isInjected ? "Put in by a program" : "System"), el("span", "told", firstLine(text, 160)));
      body.append(fold);
      return;
    }
    if (entry.hasHead) body.append(this.head(entry));
    this.said(body, event, text, kind === "user" ? LONG_PROMPT : LONG_REPLY);
    for (const note of entry.pasted) this.attachments(body, note);
  }

  head(entry) {
    const { event } = entry;
    const who = entry.kind === "user" ? "User" : this.agent;
    const head = el("header", "head", el("h2", "who", who));
    if (entry.kind === "assistant" && str(event.model)) head.append(el("span", "model", event.model));
    head.append(...badges(event));
    const usage = usageLine(event);
    if (usage) head.append(el("span", "spent", usage));
    const text = str(event.text);
    if (text) head.append(copyButton(() => text));
    return head;
  }

  said(body, event, text, [lines, chars]) {
    const box = el("div", "prose");
    const show = (part) => {
      box.replaceChildren();
      if (part.length > 400000) longText(box, part, "raw");
      else markdown(box, part);
    };
    let end = text.length;
    if (text.length > chars * 1.3 || text.split("\n", lines * 1.3 + 1).length > lines * 1.3) {
      end = 0;
      for (let n = 0; n < lines && end < text.length; n += 1) end = text.indexOf("\n", end) + 1 || text.length;
      end = Math.min(end, chars);
    }
    const blocks = list(event.blocks).map(obj).filter(Boolean);
    if (blocks.length > 0) {
      for (const block of blocks) this.block(body, block);
      this.attachments(body, event);
      return;
    }
    show(text.slice(0, end));
    if (!text && event.opaque !== true && list(event.attachments).length === 0) box.append(el("p", "nothing", "(no text)"));
    body.append(box);
    if (end < text.length) {
      const more = button(`Show all: ${size(text.length - end)} more`, "more", () => {
        show(text);
        more.remove();
      });
      more.dataset.more = "";
      body.append(more);
    }
    this.attachments(body, event);
  }

  /** One of several parts of a message. */
  block(body, block) {
    const text = str(block.text);
    switch (str(block.type)) {
      case "text":
        this.said(body, {}, text, LONG_REPLY);
        return;
      case "thinking":
        body.append(this.fold(null, (inner) => this.said(inner, {}, text, LONG_REPLY), el("span", "tool-name", "Reasoning"), el("span", "told", firstLine(text, 160))));
        return;
      case "command":
        longText(body, text, "command");
        return;
      case "tool_use": {
        const input = inputOf(block);
        body.append(this.fold(null, (inner) => putInput(inner, input, this.cwd), el("span", "tool-name", str(block.name) || "tool"), el("span", "told", told(input, this.cwd))));
        return;
      }
      case "tool_result":
        body.append(this.fold(null, (inner) => {
          longText(inner, outputText(block.content ?? null), "out");
          this.pictures(inner, picturesOf(block.content ?? null));
        }, el("span", "tool-name", "Result"), el("span", "told", str(block.callId))));
        return;
      default:
        longText(body, text || JSON.stringify(block, null, 2), "out");
    }
  }

  reasoning(body, entry) {
    const text = str(entry.event.text);
    if (!text) {
      body.append(el("p", "quiet", "Reasoning", entry.event.opaque === true ? ", which cannot be read" : ", without text"));
      this.attachments(body, entry.event);
      return;
    }
    body.append(this.fold(entry, (inner) => {
      const box = el("div", "prose thought");
      if (text.length > 100000) longText(box, text, "raw");
      else markdown(box, text);
      inner.append(box);
      this.attachments(inner, entry.event);
    }, el("span", "tool-name", "Reasoning"), el("span", "told", firstLine(text, 160))));
  }

  note(body, entry) {
    const { event } = entry;
    const kind = noteKind(event).replaceAll("_", " ");
    const text = noteText(event);
    const line = firstLine(text, 200);
    const raw = obj(event.meta)?.raw ?? obj(event.meta)?.result ?? null;
    const isShort = text.trim().length === line.length && raw === null;
    const label = el("span", "note-kind", entry.isError ? `✕ ${kind}` : kind);
    if (isShort) {
      body.append(el("p", "quiet", label, " ", line, ...badges(event)));
    } else {
      body.append(this.fold(entry, (inner) => {
        if (text) longText(inner, text, "note");
        if (raw !== null) longText(inner, typeof raw === "string" ? raw : JSON.stringify(raw, null, 2), "raw");
      }, label, el("span", "told", line)));
    }
    this.attachments(body, event);
  }

  tool(body, entry) {
    const { event, result } = entry;
    const tool = obj(event.tool) ?? {};
    const given = obj(result?.tool) ?? (str(event.type) === "tool_result" ? tool : null);
    const input = inputOf(tool) ?? inputOf(given);
    const change = changeOf(input);
    const summary = [el("span", "tool-name", str(tool.name) || str(given?.name) || "tool"), el("span", "told", told(input, this.cwd))];
    if (change) summary.push(el("span", "change", el("span", "plus", `+${change.added}`), " ", el("span", "minus", `−${change.taken}`)));
    summary.push(...this.ending(entry));
    const isSmall = change !== null && change.added + change.taken <= SMALL_CHANGE && !entry.agent && !entry.isError;
    const fold = this.fold(entry, (inner) => this.toolBody(inner, entry, input, given, isSmall), ...summary);
    if (isSmall) fold.unfold();
    body.append(fold);
    const failure = entry.isError ? firstRaw(this.failure(entry, given), 200) : "";
    if (failure) body.append(el("p", "failure", failure));
  }

  failure(entry, given) {
    return str(given?.error) || str(entry.result?.error) || outputText(givenBack(given)) || str(entry.result?.text) || str(entry.event.text);
  }

  /** How a call ended, and how long it took: by a sign and a word, not by colour alone. */
  ending(entry) {
    const word = statusOf(entry);
    const parts = [];
    if (!word) parts.push(el("span", "status open", "no result"));
    else {
      const status = STATUS.get(word) ?? { mark: "•", word };
      parts.push(el("span", `status ${STATUS.has(word) ? word : "other"}`, status.mark, status.word ? ` ${status.word}` : el("span", "off-screen", "ok")));
    }
    const ms = durationOf(entry);
    if (ms !== null) parts.push(el("span", "took", duration(ms)));
    const node = el("span", "ending", ...badges(entry.event), ...parts);
    node.title = visible([str(entry.event.model), usageLine(entry.event)].filter(Boolean).join("\n"));
    return [node];
  }

  toolBody(inner, entry, input, given, isSmall) {
    const { event, result } = entry;
    const text = str(event.text);
    if (text && text !== str(obj(event.tool)?.output)) longText(inner, text, "note");
    putInput(inner, input, this.cwd);
    this.attachments(inner, event);
    if (given) {
      const output = outputText(givenBack(given));
      const pictures = picturesOf(givenBack(given));
      const error = str(given.error) || str(result?.error);
      const said = result ? str(result.text) : "";
      if (error && error !== output) inner.append(el("p", "label", "Error")), longText(inner, error, "error");
      if (isSmall && output.length < 200 && !output.includes("\n")) {
        if (output) inner.append(el("p", "small", output));
      } else if (output || (!error && !said && pictures.length === 0)) {
        inner.append(el("p", "label", "Result"));
        if (output) longText(inner, output, entry.isError ? "error" : "out");
        else inner.append(el("p", "nothing", "(nothing)"));
      }
      if (said && said !== output && said !== error) longText(inner, said, "out");
      this.pictures(inner, pictures);
      if (result) this.attachments(inner, result, new Set(pictures.map((it) => it.sha256)));
    }
    const facts = [usageLine(event), str(event.model), str(obj(event.tool)?.callId)].filter(Boolean);
    if (facts.length > 0 && !isSmall) inner.append(el("p", "small", facts.join(" · ")));
    putRedactions(inner, event);
    if (result) putRedactions(inner, result);
  }

  /** Something folded whose inside is drawn when it is first seen. */
  fold(entry, fill, ...summary) {
    const node = el("details", "fold", el("summary", "", ...summary));
    const inner = el("div", "inside");
    node.append(inner);
    let isFilled = false;
    const fillOnce = () => {
      if (isFilled) return;
      isFilled = true;
      fill(inner);
    };
    node.addEventListener("toggle", () => node.open && fillOnce());
    node.unfold = () => {
      fillOnce();
      node.open = true;
    };
    return node;
  }

  /** What is attached to an event, but for what is drawn already. */
  attachments(body, event, drawn = new Set()) {
    const all = list(event.attachments).map(obj).filter((it) => it && !drawn.has(it.sha256));
    this.shelf(body, all, (it) => this.attachment(it, this.images.get(str(it.sha256), it)));
    if (str(event.type) !== "tool_call" && str(event.type) !== "tool_result") putRedactions(body, event);
  }

  /** The pictures inside of a result. */
  pictures(body, all) {
    this.shelf(body, all, (it) => this.attachment(it, it.source ?? this.images.get(it.sha256, it)));
  }

  shelf(body, all, draw) {
    if (all.length === 0) return;
    const box = el("div", "attachments", ...all.slice(0, MOST_ATTACHED).map(draw));
    if (all.length > MOST_ATTACHED) box.append(el("span", "chip", `… ${grouped.format(all.length - MOST_ATTACHED)} more, not shown`));
    body.append(box);
  }

  /** A picture whose bytes are in this page, or what is known of an attachment. The address is never one from a log. */
  attachment(it, source) {
    const what = [str(it.mime) || "attachment", num(it.bytes) === null ? "" : size(it.bytes)].filter(Boolean).join(", ");
    if (source) {
      const image = el("img");
      // From a server that wants a key, it comes later.
      if (typeof source === "string") image.src = source;
      else source.then((address) => (image.src = address));
      image.loading = "lazy";
      image.decoding = "async";
      image.alt = `Attached picture: ${visible(what)}`;
      return el("figure", "", image, el("figcaption", "", what));
    }
    const node = el("span", "chip", `Attached: ${what}`);
    if (str(it.sha256)) node.title = visible(`sha256 ${it.sha256}`);
    return node;
  }
}

export function agentName(agent) {
  const known = new Map([["claude-code", "Claude Code"], ["codex", "Codex"], ["gemini-cli", "Gemini CLI"], ["opencode", "OpenCode"], ["copilot-cli", "Copilot CLI"], ["cursor", "Cursor"], ["amp", "Amp"]]);
  return known.get(agent) ?? (agent || "Assistant");
}

/** What is marked on an event. */
function badges(event) {
  const found = [];
  if (event.superseded === true) found.push("superseded");
  if (event.opaque === true) found.push("not readable");
  if (event.synthetic === true && str(event.type) !== "user_message") found.push("by a program");
  return found.map((text) => el("span", "badge", text));
}

/** The tokens and the cost of a call to the model, on one line. */
function usageLine(event) {
  const usage = obj(event.usage) ?? {};
  const parts = [];
  const prompt = [usage.input, usage.cacheRead, usage.cacheWrite].map(num).filter((n) => n !== null);
  if (prompt.length > 0) parts.push(`${short(prompt.reduce((a, b) => a + b, 0))} in`);
  if (num(usage.output) !== null) parts.push(`${short(usage.output)} out`);
  const cost = dollars(event.costUsd ?? null);
  if (cost) parts.push(cost);
  return parts.join(" · ");
}

function putRedactions(parent, event) {
  const all = list(event.redactions).map(obj).filter(Boolean);
  if (all.length === 0) return;
  const what = all.slice(0, 20).map((it) => [str(it.ruleId), str(it.field)].filter(Boolean).join(" in ")).join("; ");
  parent.append(el("p", "small", `▒ ${count(all.length, "redaction")}: ${what}`));
}
