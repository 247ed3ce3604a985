// The nearest usages with their cosines in each layer, as a chart for export. On the page, the same bars stand below
// each usage.

import { html } from "/explorer/html-template.js";
import { number, t } from "/explorer/i18n.js";
import { textWidth } from "/explorer/measure-width.js";
import { splitAt } from "/explorer/text-spans.js";

const ROW_HEIGHT = 28;
const FONT_SIZE = 12;
const CONTEXT_WIDTH = 190; // of the text before the word, and after it
const BAR = { width: 70, height: 8, step: 118 };

export function LayerChart({ usages, lang }) {
  const left = CONTEXT_WIDTH + 16;
  const bars = left + CONTEXT_WIDTH + Math.max(...usages.map((usage) => textWidth(usage.word, FONT_SIZE))) + 24;
  const width = bars + usages[0].layers.length * BAR.step;
  const height = 40 + usages.length * ROW_HEIGHT;
  return html`
    <svg class="layers" viewBox=${`0 0 ${width} ${height}`} width=${width} height=${height} lang=${lang}>
      <text x="16" y="20">${t("usages.chart")}</text>
      ${usages[0].layers.map((_, layer) => html`<text x=${bars + layer * BAR.step} y="20">${t("layer.name", { layer })}</text>`)}
      ${usages.map((usage, i) => html`<${Row} usage=${usage} y=${48 + i * ROW_HEIGHT} left=${left} bars=${bars} />`)}
    </svg>
  `;
}

function Row({ usage, y, left, bars }) {
  const [before, word, after] = splitAt(usage.sentence, usage.start, usage.stop);
  return html`
    <text x=${left - 2} y=${y} text-anchor="end">${truncateStart(before)}</text>
    <text class="word" x=${left} y=${y}>${word}<tspan class="after" dx="2">${truncateEnd(after)}</tspan></text>
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

function truncateEnd(text) {
  let result = "";
  for (const char of text) {
    if (textWidth(`${result}${char}…`, FONT_SIZE) > CONTEXT_WIDTH) return `${result}…`;
    result += char;
  }
  return result;
}

function truncateStart(text) {
  return Array.from(truncateEnd(Array.from(text).reverse().join(""))).reverse().join("");
}
