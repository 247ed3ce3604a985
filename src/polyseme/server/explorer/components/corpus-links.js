// Words that lead to their usages, and locations that lead to the text around them.

import { html } from "/explorer/html-template.js";
import { t } from "/explorer/i18n.js";
import { languageOf, useInfo } from "/explorer/components/server-info.js";
import { linkTo, parseHash } from "/explorer/routing.js";

// Without an index there are no usages to show: the word is plain text then.
export function LinkedWord({ word }) {
  const info = useInfo();
  const lang = languageOf(info);
  if (!info.indexes.length) return html`<span lang=${lang}>${word}</span>`;
  return html`<a class="word" lang=${lang} href=${linkTo("concordance", { word })}>${word}</a>`;
}

// Words with a dot between them.
export function LinkedWords({ words }) {
  return words.map((word, i) => html`${i > 0 && " · "}<${LinkedWord} key=${word} word=${word} />`);
}

// The same view, with the text around a usage open on top of it.
export function readingLink(number) {
  const { view, params } = parseHash(location.hash);
  return linkTo(view, { ...params, read: number });
}

export function LocationLink({ usage }) {
  const place = `${usage.document}:${usage.line}`;
  return html`<a class="source" href=${readingLink(usage.number)} title=${t("reading.open", { place })}>${place}</a>`;
}
