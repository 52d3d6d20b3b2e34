// What a tool gave back: its texts and its pictures.

import { obj, str } from "./text.js";

// A larger picture inside of a result is not drawn, so many characters of base64.
const MOST_OF_PICTURE = 8_000_000;
const TEXT_PARTS = new Set(["text", "input_text", "output_text"]);
const PICTURE_PARTS = new Set(["image", "input_image", "image_url"]);
// Large pictures are kept beside the result, which then has this address in their place.
const KEPT = /^agentlog-blob:\/\/quipu\/([0-9a-f]{64})$/;

/** What kind of picture it is, by how its bytes begin: what the log says of it does not count. */
function pictureType(base64) {
  let head;
  try {
    head = atob(base64.slice(0, 24));
  } catch {
    return "";
  }
  if (head.startsWith("\x89PNG\r\n\x1a\n")) return "image/png";
  if (head.startsWith("\xff\xd8\xff")) return "image/jpeg";
  if (/^GIF8[79]a/.test(head)) return "image/gif";
  return /^RIFF[^]{4}WEBP/.test(head) ? "image/webp" : "";
}

/** The picture in a part of a result: its bytes, or where they are kept. */
function pictureOf(part) {
  if (!PICTURE_PARTS.has(part.type)) return null;
  const source = obj(part.source) ?? part;
  const address = str(part.image_url) || str(obj(part.image_url)?.url) || str(source.url);
  const data = str(source.data) || address.replace(/^data:image\/[a-z.+-]{1,40};base64,/i, "");
  const kept = KEPT.exec(data);
  const mime = str(source.media_type) || str(source.mimeType) || "image";
  if (kept) return { mime, sha256: kept[1] };
  if (data.length > MOST_OF_PICTURE || !/^[A-Za-z0-9+/]+={0,2}$/.test(data)) return null;
  const type = pictureType(data);
  return type ? { mime: type, bytes: Math.floor((data.length * 3) / 4), source: `data:${type};base64,${data}` } : null;
}

/** The parts of a result that is a list of them: texts, pictures, and what is neither as JSON; otherwise nothing. */
export function partsOf(output) {
  const fields = obj(output);
  const all = fields && Object.keys(fields).length <= 2 ? fields.content : output;
  if (!Array.isArray(all) || all.length === 0) return null;
  let isKnown = false;
  const parts = [];
  for (const it of all) {
    const part = obj(it);
    if (!part) return null;
    const isText = typeof part.text === "string" && (TEXT_PARTS.has(part.type) || Object.keys(part).length === 1);
    const picture = isText ? null : pictureOf(part);
    if (!isText && typeof part.type !== "string") return null;
    isKnown ||= isText || picture !== null;
    parts.push(picture ? { picture } : { text: isText ? part.text : JSON.stringify(part, null, 2) });
  }
  return isKnown ? parts : null;
}

/** The pictures in what a tool gave back. */
export const picturesOf = (output) => (partsOf(output) ?? []).map((part) => part.picture).filter(Boolean);

/** What a tool gave back: the value where it is no text, and nothing where it only says again why it failed. */
export function givenBack(tool) {
  if (tool?.outputValue !== undefined && tool.outputValue !== null) return tool.outputValue;
  const output = tool?.output ?? null;
  return typeof output === "string" && output === tool.error ? null : output;
}

/** What a tool gave back, as text: parts that are texts as those, other values as JSON. */
export function outputText(output) {
  if (output === null || output === undefined) return "";
  if (typeof output === "string") return output;
  const parts = partsOf(output);
  if (parts) return parts.filter((part) => !part.picture).map((part) => part.text).join("\n");
  const fields = obj(output);
  if (fields) {
    for (const name of ["output", "stdout", "text", "content", "result"]) {
      if (Object.keys(fields).length === 1 && typeof fields[name] === "string") return fields[name];
    }
    if (typeof fields.stdout === "string" && typeof fields.stderr === "string" && Object.keys(fields).every((it) => ["stdout", "stderr", "interrupted", "isImage", "noOutputExpected", "exitCode", "exit_code"].includes(it))) {
      return [fields.stdout, fields.stderr].filter(Boolean).join("\n");
    }
  }
  return JSON.stringify(output, null, 2);
}
