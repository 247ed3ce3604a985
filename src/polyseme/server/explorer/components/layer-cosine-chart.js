// Nearest usages in; a chart of their cosines in every layer out, with the word in the middle of its sentence: for
// a file, as the page itself has the same bars between its lines.

import { html } from "/explorer/html-template.js";
import { number, t } from "/explorer/i18n.js";
import { widthOf } from "/explorer/measure-width.js";
import { cut } from "/explorer/text-spans.js";

const ROW = 28;
const LETTER = 12;
const SIDE = 190; // of a sentence before and after its word
const BAR = { width: 70, height: 8, step: 118 };

export function LayerChart({ usages, lang }) {
  const left = SIDE + 16;
  const bars = left + SIDE + Math.max(...usages.map((usage) => widthOf(usage.word, LETTER))) + 24;
  const width = bars + usages[0].layers.length * BAR.step;
  const height = 40 + usages.length * ROW;
  return html`
    <svg class="layers" viewBox=${`0 0 ${width} ${height}`} width=${width} height=${height} lang=${lang}>
      <text x="16" y="20">${t("usages.chart")}</text>
      ${usages[0].layers.map((_, layer) => html`<text x=${bars + layer * BAR.step} y="20">${t("layer.name", { layer })}</text>`)}
      ${usages.map((usage, at) => html`<${Row} usage=${usage} y=${48 + at * ROW} left=${left} bars=${bars} />`)}
    </svg>
  `;
}

function Row({ usage, y, left, bars }) {
  const [before, word, after] = cut(usage.sentence, usage.start, usage.stop);
  return html`
    <text x=${left - 2} y=${y} text-anchor="end">${end(before)}</text>
    <text class="word" x=${left} y=${y}>${word}<tspan class="after" dx="2">${start(after)}</tspan></text>
    ${usage.layers.map((cosine, layer) => {
      const x = bars + layer * BAR.step;
      return html`
        <rect class="rail" x=${x} y=${y - 9} width=${BAR.width} height=${BAR.height} rx="3" />
        <rect class="bar" x=${x} y=${y - 9} width=${Math.max(0, cosine) * BAR.width} height=${BAR.height} rx="3" />
        <text class="figure" x=${x + BAR.width + 6} y=${y}>${number(cosine, 2)}</text>
      `;
    })}
  `;
}

function start(text) {
  let kept = "";
  for (const letter of text) {
    if (widthOf(`${kept}${letter}…`, LETTER) > SIDE) return `${kept}…`;
    kept += letter;
  }
  return kept;
}

function end(text) {
  return Array.from(start(Array.from(text).reverse().join(""))).reverse().join("");
}
