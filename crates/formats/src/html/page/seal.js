// A page that only opens with a passphrase. How it is sealed is in docs/formats/html.md.

import { el } from "./text.js";

const fromBase64 = (text) => {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const raw = atob(text);
  const bytes = new Uint8Array(raw.length);
  for (let n = 0; n < raw.length; n += 1) bytes[n] = raw.charCodeAt(n);
  return bytes;
};

/** Opens what is sealed: the transcript and the pictures. Throws when the passphrase is not the one. */
async function unseal(sealed, passphrase) {
  const secret = await crypto.subtle.importKey("raw", new TextEncoder().encode(passphrase.normalize("NFC")), "PBKDF2", false, ["deriveKey"]);
  const key = await crypto.subtle.deriveKey({ name: "PBKDF2", hash: "SHA-256", salt: fromBase64(sealed.salt), iterations: sealed.iterations }, secret, { name: "AES-GCM", length: 256 }, false, ["decrypt"]);
  const nonce = fromBase64(sealed.nonce);
  const texts = [];
  for (const [stream, id] of ["quipu-sealed-transcript", "quipu-sealed-images"].entries()) {
    const pieces = document.getElementById(id).textContent.trim().split("\n");
    const decoder = new TextDecoder();
    let text = "";
    for (const [n, piece] of pieces.entries()) {
      // Each piece has a number, and the last one says that it is, so that none can be moved or left out.
      const iv = nonce.slice();
      const view = new DataView(iv.buffer);
      view.setUint8(7, view.getUint8(7) ^ ((stream << 1) | (n === pieces.length - 1 ? 1 : 0)));
      view.setUint32(8, (view.getUint32(8) ^ n) >>> 0);
      const open = await crypto.subtle.decrypt({ name: "AES-GCM", iv }, key, fromBase64(piece));
      text += decoder.decode(open, { stream: n < pieces.length - 1 });
    }
    texts.push(text);
  }
  return texts;
}

/** Asks for the passphrase until it is the right one. */
export function askFor(sealed, open) {
  const main = document.getElementById("session");
  const field = el("input");
  field.type = "password";
  field.id = "passphrase";
  field.autocomplete = "off";
  field.required = true;
  const label = el("label", "", "Passphrase");
  label.htmlFor = "passphrase";
  const said = el("p", "lock-said");
  said.setAttribute("role", "alert");
  const go = el("button", "plain", "Open");
  go.type = "submit";
  const form = el("form", "lock", el("h1", "", "This session is sealed"), el("p", "", "It opens with the passphrase that it was written with. Nothing leaves this file."), label, el("div", "lock-row", field, go), said);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (!globalThis.crypto?.subtle) {
      said.textContent = "This browser does not decrypt pages from this address. Save the file and open it from disk.";
      return;
    }
    go.disabled = true;
    said.textContent = "Opening…";
    let texts;
    try {
      texts = await unseal(sealed, field.value);
    } catch {
      said.textContent = "That is not the passphrase, or the file was changed.";
      go.disabled = false;
      field.select();
      return;
    }
    form.remove();
    open(...texts);
  });
  main.replaceChildren(form);
  field.focus();
}
