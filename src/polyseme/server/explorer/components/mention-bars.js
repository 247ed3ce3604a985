// Mentions of a person by document: columns, and the same as a table.

import { useRef } from "preact/hooks";
import { html } from "/explorer/html-template.js";
import { number, t } from "/explorer/i18n.js";
import { ExportButtons } from "/explorer/components/export-buttons.js";
import { useElementWidth } from "/explorer/measure-width.js";

const { scaleLinear } = globalThis.d3;

const SIZE = { height: 150, left: 38, top: 10, bottom: 22 };

// counts: [[position of a document, mentions], …]
export function MentionBars({ name, documents, counts }) {
  const drawing = useRef(null);
  const [frame, width] = useElementWidth();
  const { height, left, top, bottom } = SIZE;
  const step = (width - left) / documents.length;
  const y = scaleLinear([0, Math.max(...counts.map(([, count]) => count))], [height - bottom, top]).nice();
  const title = t("persons.byDocument", { name });
  const every = Math.max(1, Math.ceil(30 / step));
  const csv = () => [[t("senses.document"), t("persons.count")], ...counts.map(([n, count]) => [documents[n], count])];
  return html`
    <div ref=${frame}>
      <svg ref=${drawing} class="mentions" role="img" aria-label=${title} viewBox=${`0 0 ${width} ${height}`}>
        ${y.ticks(3).map(
          (value) => html`
            <line key=${value} class="grid" x1=${left} x2=${width} y1=${y(value)} y2=${y(value)} />
            <text x=${left - 6} y=${y(value) + 4} text-anchor="end">${number(value)}</text>
          `,
        )}
        ${counts.map(
          ([n, count]) => html`
            <g key=${n}>
              <title>${`${documents[n]}: ${number(count)}`}</title>
              <rect class="column" x=${left + n * step} y=${top} width=${step} height=${height - top - bottom} />
              <rect class="bar" x=${left + n * step} y=${y(count)} width=${Math.max(1, step * 0.8)} height=${y(0) - y(count)} />
            </g>
          `,
        )}
        ${documents.map(
          (_, n) =>
            n % every === 0 && html`<text key=${n} class="axis" x=${left + (n + 0.4) * step} y=${height - 6} text-anchor="middle">${n + 1}</text>`,
        )}
      </svg>
    </div>
    <${ExportButtons} name=${title} file=${`mentions-${name}`} svg=${() => drawing.current} csv=${csv} />
    <details>
      <summary>${t("model.values")}</summary>
      <div class="scroll" tabindex="0" role="group" aria-label=${title}>
        <table class="values">
          <caption class="visually-hidden">${title}</caption>
          <thead><tr><th scope="col">${t("senses.document")}</th><th scope="col">${t("persons.count")}</th></tr></thead>
          <tbody>
            ${counts.map(([n, count]) => html`<tr key=${n}><th scope="row">${documents[n]}</th><td>${number(count)}</td></tr>`)}
          </tbody>
        </table>
      </div>
    </details>
  `;
}
