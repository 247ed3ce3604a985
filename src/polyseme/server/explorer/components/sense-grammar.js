// Says that groups of usages are grammatical positions, names the words beside each, and offers what helps: merging
// them, or an index of contexts.

import { html } from "/explorer/html-template.js";
import { number, t } from "/explorer/i18n.js";
import { CodeLines } from "/explorer/components/code-block.js";
import { groupName } from "/explorer/components/sense-shares.js";
import { languageOf, useInfo } from "/explorer/components/server-info.js";
import * as snippets from "/explorer/code-snippets.js";

const NAMED = 4; // words on each side

export function Grammar({ result, index, merged, navigate }) {
  const info = useInfo();
  const lang = languageOf(info);
  const contexts = info.indexes.find((other) => other.view === "context" && other.name !== index.name);
  const cleared = { sense: null, area: null };
  const beside = (words) => words.slice(0, NAMED).join(" ") || "–";
  return html`
    <div class="grammar" role="note">
      <p>${t(result.kind === "senses" ? "grammar.also" : "grammar.why", { value: number(result.evidence.grammar, 2) })}</p>
      ${!merged &&
      html`<ul>
        ${result.senses.map(
          ({ before, after }, i) => html`
            <li key=${i}>${groupName(result.kind, i)}: <span lang=${lang}>${beside(before)}</span> <b lang=${lang}>[${result.word}]</b> <span lang=${lang}>${beside(after)}</span></li>
          `,
        )}
      </ul>`}
      <p class="choices">
        ${!merged && html`<button type="button" class="small" onClick=${() => navigate({ max: 1, groups: null, ...cleared }, true)}>${t("groups.merge")}</button>${" "}`}
        ${contexts && html`<button type="button" class="small" onClick=${() => navigate({ index: contexts.name, ...cleared }, true)}>${t("grammar.contexts", { name: contexts.name })}</button>`}
      </p>
      ${!contexts && index.view !== "context" &&
      html`<details>
        <summary>${t("grammar.build")}</summary>
        <${CodeLines} name=${t("grammar.command")} text=${snippets.contextIndex({ model: info.model, index })} />
      </details>`}
    </div>
  `;
}
