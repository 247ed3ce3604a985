// Saves the view on screen as one HTML file that opens anywhere: text, tables and drawings, without controls.

import { save } from "/explorer/file-export.js";

// Controls that make no sense without a server.
const CONTROLS = ".exports, details.code, dialog, select.small, button.small:not(.kept), [data-screen-only], .skip, .loading";
const POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:";
// What scrolls on the page is shown whole in the file.
const STYLE = "body { margin: 24px auto; width: min(1140px, 100% - 48px); } .sentences-box { max-height: none; } .sticky { position: static; }";

// title: of the file. note: a line below it.
export function savePage({ title, note, name }) {
  save(new Blob([pageText(title, note)], { type: "text/html;charset=utf-8" }), `${name}.html`);
}

function pageText(title, note) {
  const root = document.documentElement;
  const copy = document.getElementById("main").cloneNode(true);
  const fields = document.querySelectorAll("#main :is(input, select, textarea)");
  copy.querySelectorAll("input, select, textarea").forEach((field, i) => field.replaceWith(...fieldText(fields[i])));
  for (const control of copy.querySelectorAll(CONTROLS)) control.remove();
  for (const element of copy.querySelectorAll("details")) element.open = true;
  for (const element of copy.querySelectorAll("button, a[href]")) element.replaceWith(asText(element));
  for (const element of copy.querySelectorAll("[tabindex], [role=application]")) {
    for (const attribute of ["tabindex", "role", "aria-describedby"]) element.removeAttribute(attribute);
  }
  const theme = root.dataset.theme ?? "auto";
  return [
    "<!doctype html>",
    `<html lang="${root.lang}" data-theme="${theme}">`,
    `<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">`,
    `<meta http-equiv="Content-Security-Policy" content="${POLICY}">`,
    `<title>${escaped(title)}</title>`,
    `<style>${styleText()}\n${STYLE}</style></head>`,
    `<body><p class="hint">${escaped(note)}</p>${copy.outerHTML}</body></html>\n`,
  ].join("\n");
}

function escaped(text) {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
}

// What was typed or chosen in a field, as text.
function fieldText(field) {
  if (field.type === "checkbox") return [field.checked ? "☑ " : "☐ "];
  if (field.type === "range") return [];
  const text = field.tagName === "SELECT" ? field.selectedOptions[0]?.textContent : field.value;
  return [Object.assign(document.createElement("b"), { className: "field-value", textContent: text ?? "" })];
}

// A button or link as text that looks the same.
function asText(element) {
  const text = document.createElement("span");
  for (const name of ["class", "lang", "title", "aria-pressed"]) {
    if (element.hasAttribute(name)) text.setAttribute(name, element.getAttribute(name));
  }
  text.style.cssText = element.style.cssText; // the attribute would be an inline style, which the page refuses
  text.append(...element.childNodes);
  return text;
}

function styleText() {
  return [...document.styleSheets].flatMap((sheet) => [...sheet.cssRules].map((rule) => rule.cssText)).join("\n");
}
