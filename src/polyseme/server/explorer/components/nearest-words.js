// A word in; the nearest words, and the words that could stand in its place, out.

import { html } from "/explorer/html-template.js";
import { number, percent, t } from "/explorer/i18n.js";
import { Answer, useAnswer } from "/explorer/components/server-request.js";
import { Code } from "/explorer/components/code-block.js";
import { Exports } from "/explorer/components/export-buttons.js";
import { indexOf, tongueOf, useInfo } from "/explorer/components/server-info.js";
import * as snippets from "/explorer/code-snippets.js";
import { linkTo } from "/explorer/routing.js";

const SHOWN = 10;
const LARGE = 20_000; // usages of an index in which a word of few usages is no neighbour worth a line
const COMMON = 5;
const DIRECTIONS = ["forward", "joint", "backward"];

export function Types({ word, params }) {
  const info = useInfo();
  const index = indexOf(info, params.index);
  const least = index?.usages > LARGE ? COMMON : 1;
  const answer = useAnswer("/nearest", { word, index: index?.name ?? null, k: SHOWN, min_count: least });
  return html`
    <section aria-labelledby="types-title">
      <h2 id="types-title">${t("types.title")}</h2>
      <p class="hint">${least > 1 ? t("types.common", { count: least }) : t("types.hint")}</p>
      <${Answer} of=${answer}>
        ${({ words }) => html`<${TypeList} words=${words} word=${word} index=${index} lang=${tongueOf(info)} />`}
      <//>
      <${Code} lines=${snippets.types({ word, index, model: info.model, k: SHOWN, least })} />
    </section>
  `;
}

function TypeList({ words, word, index, lang }) {
  if (!words.length) return html`<p>${t("types.none")}</p>`;
  const rows = () => [["word", "cosine", "count"], ...words.map((row) => [row.word, row.cosine, row.count])];
  return html`
    <ol class="types">
      ${words.map(
        (row) => html`
          <li key=${row.word}>
            <span lang=${lang}>${row.word}</span>
            <span class="value">${number(row.cosine, 3)}</span>
            <span class="source">${t("types.count", { count: number(row.count) })}</span>
          </li>
        `,
      )}
    </ol>
    ${index && html`<p><a href=${linkTo("senses", { word })}>${t("types.senses", { word })}</a></p>`}
    <${Exports} name=${t("types.title")} file=${`words-${word}`} csv=${rows} />
  `;
}

export function Substitutes({ text, token, words, place }) {
  const info = useInfo();
  const has = info.model.has_softmax;
  const asked = { place, k: SHOWN };
  const answer = useAnswer(has ? "/substitutes" : null, { tokens: words, ...asked });
  return html`
    <section aria-labelledby="subs-title">
      <h2 id="subs-title">${t("subs.title")}</h2>
      ${!has && html`<p>${t("subs.noSoftmax")}</p>`}
      <${Answer} of=${answer}>${(data) => html`<${Rankings} data=${data} lang=${tongueOf(info)} />`}<//>
      ${has && html`<${Code} lines=${snippets.substitutes({ ...asked, text, token, words, model: info.model })} />`}
    </section>
  `;
}

function Rankings({ data, lang }) {
  const word = data.tokens[data.place];
  const rows = () => [
    ["direction", "rank", "word", "probability"],
    ...DIRECTIONS.flatMap((name) => data[name].best.map((one, at) => [name, at + 1, one.word, one.probability])),
  ];
  return html`
    <div class="rankings">
      ${DIRECTIONS.map(
        (name) => html`
          <div key=${name}>
            <h3>${t(`subs.${name}`)}</h3>
            <ol>
              ${data[name].best.map(
                (one) => html`
                  <li key=${one.word} class=${one.word === word ? "itself" : ""}>
                    <span lang=${lang}>${one.word}</span> <span class="value">${chance(one.probability)}</span>
                  </li>
                `,
              )}
            </ol>
            <p class="hint">
              ${data[name].rank === null ? t("subs.noRank", { word }) : t("subs.rank", { word, rank: number(data[name].rank) })}
            </p>
          </div>
        `,
      )}
    </div>
    <${Exports} name=${t("subs.title")} file=${`substitutes-${word}`} csv=${rows} />
  `;
}

function chance(probability) {
  return probability >= 0.01 ? percent(probability) : "< 1%";
}
