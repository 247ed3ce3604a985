// The nearest words of a word, and substitutes for it in its sentence.

import { html } from "/explorer/html-template.js";
import { number, percent, t } from "/explorer/i18n.js";
import { Await, useRequest } from "/explorer/components/server-request.js";
import { Code } from "/explorer/components/code-block.js";
import { LinkedWord } from "/explorer/components/corpus-links.js";
import { ExportButtons } from "/explorer/components/export-buttons.js";
import { chosenIndex, useInfo } from "/explorer/components/server-info.js";
import * as snippets from "/explorer/code-snippets.js";
import { linkTo } from "/explorer/routing.js";

const SHOWN = 10;
const LARGE_INDEX = 20_000; // usages; in a larger index, rare words are left out
const MIN_COUNT = 5;
const DIRECTIONS = ["forward", "joint", "backward"];

export function NearestWords({ word, params }) {
  const info = useInfo();
  const index = chosenIndex(info, params.index);
  const minCount = index?.usages > LARGE_INDEX ? MIN_COUNT : 1;
  const request = useRequest("/nearest", { word, index: index?.name ?? null, k: SHOWN, min_count: minCount });
  return html`
    <section aria-labelledby="words-title">
      <h2 id="words-title">${t("words.title")}</h2>
      <p class="hint">${minCount > 1 ? t("words.common", { count: minCount }) : t("words.hint")}</p>
      <${Await} request=${request}>
        ${({ words }) => html`<${WordList} words=${words} word=${word} index=${index} />`}
      <//>
      <${Code} lines=${snippets.nearestWords({ word, index, model: info.model, k: SHOWN, minCount })} />
    </section>
  `;
}

function WordList({ words, word, index }) {
  if (!words.length) return html`<p>${t("words.none")}</p>`;
  const csvRows = () => [["word", "cosine", "count"], ...words.map((row) => [row.word, row.cosine, row.count])];
  return html`
    <ol class="word-list">
      ${words.map(
        (row) => html`
          <li key=${row.word}>
            <span><${LinkedWord} word=${row.word} /></span>
            <span class="value">${number(row.cosine, 3)}</span>
            <span class="source">${t("words.count", { count: number(row.count) })}</span>
          </li>
        `,
      )}
    </ol>
    ${index && html`<p><a href=${linkTo("senses", { word })}>${t("words.senses", { word })}</a> · <a href=${linkTo("concordance", { word })}>${t("words.usages", { word })}</a></p>`}
    <${ExportButtons} name=${t("words.title")} file=${`words-${word}`} csv=${csvRows} />
  `;
}

export function Substitutes({ text, token, words, position }) {
  const info = useInfo();
  const hasSoftmax = info.model.has_softmax;
  const request = useRequest(hasSoftmax ? "/substitutes" : null, { tokens: words, position, k: SHOWN });
  return html`
    <section aria-labelledby="substitutes-title">
      <h2 id="substitutes-title">${t("substitutes.title")}</h2>
      ${!hasSoftmax && html`<p>${t("substitutes.noSoftmax")}</p>`}
      <${Await} request=${request}>${(data) => html`<${Rankings} data=${data} />`}<//>
      ${hasSoftmax && html`<${Code} lines=${snippets.substitutes({ text, token, words, position, model: info.model, k: SHOWN })} />`}
    </section>
  `;
}

function Rankings({ data }) {
  const word = data.tokens[data.position];
  const csvRows = () => [
    ["direction", "rank", "word", "probability"],
    ...DIRECTIONS.flatMap((name) => data[name].best.map((substitute, i) => [name, i + 1, substitute.word, substitute.probability])),
  ];
  return html`
    <div class="rankings">
      ${DIRECTIONS.map(
        (name) => html`
          <div key=${name}>
            <h3>${t(`substitutes.${name}`)}</h3>
            <ol>
              ${data[name].best.map(
                ({ word: substitute, probability }) => html`
                  <li key=${substitute} class=${substitute === word ? "itself" : ""}>
                    <span><${LinkedWord} word=${substitute} /></span> <span class="value">${probabilityText(probability)}</span>
                  </li>
                `,
              )}
            </ol>
            <p class="hint">
              ${data[name].rank === null ? t("substitutes.noRank", { word }) : t("substitutes.rank", { word, rank: number(data[name].rank) })}
            </p>
          </div>
        `,
      )}
    </div>
    <${ExportButtons} name=${t("substitutes.title")} file=${`substitutes-${word}`} csv=${csvRows} />
  `;
}

function probabilityText(probability) {
  return probability >= 0.01 ? percent(probability) : "< 1%";
}
