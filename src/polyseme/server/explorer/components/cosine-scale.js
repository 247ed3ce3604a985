// A scale of what cosines are usual in an index: of usages of one word, and of random words; with the pairs at hand.

import { html } from "/explorer/html-template.js";
import { number, percent, t } from "/explorer/i18n.js";
import { isSameWord } from "/explorer/components/word-links.js";
import { useElementWidth, textWidth } from "/explorer/measure-width.js";

const { scaleLinear } = globalThis.d3;

const ROWS = ["same_word", "random"];
const [ROW, TOP_LINE, BAND, FONT_SIZE] = [26, 18, 12, 12];
const [EDGE, MARGIN] = [1, 5]; // of 20 quantiles: a thin band leaves out one at both ends, a thick one five
const SHOWN = 6; // pairs
const DIFFERENT = 0.1; // a share of pairs of one word that are less alike: the word is used differently

// pairs: [{word, cosine}, …]
export function CosineScale({ usual, tokens, matrix, lang }) {
  const [frame, width] = useElementWidth();
  const pairs = sharedPairs(tokens, matrix);
  const left = Math.max(...ROWS.map((name) => textWidth(t(`compare.usual.${name}`), FONT_SIZE))) + 12;
  const low = Math.min(0, usual.random[EDGE], ...pairs.map(({ cosine }) => cosine)) - 0.05;
  const x = scaleLinear([low, 1], [left, width - 12]);
  const lines = labelLines(pairs, x, width);
  const top = TOP_LINE * (Math.max(0, ...lines.map(({ line }) => line)) + 1) + 6;
  const bottom = top + ROW * ROWS.length;
  return html`
    <div ref=${frame}>
      <svg class="cosine-scale" role="img" aria-label=${t("compare.scaleName")} viewBox=${`0 0 ${width} ${bottom + 20}`}>
        ${ROWS.map((name, row) => html`<${Band} key=${name} name=${name} quantiles=${usual[name]} x=${x} y=${top + row * ROW} left=${left} />`)}
        ${x.ticks(5).map((value) => html`<text key=${value} class="axis" x=${x(value)} y=${bottom + 14} text-anchor="middle">${number(value, 1)}</text>`)}
        ${lines.map(
          ({ word, cosine, line, anchor }, i) => html`
            <g key=${i} class="pair-mark">
              <line x1=${x(cosine)} x2=${x(cosine)} y1=${TOP_LINE * line + 16} y2=${bottom} />
              <text x=${x(cosine)} y=${TOP_LINE * line + 12} text-anchor=${anchor} lang=${lang}>${labelOf({ word, cosine })}</text>
            </g>
          `,
        )}
      </svg>
    </div>
    <ul class="verdicts">
      ${pairs.map(({ word, cosine }, i) => {
        const values = {
          word,
          cosine: number(cosine, 2),
          same: percent(shareBelow(usual.same_word, cosine)),
          random: percent(shareBelow(usual.random, cosine)),
        };
        return html`<li key=${i}>${t(verdictOf(usual, cosine), values)}</li>`;
      })}
    </ul>
    <p class="hint">${t("compare.scaleHint")}</p>
  `;
}

function Band({ name, quantiles, x, y, left }) {
  const bar = (edge, height) => {
    const [from, to] = [quantiles[edge], quantiles.at(-1 - edge)].map((value) => x(Math.max(value, x.domain()[0])));
    return html`<rect x=${from} y=${y + (BAND - height) / 2} width=${Math.max(1, to - from)} height=${height} rx="2" />`;
  };
  const middle = quantiles[(quantiles.length - 1) / 2];
  return html`
    <g class=${`usual ${name}`}>
      <title>${t("compare.usualRange", { name: t(`compare.usual.${name}`), low: number(quantiles[EDGE], 2), high: number(quantiles.at(-1 - EDGE), 2), middle: number(middle, 2) })}</title>
      <text x=${left - 10} y=${y + BAND - 1} text-anchor="end">${t(`compare.usual.${name}`)}</text>
      ${bar(EDGE, 5)} ${bar(MARGIN, BAND)}
      <line class="median" x1=${x(middle)} x2=${x(middle)} y1=${y - 2} y2=${y + BAND + 2} />
    </g>
  `;
}

// The words that both sentences share, each pair once.
function sharedPairs([first, second], matrix) {
  const pairs = first.flatMap((word, row) =>
    second.flatMap((other, column) => (isSameWord(word, other) ? [{ word, cosine: matrix[row][column] }] : [])),
  );
  return pairs.slice(0, SHOWN);
}

function labelOf({ word, cosine }) {
  return `${word} ${number(cosine, 2)}`;
}

// Labels side by side if they fit, else on lines of their own.
function labelLines(pairs, x, width) {
  const ends = []; // of the lines so far
  return [...pairs]
    .sort((a, b) => a.cosine - b.cosine)
    .map((pair) => {
      const [size, place] = [textWidth(labelOf(pair), FONT_SIZE) + 8, x(pair.cosine)];
      const anchor = place + size / 2 > width ? "end" : "middle";
      const start = anchor === "end" ? place - size : place - size / 2;
      let line = ends.findIndex((end) => end <= start);
      if (line < 0) line = ends.length;
      ends[line] = start + size;
      return { ...pair, line, anchor };
    });
}

// The share of pairs with a smaller cosine, between the quantiles by interpolation.
export function shareBelow(quantiles, value) {
  const steps = quantiles.length - 1;
  if (value <= quantiles[0]) return 0;
  if (value >= quantiles[steps]) return 1;
  const above = quantiles.findIndex((quantile) => quantile > value);
  const [low, high] = [quantiles[above - 1], quantiles[above]];
  return (above - 1 + (value - low) / Math.max(high - low, 1e-9)) / steps;
}

function verdictOf(usual, cosine) {
  const share = shareBelow(usual.same_word, cosine);
  if (share < DIFFERENT) return "compare.verdict.different";
  return share < 0.5 ? "compare.verdict.between" : "compare.verdict.alike";
}
