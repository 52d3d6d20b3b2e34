// When what went on: steps, sub-agents, model calls and tools as lanes along time. Only what is in sight is drawn.

import { get } from "./api.js";
import { paced } from "./ledger.js";
import { onAdvance } from "./live.js";
import { chip, count, duration, el, empty, grouped, link, num, press, section, str, table, titleOf, to, visible } from "./parts.js";
import { transcriptHead } from "./transcript.js";

const PAGE = 2500;
// More lanes than this in one band nobody can read; the rest is in the table.
const MOST_LANES = 100;
const ROWS = 50;
const KINDS = { run: "run", step: "step", child_run: "called run", subagent: "sub-agent", model: "model call", tool: "tool call" };
const STATUS = { ok: "", failed: "failed", denied: "not allowed", timeout: "took too long", open: "has not ended", unknown: "nothing says how it ended" };
const BANDS = [["step", "Steps"], ["subagent", "Sub-agents"], ["model", "Model calls"], ["tool", "Tools"], ["inside", "Inside sub-agents"]];
const WORK = new Set(["model", "tool", "subagent", "child_run"]);
const RULER = 22;
const CORD = 30;
const BAND_TITLE = 20;

/** How long something took, as far as it is known. */
function took(span) {
  if (span.ms === null) return el("span", "unknown", "unknown");
  return span.ms === 0 ? "under 1 ms" : duration(span.ms);
}
const tookWords = (span) => (span.ms === null ? "unknown duration" : span.ms === 0 ? "under 1 ms" : duration(span.ms));

const SECOND = /^(.*T\d\d:\d\d:\d\d)(\.\d+)?(.*)$/;

/** A time in milliseconds from `origin`, to the microsecond where the log has it. */
function millis(text, origin) {
  const match = SECOND.exec(str(text));
  if (!match) return null;
  const whole = Date.parse(`${match[1]}${match[3]}`);
  return Number.isNaN(whole) ? null : whole - origin + Number(match[2] ?? 0) * 1000;
}

/** Milliseconds as a clock from zero on, as fine as `step` asks for. */
function clock(ms, step) {
  const sign = ms < 0 ? "-" : "";
  const all = Math.abs(ms);
  if (step < 1 && all < 1000) return `${sign}${Number(all.toFixed(3))} ms`;
  const seconds = Math.floor(all / 1000 + 1e-9);
  const two = (n) => String(n).padStart(2, "0");
  const [h, m, s] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60];
  const rest = step < 1 ? `.${String(Math.round((all - seconds * 1000) * 1000)).padStart(6, "0")}` : step < 1000 ? `.${String(Math.round(all - seconds * 1000)).padStart(3, "0")}` : "";
  return `${sign}${h ? `${h}:${two(m)}` : m}:${two(s)}${rest}`;
}

const STEPS = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 15e3, 3e4, 6e4, 12e4, 3e5, 6e5, 9e5, 18e5, 36e5, 72e5, 108e5, 216e5, 432e5, 864e5, 1728e5, 6048e5, 2592e6, 7776e6, 31536e6];

/** The spans of a transcript, put into lanes of bands as they come. */
class Lanes {
  constructor(page) {
    const { totals } = page;
    this.isTimed = page.axis === "time" && (num(totals.wall_ms) ?? 0) >= 0 && totals.first !== null && totals.first !== totals.last;
    this.origin = Date.parse(str(totals.first).replace(/\.\d+/, "")) || 0;
    this.start = this.isTimed ? millis(totals.first, this.origin) : 1;
    this.end = this.isTimed ? millis(totals.last, this.origin) : page.events + 1;
    this.bands = new Map(BANDS.map(([name, title]) => [name, { name, title, lanes: [] }]));
    this.spans = [];
    this.byNumber = new Map();
    this.undrawn = 0;
    this.unplaced = 0;
  }

  add(raws) {
    for (const raw of raws) {
      const span = {
        n: raw.span, kind: raw.kind, name: visible(str(raw.name)), path: visible(str(raw.path)), stepKind: visible(str(raw.step_kind)), pass: (raw.iterations ?? []).map((it) => it + 1).join("."), attempt: raw.attempt,
        seq: raw.seq_from, seqTo: raw.seq_to, start: raw.start, ms: num(raw.duration_ms), timing: raw.timing, status: raw.status, isCritical: raw.critical, transcript: raw.transcript, child: visible(str(raw.child)),
        isInside: false, from: null, to: null, a: 0, b: 0, band: null,
      };
      const above = this.byNumber.get(raw.parent);
      span.isInside = Boolean(above && (above.kind === "subagent" || above.isInside));
      this.spans.push(span);
      this.byNumber.set(span.n, span);
      this.place(span, raw);
    }
  }

  place(span, raw) {
    if (this.isTimed) {
      let [from, end] = [millis(raw.start, this.origin), millis(raw.end, this.origin)];
      if (from === null && end !== null && span.ms !== null) from = end - span.ms;
      if (end === null && from !== null) end = span.ms !== null ? from + span.ms : span.status === "open" ? this.end : from;
      if (from === null || end === null || end < from) {
        this.unplaced += 1;
        return;
      }
      [span.from, span.to] = [from, end];
    } else [span.from, span.to] = [span.seq, span.seqTo + 1];
    const name = span.kind === "run" || span.kind === "step" ? "step" : span.kind === "subagent" || span.kind === "child_run" ? "subagent" : span.isInside ? "inside" : span.kind;
    const band = this.bands.get(name) ?? this.bands.get("tool");
    let lane = band.lanes.find((it) => it.end <= span.from);
    if (!lane) {
      if (band.lanes.length >= MOST_LANES) {
        this.undrawn += 1;
        return;
      }
      lane = { spans: [], end: 0 };
      band.lanes.push(lane);
    }
    lane.spans.push(span);
    lane.end = span.to;
    span.band = band;
  }
}

/** From times to places: long stretches in which nothing went on are drawn short. */
class Scale {
  constructor(lanes, gaps, isShort) {
    this.start = lanes.start;
    const all = lanes.end - lanes.start;
    this.breaks = [];
    let cut = 0;
    if (isShort) for (const gap of gaps) {
      this.breaks.push({ ...gap });
      cut += gap.to - gap.from;
    }
    const rest = Math.max(all - cut, all * 1e-6);
    const wide = this.breaks.length > 0 ? rest * Math.min(0.02, 0.3 / this.breaks.length) : 0;
    let saved = 0;
    for (const it of this.breaks) {
      it.a = it.from - this.start - saved;
      it.b = it.a + wide;
      saved += it.to - it.from - wide;
    }
    this.length = Math.max(all - saved, 1e-6);
  }

  at(time) {
    let before = null;
    let [low, high] = [0, this.breaks.length - 1];
    while (low <= high) {
      const middle = (low + high) >> 1;
      if (this.breaks[middle].from < time) {
        before = this.breaks[middle];
        low = middle + 1;
      } else high = middle - 1;
    }
    if (!before) return time - this.start;
    if (time >= before.to) return before.b + time - before.to;
    return before.a + ((time - before.from) / (before.to - before.from)) * (before.b - before.a);
  }

  /** The stretches between breaks that are in sight, as times. */
  pieces(from, to) {
    const found = [];
    let [a, time] = [0, this.start];
    for (const it of [...this.breaks, { a: this.length, b: this.length, to: 0 }]) {
      if (it.a > from && a < to) found.push([time + Math.max(0, from - a), time + Math.min(it.a, to) - a]);
      [a, time] = [it.b, it.to];
    }
    return found;
  }
}

/** The gaps that are long enough to be drawn short: longer than a twentieth of the work. */
function longGaps(totals, origin) {
  const busy = num(totals.busy_ms) || num(totals.wall_ms) || 0;
  return (totals.gaps ?? []).filter((gap) => gap.duration_ms > Math.max(1000, busy / 20)).map((gap) => ({ from: millis(gap.from, origin), to: millis(gap.to, origin), ms: gap.duration_ms, isPerson: gap.person, seq: gap.seq })).filter((gap) => gap.from !== null && gap.to > gap.from).sort((one, other) => one.from - other.from);
}

/** The drawing: a canvas of lanes, and a strip of the whole below it. */
class Chart {
  constructor(id, signal) {
    Object.assign(this, { id, signal, view: { from: 0, to: 1 }, pinned: null, hovered: null, isShort: true });
    this.canvas = el("canvas", "timeline-canvas");
    this.map = el("canvas", "timeline-map");
    this.card = el("div", "timeline-card");
    this.card.hidden = true;
    this.said = el("p", "off-screen");
    this.said.setAttribute("aria-live", "polite");
    this.area = el("div", "timeline-area", this.canvas);
    this.area.tabIndex = 0;
    this.area.dataset.uiid = "timeline-lanes";
    this.area.setAttribute("role", "application");
    this.area.setAttribute("aria-roledescription", "timeline");
    this.area.setAttribute("aria-label", "Lanes. Arrow keys move from span to span, Enter opens the event, plus and minus zoom, Home and End go to the ends. The table below has the same spans.");
    this.bar = el("div", "timeline-scroll", this.map);
    this.bar.tabIndex = 0;
    this.bar.id = "timeline-map";
    this.bar.dataset.uiid = "timeline-map";
    this.bar.setAttribute("role", "slider");
    this.bar.setAttribute("aria-label", "Which part of the timeline is in sight");
    this.bar.setAttribute("aria-valuemin", "0");
    this.bar.setAttribute("aria-valuemax", "100");
    this.node = el("div", "timeline-box", this.area, this.card, this.bar, this.said);
    this.listen();
  }

  /** Shows other lanes, or the same with more in them. */
  show(lanes, totals) {
    const isFirst = !this.lanes;
    const wasWhole = isFirst || (this.view.from <= 0 && this.view.to >= this.scale.length);
    if (lanes === this.lanes) {
      this.placeNew();
      this.layout();
      return;
    }
    Object.assign(this, { lanes, totals });
    this.gaps = lanes.isTimed ? longGaps(totals, lanes.origin) : [];
    this.rescale();
    if (wasWhole) this.view = { from: 0, to: this.scale.length };
    this.layout();
  }

  rescale() {
    this.scale = new Scale(this.lanes, this.gaps, this.isShort);
    this.placed = 0;
    this.placeNew();
  }

  /** Gives places to spans that have just come. */
  placeNew() {
    const { spans } = this.lanes;
    for (; this.placed < spans.length; this.placed += 1) {
      const span = spans[this.placed];
      if (span.from === null) continue;
      span.a = this.scale.at(span.from);
      span.b = this.scale.at(span.to);
    }
    this.buckets = null;
  }

  /** Draws long gaps short, or as long as they are. */
  shorten(isShort) {
    this.isShort = isShort;
    this.rescale();
    this.fit();
  }

  layout() {
    this.used = [...this.lanes.bands.values()].filter((band) => band.lanes.length > 0);
    const rows = this.used.reduce((sum, band) => sum + band.lanes.length, 0);
    this.row = rows <= 18 ? 24 : rows <= 50 ? 14 : 7;
    let y = RULER + CORD;
    for (const band of this.used) {
      band.y = y + BAND_TITLE;
      y = band.y + band.lanes.length * this.row + 8;
    }
    this.height = y + 4;
    this.resize();
  }

  resize() {
    const wide = this.node.clientWidth;
    if (!wide || !this.lanes) return;
    this.width = wide;
    const scale = devicePixelRatio || 1;
    for (const [canvas, high] of [[this.canvas, this.height], [this.map, 40]]) {
      canvas.width = Math.round(wide * scale);
      canvas.height = Math.round(high * scale);
      canvas.style.width = `${wide}px`;
      canvas.style.height = `${high}px`;
    }
    this.buckets = null;
    this.colours = null;
    this.draw();
  }

  x(u) {
    return ((u - this.view.from) / (this.view.to - this.view.from)) * this.width;
  }

  u(x) {
    return this.view.from + (x / this.width) * (this.view.to - this.view.from);
  }

  /** Shows from one place to another, as far as there is something. */
  look(from, to) {
    const least = this.lanes.isTimed ? 0.002 : 2;
    const length = this.scale.length;
    const wide = Math.min(length, Math.max(Math.min(least, length), to - from));
    const middle = (from + to) / 2;
    const first = Math.max(0, Math.min(length - wide, middle - wide / 2));
    this.view = { from: first, to: first + wide };
    this.draw();
  }

  zoom(factor, x = this.width / 2) {
    const centre = this.u(x);
    const wide = (this.view.to - this.view.from) / factor;
    const share = x / this.width;
    const from = centre - wide * share;
    this.look(Math.max(0, from), Math.max(0, from) + wide);
  }

  pan(share) {
    const wide = this.view.to - this.view.from;
    this.look(this.view.from + wide * share, this.view.to + wide * share);
  }

  fit() {
    this.view = { from: 0, to: this.scale.length };
    this.draw();
  }

  /** Brings a span into sight, with some room around it. */
  reveal(span, isNear = false) {
    if (span.from === null || !span.band) return;
    const wide = span.b - span.a;
    const now = this.view.to - this.view.from;
    if (isNear) this.look(span.a - Math.max(wide, this.scale.length * 1e-5), span.b + Math.max(wide, this.scale.length * 1e-5));
    else if (span.b < this.view.from || span.a > this.view.to || (span.a < this.view.from && wide < now)) this.look(span.a + wide / 2 - now / 2, span.a + wide / 2 + now / 2);
    const y = this.yOf(span);
    if (y < this.area.scrollTop || y + this.row > this.area.scrollTop + this.area.clientHeight) this.area.scrollTop = Math.max(0, y - this.area.clientHeight / 2);
  }

  yOf(span) {
    return span.band.y + span.band.lanes.findIndex((lane) => has(lane, span)) * this.row;
  }

  draw() {
    if (this.isAsked) return;
    this.isAsked = true;
    requestAnimationFrame(() => {
      this.isAsked = false;
      if (!this.signal.aborted && this.width) this.paint();
    });
  }

  ink() {
    if (this.colours) return this.colours;
    const probe = el("span");
    this.node.append(probe);
    this.colours = {};
    for (const name of ["paper", "sheet", "sunk", "line", "cord", "ink", "soft", "faint", "accent", "accent-soft", "bad", "focus"]) {
      probe.style.color = `var(--${name})`;
      this.colours[name] = getComputedStyle(probe).color;
    }
    this.font = getComputedStyle(probe).fontFamily;
    probe.remove();
    return this.colours;
  }

  paint() {
    const ink = this.ink();
    const pen = this.canvas.getContext("2d");
    const scale = devicePixelRatio || 1;
    pen.setTransform(scale, 0, 0, scale, 0, 0);
    pen.clearRect(0, 0, this.width, this.height);
    pen.textBaseline = "middle";
    this.paintRuler(pen, ink);
    this.paintCord(pen, ink);
    this.paintBreaks(pen, ink);
    for (const band of this.used) {
      pen.fillStyle = ink.faint;
      pen.font = `600 12px ${this.font}`;
      pen.fillText(`${band.title}${band.lanes.length > 1 ? `, up to ${band.lanes.length} at once` : ""}`, 0, band.y - BAND_TITLE / 2);
      band.lanes.forEach((lane, n) => this.paintLane(pen, ink, lane, band.y + n * this.row));
    }
    this.paintMap(ink);
    this.bar.setAttribute("aria-valuenow", String(Math.round(((this.view.from + this.view.to) / 2 / this.scale.length) * 100)));
    this.bar.setAttribute("aria-valuetext", this.rangeWords());
    this.onLook?.();
    this.placeCard();
  }

  rangeWords() {
    if (!this.lanes.isTimed) return `events ${Math.max(1, Math.floor(this.view.from) + 1)} to ${Math.min(this.lanes.end - 1, Math.ceil(this.view.to))} of ${grouped.format(this.lanes.end - 1)}`;
    const [first, last] = this.timesInSight();
    const fine = last - first < 20 ? 0.001 : last - first < 20000 ? 1 : 1000;
    return this.view.from <= 0 && this.view.to >= this.scale.length ? `all of it, ${duration(last - first)}` : `${clock(first, fine)} to ${clock(last, fine)} of ${clock(this.lanes.end - this.lanes.start, 1000)}`;
  }

  timesInSight() {
    const pieces = this.scale.pieces(this.view.from, this.view.to);
    return pieces.length > 0 ? [pieces[0][0] - this.lanes.start, pieces.at(-1)[1] - this.lanes.start] : [0, 0];
  }

  paintRuler(pen, ink) {
    pen.lineWidth = 1;
    pen.font = `11px ${this.font}`;
    const perPixel = (this.view.to - this.view.from) / this.width;
    const least = perPixel * 84;
    const step = this.lanes.isTimed ? (STEPS.find((it) => it >= least) ?? least) : Math.max(1, 10 ** Math.ceil(Math.log10(least)) / (least < 10 ** Math.ceil(Math.log10(least)) / 2 ? 2 : 1));
    let last = -100;
    for (const [from, to] of this.lanes.isTimed ? this.scale.pieces(this.view.from, this.view.to) : [[this.view.from + 1, this.view.to + 1]]) {
      const zero = this.lanes.isTimed ? this.lanes.start : 0;
      for (let n = Math.ceil((from - zero) / step - 1e-9), guard = 0; zero + n * step <= to + 1e-9 && guard < 200; n += 1, guard += 1) {
        const x = Math.round(this.x(this.scale.at(zero + n * step))) + 0.5;
        if (x - last < 56) continue;
        last = x;
        pen.strokeStyle = ink.line;
        pen.beginPath();
        pen.moveTo(x, RULER - 4);
        pen.lineTo(x, this.height);
        pen.stroke();
        pen.fillStyle = ink.faint;
        const words = this.lanes.isTimed ? clock(n * step, step) : grouped.format(n * step);
        const wide = pen.measureText(words).width;
        pen.fillText(words, Math.max(0, Math.min(this.width - wide, x - wide / 2)), 8);
      }
    }
  }

  /** The cord: thick where something went on, dotted where a person was waited for, thin where nobody knows. */
  paintCord(pen, ink) {
    const y = RULER + 8.5;
    pen.fillStyle = ink.cord;
    pen.fillRect(0, y - 1, this.width, 2);
    pen.fillStyle = ink.soft;
    for (const band of this.used) {
      if (band.name === "step" && this.used.length > 1) continue;
      for (const lane of band.lanes) {
        this.sweep(lane, (x, wide) => pen.fillRect(x, y - 3, wide, 6));
      }
    }
    pen.font = `11px ${this.font}`;
    for (const gap of this.lanes.isTimed ? (this.totals.gaps ?? []).slice(0, 400) : []) {
      const x = this.x(this.scale.at(millis(gap.from, this.lanes.origin)));
      const end = this.x(this.scale.at(millis(gap.to, this.lanes.origin)));
      if (end < 0 || x > this.width || end - x < 3) continue;
      const isCut = this.isShort && this.gaps.some((it) => it.seq === gap.seq && it.ms === gap.duration_ms);
      if (isCut) continue;
      pen.fillStyle = ink.paper;
      pen.fillRect(x, y - 4, end - x, 8);
      if (gap.person) {
        pen.fillStyle = ink.accent;
        for (let dot = Math.max(x, (x % 6) - 6) + 2; dot < Math.min(end, this.width) - 1; dot += 6) pen.fillRect(dot, y - 1, 2, 2);
      } else {
        pen.fillStyle = ink.cord;
        pen.fillRect(x, y - 0.5, end - x, 1);
      }
      const brief = gap.duration_ms === 0 ? "under 1 ms" : duration(gap.duration_ms);
      const words = `${gap.person ? "waited for a person" : "nothing told"} ${brief}`;
      const room = Math.min(end, this.width) - Math.max(x, 0);
      const fits = [words, brief].find((it) => pen.measureText(it).width + 4 < room);
      if (fits) {
        pen.fillStyle = gap.person ? ink.accent : ink.faint;
        pen.fillText(fits, Math.max(x, 0) + (room - pen.measureText(fits).width) / 2, y + 13);
      }
    }
  }

  /** Where time was left out. */
  paintBreaks(pen, ink) {
    for (const it of this.scale.breaks) {
      const [x, end] = [this.x(it.a), this.x(it.b)];
      if (end < 0 || x > this.width) continue;
      const middle = (x + end) / 2;
      pen.fillStyle = ink.paper;
      pen.fillRect(x, RULER, end - x, this.height - RULER);
      pen.fillStyle = ink.sunk;
      pen.fillRect(x + 1, RULER, end - x - 2, this.height - RULER);
      pen.strokeStyle = it.isPerson ? ink.accent : ink.faint;
      pen.lineWidth = 1;
      for (const shift of [-2.5, 2.5]) {
        pen.beginPath();
        for (let y = RULER + 1, n = 0; y < RULER + 17; y += 4, n += 1) pen[n === 0 ? "moveTo" : "lineTo"](middle + shift + (n % 2 ? 2 : -2), y);
        pen.stroke();
      }
      if (end - x < 13) continue;
      pen.save();
      pen.translate(middle, RULER + 22);
      pen.rotate(Math.PI / 2);
      pen.font = `11px ${this.font}`;
      pen.fillStyle = it.isPerson ? ink.accent : ink.faint;
      const words = [`${it.isPerson ? "waited for a person" : "nothing told"} ${duration(it.ms)}`, duration(it.ms)].find((text) => pen.measureText(text).width < this.height - RULER - 26);
      if (words) pen.fillText(words, 0, 0);
      pen.restore();
    }
  }

  /** Goes over the spans of a lane that are in sight; what is nearer together than a pixel comes once. */
  sweep(lane, act) {
    const { spans } = lane;
    let [low, high] = [0, spans.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (spans[middle].b < this.view.from) low = middle + 1;
      else high = middle;
    }
    let held = null;
    const give = () => held && act(held.x, Math.max(1.5, held.end - held.x), held);
    for (let n = low; n < spans.length && spans[n].a <= this.view.to; n += 1) {
      const span = spans[n];
      const x = Math.max(-4, this.x(span.a));
      const end = Math.min(this.width + 4, this.x(span.b));
      const isBad = span.status === "failed" || span.status === "timeout" || span.status === "denied";
      if (held && x < held.end + 0.6 && end - held.x < 3) {
        held.end = Math.max(held.end, end);
        held.count += 1;
        held.isBad ||= isBad;
        held.isCritical ||= span.isCritical;
        continue;
      }
      give();
      held = { x, end: Math.max(end, x + 1.5), span, count: 1, isBad, isCritical: span.isCritical };
    }
    give();
  }

  paintLane(pen, ink, lane, y) {
    const high = this.row - (this.row > 10 ? 6 : 2);
    const bar = this.row > 10 ? high - 1 : high;
    pen.font = `12px ${this.font}`;
    this.sweep(lane, (x, wide, held) => {
      const { span } = held;
      const isDenied = span.status === "denied";
      const isFilled = held.isBad && !isDenied;
      // What is too small for its name is darker, so that it can be seen.
      const isSmall = wide < 50 || this.row <= 10;
      pen.fillStyle = isFilled ? ink.bad : span.kind === "model" ? (isSmall ? ink.soft : ink.cord) : span.kind === "tool" ? (isSmall ? ink.faint : ink.line) : isSmall ? ink.cord : ink.sunk;
      const room = wide > 4 ? wide - 1 : wide;
      pen.fillRect(x, y, room, bar);
      if (!isSmall || (isDenied && room > 4)) {
        pen.strokeStyle = isDenied || isFilled ? ink.bad : span.kind === "tool" ? ink.cord : span.kind === "model" ? ink.cord : ink.faint;
        pen.setLineDash(span.status === "open" ? [3, 3] : []);
        pen.lineWidth = 1;
        pen.strokeRect(x + 0.5, y + 0.5, room - 1, bar - 1);
        pen.setLineDash([]);
      }
      if (held.isCritical) {
        pen.fillStyle = ink.accent;
        pen.fillRect(x, y + bar, room, this.row > 10 ? 2.5 : 1);
      }
      if (held.count === 1 && this.row > 18) {
        const inside = Math.min(x + room, this.width) - Math.max(x, 0) - 10;
        if (inside > 40) {
          pen.fillStyle = isFilled ? ink.paper : ink.ink;
          pen.fillText(fitted(pen, `${isFilled ? "✕ " : isDenied ? "⊘ " : ""}${span.name || KINDS[span.kind]}`, span.ms === null ? "" : `  ${tookWords(span)}`, inside), Math.max(x, 0) + 5, y + bar / 2 + 0.5);
        }
      }
    });
    for (const span of [this.hovered, this.pinned]) {
      if (!span || !span.band || !has(lane, span)) continue;
      const x = this.x(span.a);
      const wide = Math.max(3, this.x(span.b) - x);
      pen.strokeStyle = span === this.pinned ? ink.focus : ink.ink;
      pen.lineWidth = 2;
      pen.strokeRect(Math.max(-5, x), y, Math.min(wide, this.width + 10 - Math.max(-5, x)), bar);
    }
  }

  /** The whole in one strip, with what is in sight framed. */
  paintMap(ink) {
    const pen = this.map.getContext("2d");
    const scale = devicePixelRatio || 1;
    const high = 40;
    pen.setTransform(scale, 0, 0, scale, 0, 0);
    pen.clearRect(0, 0, this.width, high);
    this.buckets ??= this.count(Math.max(1, Math.floor(this.width)));
    const { most, busy, bad } = this.buckets;
    pen.fillStyle = ink.cord;
    pen.fillRect(0, 8, this.width, 2);
    for (let x = 0; x < busy.length; x += 1) {
      if (busy[x] > 0) {
        pen.fillStyle = ink.faint;
        pen.fillRect(x, 9, 1, 4 + (busy[x] / most) * 22);
      }
      if (bad[x]) {
        pen.fillStyle = ink.bad;
        pen.fillRect(x - 1, 3, 3, 5);
      }
    }
    const [from, to] = [(this.view.from / this.scale.length) * this.width, (this.view.to / this.scale.length) * this.width];
    pen.globalAlpha = 0.72;
    pen.fillStyle = ink.paper;
    pen.fillRect(0, 0, from, high);
    pen.fillRect(to, 0, this.width - to, high);
    pen.globalAlpha = 1;
    pen.strokeStyle = ink.accent;
    pen.lineWidth = 2;
    const wide = Math.max(6, to - from);
    pen.strokeRect(Math.min(from, this.width - wide) + 1, 1, wide - 2, high - 2);
  }

  /** How much went on at once, for each pixel of the strip. */
  count(wide) {
    const change = new Float32Array(wide + 1);
    const bad = new Uint8Array(wide);
    const per = wide / this.scale.length;
    for (const span of this.lanes.spans) {
      if (span.from === null || !(WORK.has(span.kind) || this.used.length === 1)) continue;
      const from = Math.max(0, Math.min(wide - 1, Math.floor(span.a * per)));
      const to = Math.max(from, Math.min(wide - 1, Math.floor(span.b * per)));
      change[from] += 1;
      change[to + 1] -= 1;
      if (span.status === "failed" || span.status === "timeout") bad[from] = 1;
    }
    const busy = new Float32Array(wide);
    let now = 0;
    let most = 1;
    for (let x = 0; x < wide; x += 1) {
      now += change[x];
      busy[x] = now;
      if (now > most) most = now;
    }
    return { busy, bad, most: Math.min(most, 24) || 1 };
  }

  /** The span at a point. */
  hit(x, y) {
    for (const band of this.used) {
      const n = Math.floor((y - band.y) / this.row);
      if (n < 0 || n >= band.lanes.length) continue;
      const { spans } = band.lanes[n];
      const [before, after] = [this.u(x - 3), this.u(x + 3)];
      const at = this.u(x);
      let [low, high] = [0, spans.length];
      while (low < high) {
        const middle = (low + high) >> 1;
        if (spans[middle].b < before) low = middle + 1;
        else high = middle;
      }
      let best = null;
      for (let it = low; it < spans.length && spans[it].a <= after && it < low + 2000; it += 1) {
        const away = at < spans[it].a ? spans[it].a - at : at > spans[it].b ? at - spans[it].b : 0;
        if (!best || away < best.away) best = { span: spans[it], away };
      }
      return best?.span ?? null;
    }
    return null;
  }

  listen() {
    const { signal } = this;
    const pointers = new Map();
    let drag = null;
    this.canvas.addEventListener("wheel", (event) => {
      if (event.ctrlKey || event.metaKey) {
        event.preventDefault();
        this.zoom(Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.004)), event.offsetX);
      } else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
        event.preventDefault();
        this.pan((event.deltaX || event.deltaY) / this.width);
      }
    }, { passive: false });
    this.canvas.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      pointers.set(event.pointerId, event.offsetX);
      this.canvas.setPointerCapture(event.pointerId);
      drag = { x: event.offsetX, y: event.offsetY, view: { ...this.view }, isMoved: false, spread: pointers.size === 2 ? spread(pointers) : null };
    });
    this.canvas.addEventListener("pointermove", (event) => {
      if (!this.lanes) return;
      if (pointers.has(event.pointerId) && drag) {
        pointers.set(event.pointerId, event.offsetX);
        if (pointers.size === 2 && drag.spread) {
          const now = spread(pointers);
          const wide = ((drag.view.to - drag.view.from) * drag.spread.apart) / Math.max(8, now.apart);
          const centre = drag.view.from + (drag.spread.middle / this.width) * (drag.view.to - drag.view.from);
          drag.isMoved = true;
          const from = centre - (now.middle / this.width) * wide;
          this.look(from, from + wide);
          return;
        }
        const moved = event.offsetX - drag.x;
        if (Math.abs(moved) > 4) drag.isMoved = true;
        if (drag.isMoved) {
          const by = (moved / this.width) * (drag.view.to - drag.view.from);
          this.hovered = null;
          this.look(drag.view.from - by, drag.view.to - by);
        }
        return;
      }
      const span = this.hit(event.offsetX, event.offsetY);
      this.canvas.classList.toggle("is-over", Boolean(span));
      if (span === this.hovered) return;
      this.hovered = span;
      if (!this.pinned) this.tell(span);
      this.draw();
    });
    const up = (event) => {
      const wasClick = drag && !drag.isMoved && event.type === "pointerup";
      pointers.delete(event.pointerId);
      if (pointers.size === 0) drag = null;
      if (wasClick) this.pin(this.hit(event.offsetX, event.offsetY));
    };
    this.canvas.addEventListener("pointerup", up);
    this.canvas.addEventListener("pointercancel", up);
    this.canvas.addEventListener("pointerleave", () => {
      this.hovered = null;
      if (!this.pinned) this.tell(null);
      if (this.lanes) this.draw();
    });
    this.canvas.addEventListener("dblclick", (event) => {
      const span = this.hit(event.offsetX, event.offsetY);
      if (span) this.reveal(span, true);
    });
    this.area.addEventListener("keydown", (event) => this.key(event));
    this.area.addEventListener("focus", () => {
      if (!this.pinned && this.area.matches(":focus-visible")) this.move(1);
    });
    const slide = (event) => {
      const wide = this.view.to - this.view.from;
      const centre = (event.offsetX / this.width) * this.scale.length;
      this.look(centre - wide / 2, centre + wide / 2);
    };
    this.map.addEventListener("pointerdown", (event) => {
      this.map.setPointerCapture(event.pointerId);
      slide(event);
    });
    this.map.addEventListener("pointermove", (event) => {
      if (event.buttons & 1) slide(event);
    });
    this.bar.addEventListener("keydown", (event) => {
      const act = { ArrowLeft: () => this.pan(-0.1), ArrowRight: () => this.pan(0.1), PageUp: () => this.pan(-1), PageDown: () => this.pan(1), Home: () => this.toEnd(-1), End: () => this.toEnd(1) }[event.key];
      if (!act) return;
      event.preventDefault();
      act();
    });
    const fresh = () => {
      this.colours = null;
      if (this.lanes) this.draw();
    };
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", fresh, { signal });
    const themes = new MutationObserver(fresh);
    themes.observe(document.documentElement, { attributes: true });
    const sizes = new ResizeObserver(() => this.node.clientWidth !== this.width && this.resize());
    sizes.observe(this.node);
    signal.addEventListener("abort", () => {
      themes.disconnect();
      sizes.disconnect();
    });
  }

  toEnd(side) {
    const wide = this.view.to - this.view.from;
    if (side < 0) this.look(0, wide);
    else this.look(this.scale.length - wide, this.scale.length);
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const act = {
      ArrowRight: () => this.move(1), ArrowLeft: () => this.move(-1),
      ArrowDown: () => this.beside(1), ArrowUp: () => this.beside(-1),
      PageDown: () => this.pan(0.9), PageUp: () => this.pan(-0.9), Home: () => this.toEnd(-1), End: () => this.toEnd(1),
      Enter: () => this.card.querySelector("a")?.click(), Escape: () => this.pin(null),
    }[event.key];
    if (!act) return;
    event.preventDefault();
    event.stopPropagation();
    act();
  }

  /** The next span in the order of events. */
  move(by) {
    const { spans } = this.lanes;
    let n = this.pinned ? spans.indexOf(this.pinned) + by : by > 0 ? 0 : spans.length - 1;
    while (spans[n] && !spans[n].band) n += by;
    if (spans[n]) this.pin(spans[n]);
  }

  /** What went on at the same time in the next lane. */
  beside(by) {
    if (!this.pinned) {
      this.move(1);
      return;
    }
    const rows = this.used.flatMap((band) => band.lanes);
    const middle = (this.pinned.a + this.pinned.b) / 2;
    for (let n = rows.findIndex((lane) => has(lane, this.pinned)) + by; rows[n]; n += by) {
      const near = rows[n].spans.reduce((best, span) => (!best || Math.abs((span.a + span.b) / 2 - middle) < Math.abs((best.a + best.b) / 2 - middle) ? span : best), null);
      if (near) {
        this.pin(near);
        return;
      }
    }
  }

  pin(span) {
    this.pinned = span;
    this.hovered = null;
    if (span) this.reveal(span);
    this.tell(span);
    this.said.textContent = span ? `${span.name || KINDS[span.kind]}, ${KINDS[span.kind]}, ${tookWords(span)}${STATUS[span.status] ? `, ${STATUS[span.status]}` : ""}. Enter opens event ${span.seq}.` : "";
    this.draw();
  }

  /** Says what a span is, beside it. */
  tell(span) {
    this.card.hidden = !span;
    this.card.classList.toggle("is-pinned", Boolean(span && span === this.pinned));
    this.told = span;
    if (!span) return;
    const about = [KINDS[span.kind], span.stepKind, span.path && span.path !== span.name ? `in ${span.path}` : "", span.pass ? `pass ${span.pass}` : "", span.attempt > 1 ? `attempt ${span.attempt}` : ""].filter(Boolean).join(", ");
    const facts = el("p", "timeline-card-facts", el("strong", "", took(span)), span.timing === "stated" ? " as the log says" : "", this.lanes.isTimed && span.from !== null ? `, ${clock(span.from - this.lanes.start, this.lanes.end - this.lanes.start < 100 ? 0.001 : 1)} after the start` : "");
    this.card.replaceChildren(el("p", "timeline-card-name", span.name || KINDS[span.kind]), el("p", "small", about), facts);
    if (STATUS[span.status]) this.card.append(el("p", ["failed", "timeout", "denied"].includes(span.status) ? "timeline-bad" : "small", STATUS[span.status]));
    if (span.isCritical) this.card.append(el("p", "timeline-critical", "on the critical path"));
    const links = el("p", "timeline-card-links", link(to(this.id, "", span.seq), "", "timeline-open", `Event ${grouped.format(span.seq)}`));
    if (span.transcript) links.append(" · ", link(to(span.transcript, "timeline"), "", "timeline-inside", "its own timeline"));
    this.card.append(links);
    this.placeCard();
  }

  placeCard() {
    const span = this.told;
    if (!span || this.card.hidden || !span.band || !this.width) return;
    const wide = this.card.offsetWidth;
    const x = Math.max(0, this.x(span.a));
    const y = this.yOf(span) - this.area.scrollTop;
    const isBelow = y + this.row + this.card.offsetHeight + 8 < this.area.clientHeight + 60 || y < this.card.offsetHeight;
    this.card.style.left = `${Math.max(0, Math.min(this.width - wide, x))}px`;
    this.card.style.top = `${isBelow ? y + this.row + 2 : y - this.card.offsetHeight - 4}px`;
  }
}

/** Whether a lane has a span; lanes are in the order of time. */
function has(lane, span) {
  const { spans } = lane;
  let [low, high] = [0, spans.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (spans[middle].from < span.from) low = middle + 1;
    else high = middle;
  }
  for (let n = low; n < spans.length && spans[n].from === span.from; n += 1) if (spans[n] === span) return true;
  return false;
}

function spread(pointers) {
  const [one, other] = [...pointers.values()];
  return { apart: Math.abs(one - other), middle: (one + other) / 2 };
}

/** A name with its duration, as much of it as fits. */
function fitted(pen, name, more, room) {
  const short = name.length > 80 ? `${name.slice(0, 79)}…` : name;
  if (pen.measureText(short + more).width <= room) return short + more;
  if (pen.measureText(short).width <= room) return short;
  let n = Math.max(1, Math.floor((short.length * room) / pen.measureText(short).width) - 1);
  while (n > 1 && pen.measureText(`${short.slice(0, n)}…`).width > room) n -= 1;
  return n > 1 ? `${short.slice(0, n)}…` : "";
}

const strong = (text) => el("strong", "", text);
const share = (part, whole) => (whole > 0 ? ` (${part > 0 && part / whole < 0.01 ? "under 1" : Math.round((part / whole) * 100)}\u00a0%)` : "");

/** What all of it comes to, in sentences. */
function sentence(page) {
  const { totals } = page;
  const [wall, busy, waited, idle, overlap, critical] = ["wall_ms", "busy_ms", "waiting_ms", "idle_ms", "overlap_ms", "critical_ms"].map((name) => num(totals[name]));
  if (wall === null) return el("p", "lede", "This log has no times, so how long anything took is ", el("span", "unknown", "unknown"), ". What follows is in the order of events.");
  const ms = (value) => (value === 0 ? "under 1 ms" : duration(value));
  if (page.spans_total > 0 && totals.first === totals.last) return el("p", "lede", "All times in this log are the same, so they say nothing of how long it took. What follows is in the order of events.");
  const words = el("p", "lede", "From the first event to the last it took ", strong(ms(wall)), ".");
  if (page.spans_total === 0) {
    words.append(" The log tells of no step, model call or tool call in it.");
    return words;
  }
  if (busy !== null) words.append(" Work went on for ", strong(ms(busy)), share(busy, wall));
  if (waited) words.append(", it waited ", strong(ms(waited)), share(waited, wall), " for a person");
  if (idle) words.append(", and for ", strong(ms(idle)), share(idle, wall), " the log tells of nothing");
  words.append(".");
  if (overlap) words.append(" For ", strong(ms(overlap)), ` two or more went on at once, ${grouped.format(totals.most_at_once)} at most.`);
  if (critical && totals.critical_total > 0) words.append(" The end had to wait for ", strong(count(totals.critical_total, "span")), " that took ", strong(ms(critical)), ": the critical path.");
  return words;
}

/** Work, waiting and the rest as one cord. */
function balance(totals) {
  const parts = [["busy_ms", "worked", "is-busy"], ["waiting_ms", "waited for a person", "is-person"], ["idle_ms", "nothing told", "is-idle"]].map(([name, words, kind]) => [num(totals[name]), words, kind]).filter(([ms]) => ms);
  const whole = num(totals.wall_ms);
  if (!whole || parts.length === 0) return "";
  const cord = el("div", "timeline-balance");
  cord.setAttribute("role", "img");
  cord.setAttribute("aria-label", parts.map(([ms, words]) => `${words} ${duration(ms)}`).join(", "));
  for (const [ms, words, kind] of parts) {
    const piece = el("span", `timeline-piece ${kind}`);
    piece.style.flexGrow = String(Math.max(0.004, ms / whole));
    piece.title = `${words}: ${duration(ms)}`;
    cord.append(piece);
  }
  const legend = el("p", "timeline-legend", ...parts.map(([ms, words, kind]) => el("span", "", el("i", `timeline-piece ${kind}`), ` ${words} ${duration(ms)}`)));
  return el("div", "", cord, legend);
}

/** What cannot be known from this log. */
function caveats(page, lanes) {
  const { totals } = page;
  const lines = [];
  if (totals.unknown_durations > 0) lines.push(`How long ${count(totals.unknown_durations, "span")} took is unknown.`);
  if (lanes.unplaced > 0) lines.push(`${count(lanes.unplaced, "span has", "spans have")} no place in time, and ${lanes.unplaced === 1 ? "is" : "are"} only in the table.`);
  if (lanes.undrawn > 0) lines.push(`${count(lanes.undrawn, "span overlaps", "spans overlap")} with more than ${MOST_LANES} others, and ${lanes.undrawn === 1 ? "is" : "are"} only in the table.`);
  if (lanes.isTimed && totals.undated > 0) lines.push(`${count(totals.undated, "event has", "events have")} no time.`);
  if (totals.clock_went_back > 0) lines.push(`The clock of the log went back ${totals.clock_went_back === 1 ? "once" : `${grouped.format(totals.clock_went_back)} times`}; times stand as the log has them.`);
  if (totals.orphans > 0) lines.push(`${count(totals.orphans, "result or end", "results or ends")} without a beginning.`);
  const nodes = lines.length > 0 ? [el("p", "small timeline-caveats", lines.join(" "))] : [];
  if (page.unplaced.length > 0) nodes.push(el("p", "small", "Sub-agents that no event names: ", ...page.unplaced.flatMap((it, n) => [n > 0 ? ", " : "", link(to(it.id, "timeline"), "", `unplaced-${it.id}`, visible(str(it.title)) || it.id)])));
  return nodes;
}

const isBad = (span) => span.status === "failed" || span.status === "timeout" || span.status === "denied";

/** The longest spans. Numbers are sorted, which is much faster than sorting all spans. */
function longest(spans, most) {
  const all = Float64Array.from(spans, (span) => span.ms).sort();
  const least = all[Math.max(0, all.length - most)];
  return spans.filter((span) => span.ms >= least).sort((one, other) => other.ms - one.ms || one.n - other.n).slice(0, most);
}

/** The spans as a table: the longest, those on the critical path, those that failed, all in order. */
function spanTable(id, chart, lanes, chosen) {
  const node = el("div", "timeline-table");
  const orders = [["longest", "Longest", (span) => span.ms !== null], ["critical", "Critical path", (span) => span.isCritical], ["failed", "Failed", isBad], ["order", "All in order", () => true]].map(([name, label, isIn]) => {
    const list = lanes.spans.filter(isIn);
    return { name, label, n: list.length, take: (most) => (name === "longest" ? longest(list, most) : list.slice(0, most)) };
  }).filter((it) => it.n > 0);
  let current = (orders.find((it) => it.name === chosen.order) ?? orders.find((it) => it.name === "longest") ?? orders.at(-1))?.name;
  let most = ROWS;
  const redraw = () => {
    const { n: all, take, label } = orders.find((it) => it.name === current);
    const chips = el("div", "chips timeline-chips", ...orders.map((it) => {
      const button = chip(it.label, it.n, `spans-${it.name}`, it.name === current, () => {
        current = it.name;
        chosen.order = it.name;
        most = ROWS;
        redraw();
        node.querySelector(`[data-uiid="spans-${current}"]`)?.focus();
      });
      return button;
    }));
    const rows = take(most).map((span) => {
      const name = link(to(id, "", span.seq), "timeline-name", `span-${span.n}`, span.name || KINDS[span.kind]);
      name.addEventListener("focus", () => chart.pinned !== span && span.band && name.matches(":focus-visible") && chart.pin(span));
      const more = [span.path && span.path !== span.name ? span.path : "", span.pass ? `pass ${span.pass}` : "", span.attempt > 1 ? `attempt ${span.attempt}` : ""].filter(Boolean).join(", ");
      const inside = span.transcript ? el("span", "", " · ", link(to(span.transcript, "timeline"), "small", `span-inside-${span.n}`, "its timeline")) : "";
      const show = span.band ? press("show", "timeline-show", `span-show-${span.n}`, () => {
        chart.pin(span);
        chart.reveal(span, true);
        chart.node.scrollIntoView({ block: "nearest" });
      }) : "";
      if (show) show.setAttribute("aria-label", `Show ${span.name || "it"} in the timeline`);
      return [
        el("span", "", name, more ? el("span", "small", ` ${more}`) : "", inside),
        KINDS[span.kind],
        lanes.isTimed ? (span.from === null ? el("span", "unknown", "unknown") : clock(span.from - lanes.start, lanes.end - lanes.start < 100 ? 0.001 : lanes.end - lanes.start < 10000 ? 1 : 1000)) : grouped.format(span.seq),
        took(span),
        STATUS[span.status] ? el("span", isBad(span) ? "timeline-bad" : "unknown", STATUS[span.status]) : "",
        span.isCritical ? el("span", "timeline-critical", "critical") : "",
        show,
      ];
    });
    const box = table(`${label} spans`, [{ name: "Span" }, { name: "Kind" }, { name: lanes.isTimed ? "After the start" : "Event", number: true }, { name: "Took", number: true }, { name: "Ended" }, { name: "Path" }, { name: el("span", "off-screen", "In the timeline") }], rows);
    node.replaceChildren(chips, box);
    if (all > most) node.append(press(`Show ${grouped.format(Math.min(500, all - most))} more of ${grouped.format(all)}`, "more", "spans-more", () => {
      const first = most;
      most += 500;
      redraw();
      node.querySelectorAll(".timeline-name")[first]?.focus();
    }));
  };
  if (orders.length > 0) redraw();
  return node;
}

/** The screen. */
export async function timeline({ main, params, signal }) {
  const base = `/api/v1/transcripts/${encodeURIComponent(params.id)}`;
  const [detail, first] = await Promise.all([get(base, {}, signal), get(`${base}/timeline`, { limit: PAGE }, signal)]);
  const { id } = detail.transcript;
  const title = `Timeline: ${titleOf(detail.transcript)}`;
  document.body.classList.add("view-wide");
  if (first.spans_total === 0) {
    main.replaceChildren(transcriptHead(detail, "timeline"), sentence(first), empty("There is nothing to draw: no steps, no model calls, no tool calls."));
    return { title };
  }
  const chart = new Chart(id, signal);
  const zoomed = el("span", "timeline-range small");
  const toggles = el("span", "timeline-toggles");
  const tools = el("div", "timeline-tools", iconOf("−", "Zoom out (-)", "timeline-out", () => chart.zoom(1 / 1.6)), iconOf("+", "Zoom in (+)", "timeline-in", () => chart.zoom(1.6)), press("Fit", "more", "timeline-fit", () => chart.fit()), press("To the end", "more", "timeline-end", () => {
    if (chart.view.to - chart.view.from >= chart.scale.length * 0.999) chart.zoom(8, chart.width);
    chart.toEnd(1);
  }), toggles, zoomed);
  chart.onLook = () => (zoomed.textContent = chart.rangeWords());
  const progress = el("p", "small timeline-progress");
  progress.setAttribute("role", "status");
  const said = el("div", "timeline-said");
  const below = el("div");
  const rest = el("div");
  const hint = el("p", "small timeline-hint", "Drag to move, Ctrl and the wheel or + and − to zoom, a double click zooms to a span. ", first.totals.critical_total > 0 ? el("span", "", el("span", "timeline-key is-critical"), " critical path ") : "", el("span", "timeline-key is-bad"), " failed");
  main.replaceChildren(transcriptHead(detail, "timeline"), said, tools, chart.node, hint, rest, progress, below);
  let lanes = null;
  const chosen = { order: "" };
  const finish = (page) => {
    said.replaceChildren(sentence(page), balance(page.totals));
    rest.replaceChildren(...caveats(page, lanes));
    // Whoever is in the table stays where they are.
    if (!below.contains(document.activeElement)) below.replaceChildren(section("Spans", spanTable(id, chart, lanes, chosen)));
    const isCut = chart.gaps.length > 0;
    toggles.replaceChildren(isCut ? chip(`${count(chart.gaps.length, "long gap")} drawn short`, null, "timeline-gaps", chart.isShort, (node) => {
      chart.shorten(!chart.isShort);
      node.setAttribute("aria-pressed", String(chart.isShort));
    }) : "");
  };
  const load = async (page) => {
    lanes = new Lanes(page);
    const mine = lanes;
    lanes.add(page.spans);
    const held = chart.pinned?.n;
    chart.pinned = lanes.byNumber.get(held) ?? null;
    chart.hovered = null;
    chart.show(lanes, page.totals);
    chart.tell(chart.pinned);
    finish(page);
    let { next } = page;
    while (next !== null && !signal.aborted && mine === lanes) {
      progress.textContent = `Read ${grouped.format(lanes.spans.length)} of ${grouped.format(page.spans_total)} spans…`;
      const more = await get(`${base}/timeline`, { from: next, limit: PAGE }, signal);
      if (mine !== lanes) return;
      lanes.add(more.spans);
      chart.show(lanes, page.totals);
      next = more.next !== null && more.next > next ? more.next : null;
      if (next === null) finish(page);
    }
    progress.textContent = "";
  };
  let { events } = first;
  const begun = load(first);
  begun.catch((error) => !signal.aborted && (progress.textContent = `Not all spans could be read: ${error.message}`));
  const again = paced(async () => {
    if (signal.aborted) return;
    try {
      await begun;
      const page = await get(`${base}/timeline`, { limit: PAGE }, signal);
      if (page.events === events) return;
      events = page.events;
      if (page.spans_total > PAGE) progress.replaceChildren("It has grown. ", press("Read it again", "more", "timeline-again", () => load(page).catch(() => {})));
      else await load(page);
    } catch {
      // The next change tries again.
    }
  }, 2000);
  onAdvance((change) => {
    if (change.transcript === id || change.reload) again();
  }, signal);
  const step = (by) => {
    const names = [...below.querySelectorAll(".timeline-name")];
    const now = names.indexOf(document.activeElement);
    names[now < 0 ? (by > 0 ? 0 : names.length - 1) : Math.max(0, Math.min(names.length - 1, now + by))]?.focus();
  };
  return {
    title,
    keys: { "+": () => chart.zoom(1.6), "=": () => chart.zoom(1.6), "-": () => chart.zoom(1 / 1.6), 0: () => chart.fit(), h: () => chart.pan(-0.25), l: () => chart.pan(0.25), j: () => step(1), k: () => step(-1), Escape: () => chart.pin(null) },
    help: [["+ -", "zoom in, out"], ["0", "all of it"], ["h l", "earlier, later"], ["← → ↑ ↓", "from span to span, when the lanes have the focus"], ["Home End", "to the ends"], ["j k", "next, previous row of the table"]],
  };
}

function iconOf(mark, words, uiid, act) {
  const node = press(mark, "icon timeline-icon", uiid, act);
  node.setAttribute("aria-label", words);
  node.title = words;
  return node;
}
