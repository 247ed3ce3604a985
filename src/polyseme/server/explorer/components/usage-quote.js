// A usage: its sentence with the word marked, and its location, which leads to the text around it.

import { html } from "/explorer/html-template.js";
import { LocationLink } from "/explorer/components/corpus-links.js";
import { splitAt } from "/explorer/text-spans.js";

export function UsageQuote({ usage, lang }) {
  const [before, word, after] = splitAt(usage.sentence, usage.start, usage.stop);
  return html`<span class="quote" lang=${lang} dir="auto">${before}<mark>${word}</mark>${after}</span>`;
}

export function UsageSource({ usage }) {
  return html`<${LocationLink} usage=${usage} />`;
}
