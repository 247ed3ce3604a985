// Language and theme: read from the link, the browser's storage or its preferences, and set on <html>.

import { LANGUAGES, setLanguage } from "/explorer/i18n.js";

export const THEMES = ["auto", "light", "dark"];

// localStorage throws in private windows and under strict settings. Then nothing is saved.
function load(name) {
  try {
    return localStorage.getItem(`polyseme.${name}`);
  } catch {
    return null;
  }
}

function save(name, value) {
  try {
    localStorage.setItem(`polyseme.${name}`, value);
  } catch {
    return;
  }
}

// The language of the link, else the saved one, else the browser's.
export function applyLanguage(requested) {
  const preferred = [requested, load("lang"), ...navigator.languages.map((name) => name.slice(0, 2))];
  const lang = preferred.find((name) => LANGUAGES.includes(name)) ?? "en";
  setLanguage(lang);
  document.documentElement.lang = lang === "zh" ? "zh-Hans" : lang;
  return lang;
}

export function rememberLanguage(lang) {
  save("lang", lang);
}

export function savedTheme() {
  const name = load("theme");
  return THEMES.includes(name) ? name : "auto";
}

export function applyTheme(name) {
  document.documentElement.dataset.theme = name;
  save("theme", name);
}
