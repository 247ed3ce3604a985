// In the footer: saves the view as a file, and says how CSV files are written. Below the header: what a link holds.

import { useState } from "preact/hooks";
import { isForExcel, setForExcel } from "/explorer/file-export.js";
import { html } from "/explorer/html-template.js";
import { t } from "/explorer/i18n.js";
import { savePage } from "/explorer/page-export.js";
import { storedState } from "/explorer/stored-texts.js";

export function PageFiles({ info, route }) {
  const [excel, setExcel] = useState(isForExcel);
  if (!info) return null;
  const change = (event) => {
    setForExcel(event.target.checked);
    setExcel(event.target.checked);
  };
  const saveView = () => {
    const date = new Date().toLocaleDateString(document.documentElement.lang);
    const note = t("page.madeWith", { version: info.version, model: info.model.name, date });
    const name = [route.view, route.params.word].filter(Boolean).join("-");
    savePage({ title: document.title, note, name });
  };
  return html`
    <button type="button" class="small" title=${t("page.saveHint")} onClick=${saveView}>${t("page.save")}</button>
    <label class="check" title=${t("page.excelHint")}>
      <input type="checkbox" checked=${excel} onChange=${change} /> ${t("page.excel")}
    </label>
  `;
}

// A long text is not in the link: says where it is.
export function StoredText() {
  const state = storedState(location.hash);
  return state && html`<p class="hint" role="status">${t(`stored.${state}`)}</p>`;
}
