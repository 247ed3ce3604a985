// Language and theme in, remembered where the browser allows; <html lang data-theme> out.

import { LANGUAGES, setLanguage } from "/explorer/i18n.js";

export const THEMES = ["auto", "light", "dark"];

// Private windows and strict settings make localStorage throw. Then nothing is remembered, and that is all.
function remembered(name) {
  try {
    return localStorage.getItem(`polyseme.${name}`);
  } catch {
    return null;
  }
}

function remember(name, value) {
  try {
    localStorage.setItem(`polyseme.${name}`, value);
  } catch {
    return;
  }
}

// The link says which language; else the last choice; else the browser.
export function applyLanguage(asked) {
  const wanted = [asked, remembered("lang"), ...navigator.languages.map((name) => name.slice(0, 2))];
  const lang = wanted.find((name) => LANGUAGES.includes(name)) ?? "en";
  setLanguage(lang);
  document.documentElement.lang = lang === "zh" ? "zh-Hans" : lang;
  return lang;
}

export function rememberLanguage(lang) {
  remember("lang", lang);
}

export function theme() {
  const found = remembered("theme");
  return THEMES.includes(found) ? found : "auto";
}

export function applyTheme(chosen) {
  document.documentElement.dataset.theme = chosen;
  remember("theme", chosen);
}
