// A usage: its sentence with the word marked, and its location.

import { html } from "/explorer/html-template.js";
import { splitAt } from "/explorer/text-spans.js";

export function UsageQuote({ usage, lang }) {
  const [before, word, after] = splitAt(usage.sentence, usage.start, usage.stop);
  return html`<span class="quote" lang=${lang} dir="auto">${before}<mark>${word}</mark>${after}</span>`;
}

export function UsageSource({ usage }) {
  return html`<span class="source">${usage.document}:${usage.line}</span>`;
}
