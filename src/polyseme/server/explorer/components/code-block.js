// Lines of Python, curl and command line in; a fold with copy buttons out. A kind may be missing; a note says why.

import { useState } from "preact/hooks";
import { html } from "/explorer/html-template.js";
import { t } from "/explorer/i18n.js";

export function Code({ lines }) {
  return html`
    <details class="code">
      <summary>${t("code.title")}</summary>
      ${["python", "curl", "cli"].map(
        (kind) => lines[kind] && html`<${Lines} key=${kind} name=${t(`code.${kind}`)} text=${lines[kind]} />`,
      )}
      ${lines.note && html`<p class="hint">${lines.note}</p>`}
    </details>
  `;
}

export function Lines({ name, text }) {
  const [said, setSaid] = useState("copy");
  const onClick = async () => {
    setSaid((await copied(text)) ? "copied" : "failed");
    setTimeout(() => setSaid("copy"), 2000);
  };
  return html`
    <div class="lines">
      <div class="lines-head">
        <span>${name}</span>
        <button
          type="button"
          class="small"
          aria-label=${said === "copy" ? t("code.copyName", { name }) : null}
          onClick=${onClick}
        >
          <span aria-live="polite">${t(`code.${said}`)}</span>
        </button>
      </div>
      <pre tabindex="0" aria-label=${name}><code>${text}</code></pre>
    </div>
  `;
}

// The clipboard is closed to pages that came over plain HTTP from another machine.
async function copied(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}
