// Frequency of a word and shares of its senses by period, with 95% intervals. Ranges of periods can be drawn on it.

import { html } from "/explorer/html-template.js";
import { number, percent, t } from "/explorer/i18n.js";
import { groupName } from "/explorer/components/sense-shares.js";
import { shortName, useRangeDrag } from "/explorer/components/range-strip.js";
import { COLOURS } from "/explorer/components/usage-map.js";
import { textWidth } from "/explorer/measure-width.js";

const { area, line, max, scaleLinear, symbol, symbolsFill } = globalThis.d3;

export const EDGES = { left: 52, right: 10 };
const [FREQUENCY, SHARES, GAP, TOP, BOTTOM] = [150, 150, 34, 30, 26]; // heights
const FONT_SIZE = 12;
const CAPPED = 2; // intervals of tiny periods are cut at this multiple of the highest frequency
const MARKED = 60; // periods: symbols of more would touch each other

export function TimelineChart({ data, width, ranges, follow, finish }) {
  const { periods } = data;
  const drag = useRangeDrag({ count: periods.length, ...EDGES, follow, finish });
  return html`
    <svg
      class="timeline"
      role="img"
      aria-label=${t("timeline.chartName", { word: data.word, count: periods.length })}
      viewBox=${`0 0 ${width} ${heightOf(data)}`}
      width=${width}
      height=${heightOf(data)}
      ...${drag.handlers}
    >
      <${TimelineDrawing} data=${data} width=${width} ranges=${ranges} />
    </svg>
  `;
}

export function heightOf({ senses }) {
  return TOP + FREQUENCY + BOTTOM + (senses.length > 1 ? GAP + SHARES : 0);
}

export function TimelineDrawing({ data, width, ranges = {} }) {
  const { periods, senses } = data;
  const step = (width - EDGES.left - EDGES.right) / periods.length;
  const columns = { step, start: (column) => EDGES.left + column * step, middle: (column) => EDGES.left + (column + 0.5) * step };
  const bottom = heightOf(data) - BOTTOM;
  return html`
    ${Object.entries(ranges).map(
      ([letter, range]) =>
        range && html`<g key=${letter} class=${`range range-${letter}`}>
          <rect x=${columns.start(range[0])} y=${TOP - 18} width=${step * (range[1] - range[0] + 1)} height=${bottom - TOP + 18} />
          <text class="range-name" x=${columns.start(range[0]) + 4} y=${TOP - 4}>${letter}</text>
        </g>`,
    )}
    <${Frequencies} periods=${periods} columns=${columns} width=${width} />
    ${senses.length > 1 && html`<${Shares} data=${data} columns=${columns} width=${width} top=${TOP + FREQUENCY + GAP} />`}
    ${tickColumns(periods, columns).map(
      (column) => html`<text key=${column} x=${columns.middle(column)} y=${bottom + 17} text-anchor="middle">${tickName(periods[column].name)}</text>`,
    )}
  `;
}

function Frequencies({ periods, columns, width }) {
  const highest = max(periods, (period) => period.frequency) || 1;
  const top = Math.min(max(periods, (period) => period.interval[1]), CAPPED * highest);
  const y = scaleLinear([0, top], [TOP + FREQUENCY, TOP]).nice();
  const cut = (value) => y(Math.min(value, y.domain()[1]));
  const bar = Math.max(1, columns.step * 0.7);
  return html`
    <${Grid} y=${y} ticks=${y.ticks(4)} width=${width} format=${(value) => number(value)} />
    <text class="axis" x="2" y="11">${t("timeline.perMillion")}</text>
    ${periods.map((period, i) => {
      const [low, high] = period.interval;
      const x = columns.middle(i);
      return html`
        <g key=${i}>
          <title>${frequencyText(period)}</title>
          <rect class="column" x=${columns.start(i)} y=${TOP} width=${columns.step} height=${FREQUENCY} />
          <rect class="bar" x=${x - bar / 2} y=${y(period.frequency)} width=${bar} height=${y(0) - y(period.frequency)} />
          <line class="whisker" x1=${x} x2=${x} y1=${cut(low)} y2=${cut(high)} />
        </g>
      `;
    })}
  `;
}

// A line per sense with a band for its interval; periods without usages are gaps.
function Shares({ data, columns, width, top }) {
  const { periods, senses, kind } = data;
  const y = scaleLinear([0, 1], [top + SHARES, top]);
  const known = (period) => period.shares.length > 0;
  const x = (_, i) => columns.middle(i);
  return html`
    <${Grid} y=${y} ticks=${[0, 0.5, 1]} width=${width} format=${percent} />
    <text class="axis" x="2" y=${top - 9}>${t(kind === "senses" ? "timeline.senseShares" : "timeline.groupShares")}</text>
    ${senses.map((_, sense) => {
      const band = area(x, (period) => y(period.share_intervals[sense][0]), (period) => y(period.share_intervals[sense][1]));
      const curve = line(x, (period) => y(period.shares[sense]));
      const name = groupName(kind, sense);
      return html`
        <g key=${sense} class=${`sense-line hue-${sense % COLOURS}`}>
          <path class="band" d=${band.defined(known)(periods)} />
          <path class="share-line" d=${curve.defined(known)(periods)} />
          ${periods.map(
            (period, i) =>
              known(period) &&
              periods.length <= MARKED && html`
                <path
                  key=${i}
                  class=${`dot hue-${sense % COLOURS}`}
                  d=${symbol(symbolsFill[sense % symbolsFill.length], 42)()}
                  transform=${`translate(${columns.middle(i)} ${y(period.shares[sense])})`}
                >
                  <title>${`${period.name} · ${name}: ${shareText(period, sense)}`}</title>
                </path>
              `,
          )}
        </g>
      `;
    })}
  `;
}

function Grid({ y, ticks, width, format }) {
  return ticks.map(
    (value) => html`
      <g key=${value}>
        <line class="grid" x1=${EDGES.left} x2=${width - EDGES.right} y1=${y(value)} y2=${y(value)} />
        <text x=${EDGES.left - 7} y=${y(value) + 4} text-anchor="end">${format(value)}</text>
      </g>
    `,
  );
}

export function frequencyText({ name, count, frequency, interval }) {
  const [low, high] = interval.map((value) => number(value));
  return t("timeline.frequency", { name, count: number(count), frequency: number(frequency), low, high });
}

export function shareText({ shares, share_intervals: intervals }, sense) {
  return `${percent(shares[sense])} (${intervals[sense].map(percent).join("–")})`;
}

// Columns whose names fit below the chart.
function tickColumns(periods, { step }) {
  const widest = max(periods, ({ name }) => textWidth(tickName(name), FONT_SIZE)) + 10;
  const every = Math.max(1, Math.ceil(widest / step));
  return periods.map((_, i) => i).filter((i) => i % every === 0 && i + every / 3 <= periods.length - 1 + every / 2);
}

// Decades are named by their first year.
function tickName(name) {
  return /^(\d+)-\d+$/.exec(name)?.[1] ?? shortName(name);
}
