// Texts of the page in the current language. Each is [English, 中文]; {name} is replaced by a value.

import { READING_TEXTS } from "/explorer/texts/reading.js";
import { SHARED_TEXTS } from "/explorer/texts/shared.js";
import { STUDY_TEXTS } from "/explorer/texts/studies.js";
import { VIEW_TEXTS } from "/explorer/texts/views.js";
import { WORKSPACE_TEXTS } from "/explorer/texts/workspace.js";

export const LANGUAGES = ["en", "zh"];

const TEXTS = { ...SHARED_TEXTS, ...VIEW_TEXTS, ...READING_TEXTS, ...STUDY_TEXTS, ...WORKSPACE_TEXTS };

let language = 0;

export function setLanguage(name) {
  language = LANGUAGES.indexOf(name);
}

export function t(name, values = {}) {
  // A newer server may send an error type that has no text here. Its message is shown instead.
  const text = TEXTS[name]?.[language] ?? "";
  return text.replace(/\{(\w+)\}/g, (_, key) => String(values[key]));
}

export function hasText(name) {
  return name in TEXTS;
}

export function isEnglish() {
  return LANGUAGES[language] === "en";
}

export function number(value, digits = 0) {
  if (value === null || value === undefined) return "–"; // JSON has no infinite numbers: the server sends null
  const options = { minimumFractionDigits: digits, maximumFractionDigits: digits };
  const rounded = Number(value.toFixed(digits)) || 0; // 0.00, not -0.00
  return rounded.toLocaleString(LANGUAGES[language], options);
}

export function percent(share) {
  return `${Math.round(share * 100)}%`;
}
