// Buttons that save a chart or a table. `svg` returns the drawing, `csv` the rows, or a promise of them.

import { useState } from "preact/hooks";
import { saveCsv, savePng, saveSvg } from "/explorer/file-export.js";
import { html } from "/explorer/html-template.js";
import { t } from "/explorer/i18n.js";

export function ExportButtons({ name, file, svg, csv }) {
  const [busy, setBusy] = useState(false);
  const [failed, setFailed] = useState(false);
  const save = async (write) => {
    setBusy(true);
    setFailed(false);
    try {
      await write();
    } catch {
      setFailed(true);
    }
    setBusy(false);
  };
  const button = (kind, write) => html`
    <button type="button" class="small" disabled=${busy} aria-label=${t("export.as", { name, kind })} onClick=${() => save(write)}>
      ${kind}
    </button>
  `;
  return html`
    <span class="exports" aria-busy=${String(busy)}>
      ${svg && button("SVG", () => saveSvg(svg(), file))} ${svg && button("PNG", () => savePng(svg(), file))}
      ${csv && button("CSV", async () => saveCsv(await csv(), file))}
      ${failed && html`<span class="hint" role="alert">${t("export.failed")}</span>`}
    </span>
  `;
}
