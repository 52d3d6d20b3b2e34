// One stream for the whole page: which transcripts have grown.

import { follow } from "./api.js";

const listeners = new Set();
const recent = new Map();
let ending = null;
let isOpen = null;
let isLeader = false;

/** Calls `act({ transcript, from, to, again, gone, reload })` whenever something changed, until `signal` ends it. */
export function onAdvance(act, signal) {
  listeners.add(act);
  signal?.addEventListener("abort", () => listeners.delete(act));
}

/** The transcripts that have grown within the last minutes, by id, with the time. */
export function recently(minutes = 5) {
  const from = Date.now() - minutes * 60000;
  return new Map([...recent].filter(([, time]) => time > from));
}

/**
 * Opens the stream. `state(isOpen)` says when the server comes and goes.
 *
 * Browsers give a server six connections for all tabs together. So one tab holds the stream and tells the others; when it is
 * closed, another one takes over.
 */
export function begin(state) {
  end();
  ending = new AbortController();
  const { signal } = ending;
  const tabs = typeof BroadcastChannel === "function" ? new BroadcastChannel("quipu-live") : null;
  signal.addEventListener("abort", () => tabs?.close());
  const changed = (now) => {
    if (now === isOpen) return;
    isOpen = now;
    // What happened before the stream was open, or while the server was away, is not known.
    if (now) tell({ reload: true });
    state(now);
  };
  if (tabs) {
    tabs.onmessage = ({ data }) => {
      if ("change" in data) tell(data.change);
      if ("isOpen" in data) changed(data.isOpen);
      // Whoever comes later asks how it is.
      if ("asks" in data && isLeader) tabs.postMessage({ isOpen });
    };
    tabs.postMessage({ asks: true });
  }
  const lead = () => {
    isLeader = true;
    const on = (name, data) => {
      const change = changeOf(name, data);
      if (!change) return;
      tell(change);
      tabs?.postMessage({ change });
    };
    const own = (now) => {
      changed(now);
      if (!signal.aborted) tabs?.postMessage({ isOpen: now });
    };
    return follow("/api/v1/stream", { events: "false" }, { on, state: own, signal });
  };
  // Without locks, as over plain HTTP from another machine, each tab has a stream of its own.
  if (tabs && navigator.locks) navigator.locks.request("quipu-live", { signal }, lead).catch(() => {});
  else lead();
}

/** Closes the stream. */
export function end() {
  ending?.abort();
  isLeader = false;
}

function tell(change) {
  if (change.transcript && !change.gone) recent.set(change.transcript, Date.now());
  for (const act of listeners) act(change);
}

function changeOf(name, data) {
  let value;
  try {
    value = JSON.parse(data);
  } catch {
    return null;
  }
  if (name === "advance") return value;
  if (name === "gone") return { ...value, gone: true };
  if (name === "missed") return { ...value, reload: true };
  return null;
}

/** Calls `act` once for many calls: `ms` after the first of them, so that a steady stream does not hold it up. */
export function settled(act, ms = 400) {
  let timer = 0;
  return () => {
    if (timer) return;
    timer = setTimeout(() => {
      timer = 0;
      act();
    }, ms);
  };
}
