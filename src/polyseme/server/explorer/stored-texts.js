// Keeps long texts of permalinks in the browser's storage: the link then holds a short key instead of the text.
//
// Such a link opens in this browser only, which the page says. Where storage is refused (private windows), texts are
// kept until the window is closed.

const LONGEST = 500; // characters of a value in a link
const KEPT = 30; // texts; the oldest are forgotten
const PREFIX = "polyseme.text.";
const ORDER = "polyseme.texts"; // keys of all texts, the oldest first
const MARK = /^stored:([0-9a-z]+)$/;

const inWindow = new Map();

// What a link holds of a value: itself, or the key of a long one.
export function shortened(value) {
  if (value.length <= LONGEST) return value;
  const key = hash(value);
  if (inWindow.get(key) !== value) store(key, value);
  return `stored:${key}`;
}

// The value that a link means; "" if this browser does not have its text.
export function restored(value) {
  const [, key] = MARK.exec(value) ?? [];
  return key === undefined ? value : (inWindow.get(key) ?? load(key) ?? "");
}

// "kept" or "missing" if a link holds the key of a text, else null.
export function storedState(hashText) {
  const values = [...new URLSearchParams(hashText.split(/\?(.*)/s)[1] ?? "").values()];
  const keys = values.filter((value) => MARK.test(value));
  if (!keys.length) return null;
  return keys.every((value) => restored(value)) ? "kept" : "missing";
}

function store(key, value) {
  inWindow.set(key, value);
  if (inWindow.size > KEPT) inWindow.delete(inWindow.keys().next().value);
  try {
    const keys = (localStorage.getItem(ORDER) ?? "").split(",").filter((known) => known && known !== key);
    while (keys.length >= KEPT) localStorage.removeItem(PREFIX + keys.shift());
    while (!fits(key, value) && keys.length) localStorage.removeItem(PREFIX + keys.shift());
    localStorage.setItem(ORDER, [...keys, key].join(","));
  } catch {
    return; // no storage at all: the window has the text
  }
}

function fits(key, value) {
  try {
    localStorage.setItem(PREFIX + key, value);
    return true;
  } catch {
    return false;
  }
}

function load(key) {
  try {
    return localStorage.getItem(PREFIX + key);
  } catch {
    return null;
  }
}

// Two 32-bit FNV-1a hashes with different starts: 64 bits.
function hash(text) {
  const part = (start) => {
    let value = start;
    for (let i = 0; i < text.length; i++) value = Math.imul(value ^ text.charCodeAt(i), 0x01000193) >>> 0;
    return value.toString(36).padStart(7, "0");
  };
  return part(0x811c9dc5) + part(0x9747b28c);
}
