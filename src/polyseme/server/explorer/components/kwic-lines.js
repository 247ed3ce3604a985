// Usages as lines, the word in the middle. A line leads to the text around it.

import { html } from "/explorer/html-template.js";
import { number, t } from "/explorer/i18n.js";
import { Await, useRequest } from "/explorer/components/server-request.js";
import { readingLink } from "/explorer/components/corpus-links.js";
import { languageOf, useInfo } from "/explorer/components/server-info.js";
import { SenseSymbol } from "/explorer/components/usage-map.js";
import { groupName } from "/explorer/components/sense-shares.js";

export const PAGE = 50; // lines

// One page of lines; `body` is the request for the first one.
export function KwicPage({ body, page, compare, chosen, first }) {
  const request = useRequest(page > 0 || !first ? "/concordance" : null, { ...body, start: page * PAGE, k: PAGE });
  if (page === 0 && first) return html`<${Lines} result=${first} compare=${compare} chosen=${chosen} />`;
  return html`<${Await} request=${request}>${(result) => html`<${Lines} result=${result} compare=${compare} chosen=${chosen} />`}<//>`;
}

function Lines({ result, compare, chosen }) {
  const lang = languageOf(useInfo());
  return html`
    <ol class="kwic" start=${result.start + 1} aria-label=${t("concordance.lines", { word: result.word })}>
      ${result.lines.map(
        (line) => html`
          <li key=${line.number} class=${line.number === chosen ? "chosen" : ""}>
            <a href=${readingLink(line.number)} title=${t("concordance.read")}>
              <span class="left" lang=${lang}><span>${line.left}</span></span>
              <span class="node" lang=${lang}><${Sense} line=${line} kind=${result.kind} />${line.word}</span>
              <span class="right" lang=${lang}>${line.right}</span>
              <span class="source"><span>${line.document}</span>:${line.line}</span>
            </a>
            ${line.cosine !== null && html`<span class="value">${number(line.cosine, 2)}</span>`}
            <button type="button" class="small" aria-label=${t("concordance.similar")} title=${t("concordance.similar")} aria-pressed=${String(line.number === chosen)} onClick=${() => compare(line.number)}>≈</button>
          </li>
        `,
      )}
    </ol>
  `;
}

function Sense({ line, kind }) {
  if (line.sense === null) return null;
  return html`<${SenseSymbol} sense=${line.sense} /><span class="visually-hidden">${groupName(kind, line.sense)} </span>`;
}
