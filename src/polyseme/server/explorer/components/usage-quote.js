// A usage in; its sentence with the word marked, and where it stands, out.

import { html } from "/explorer/html-template.js";
import { cut } from "/explorer/text-spans.js";

export function Quote({ usage, lang }) {
  const [before, word, after] = cut(usage.sentence, usage.start, usage.stop);
  return html`<span class="quote" lang=${lang} dir="auto">${before}<mark>${word}</mark>${after}</span>`;
}

export function Source({ usage }) {
  return html`<span class="source">${usage.document}:${usage.line}</span>`;
}
