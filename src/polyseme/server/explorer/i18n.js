// The name of a text in, the text in the chosen language out: [English, 中文]. {name} stands for a value.

import { SHARED } from "/explorer/texts/shared.js";
import { OF_VIEWS } from "/explorer/texts/views.js";

export const LANGUAGES = ["en", "zh"];

const TEXTS = { ...SHARED, ...OF_VIEWS };

let language = 0;

export function setLanguage(name) {
  language = LANGUAGES.indexOf(name);
}

export function t(name, values = {}) {
  // An error type of a newer server has no text here: the server's own sentence says enough.
  const text = TEXTS[name]?.[language] ?? "";
  return text.replace(/\{(\w+)\}/g, (_, key) => String(values[key]));
}

export function has(name) {
  return name in TEXTS;
}

export function isEnglish() {
  return LANGUAGES[language] === "en";
}

export function number(value, digits = 0) {
  if (value === null || value === undefined) return "–"; // JSON has no infinite numbers
  const options = { minimumFractionDigits: digits, maximumFractionDigits: digits };
  const shown = Number(value.toFixed(digits)) || 0; // a little less than nothing is not -0.00
  return shown.toLocaleString(LANGUAGES[language], options);
}

export function percent(share) {
  return `${Math.round(share * 100)}%`;
}
