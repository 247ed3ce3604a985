// Python, curl and command line for what is on screen, with copy buttons. A `note` says why one is missing.

import { useState } from "preact/hooks";
import { html } from "/explorer/html-template.js";
import { t } from "/explorer/i18n.js";

export function Code({ lines }) {
  return html`
    <details class="code">
      <summary>${t("code.title")}</summary>
      ${["python", "curl", "cli"].map(
        (kind) => lines[kind] && html`<${CodeLines} key=${kind} name=${t(`code.${kind}`)} text=${lines[kind]} />`,
      )}
      ${lines.note && html`<p class="hint">${lines.note}</p>`}
    </details>
  `;
}

export function CodeLines({ name, text }) {
  const [label, setLabel] = useState("copy");
  const onClick = async () => {
    setLabel((await copyText(text)) ? "copied" : "failed");
    setTimeout(() => setLabel("copy"), 2000);
  };
  return html`
    <div class="lines">
      <div class="lines-head">
        <span>${name}</span>
        <button
          type="button"
          class="small"
          aria-label=${label === "copy" ? t("code.copyName", { name }) : null}
          onClick=${onClick}
        >
          <span aria-live="polite">${t(`code.${label}`)}</span>
        </button>
      </div>
      <pre tabindex="0" aria-label=${name}><code>${text}</code></pre>
    </div>
  `;
}

// Browsers refuse clipboard access to pages served over plain HTTP from another machine.
async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}
