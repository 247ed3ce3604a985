// Buttons that save a chart or a table. `svg` returns the drawing, `csv` the rows.

import { saveCsv, savePng, saveSvg } from "/explorer/file-export.js";
import { html } from "/explorer/html-template.js";
import { t } from "/explorer/i18n.js";

export function ExportButtons({ name, file, svg, csv }) {
  const button = (kind, onClick) => html`
    <button type="button" class="small" aria-label=${t("export.as", { name, kind })} onClick=${onClick}>
      ${kind}
    </button>
  `;
  return html`
    <span class="exports">
      ${svg && button("SVG", () => saveSvg(svg(), file))} ${svg && button("PNG", () => savePng(svg(), file))}
      ${csv && button("CSV", () => saveCsv(csv(), file))}
    </span>
  `;
}
