// The usages of the corpus that are nearest to a word in a sentence, reranked live by the layer sliders.

import { renderOffscreen } from "/explorer/file-export.js";
import { html } from "/explorer/html-template.js";
import { number, t } from "/explorer/i18n.js";
import { candidatesOf, parseMix, rank, weightsOf } from "/explorer/layer-mix.js";
import { Await, useRequest } from "/explorer/components/server-request.js";
import { Code, CodeLines } from "/explorer/components/code-block.js";
import { ExportButtons } from "/explorer/components/export-buttons.js";
import { chosenIndex, languageOf, useInfo } from "/explorer/components/server-info.js";
import { LayerChart } from "/explorer/components/layer-cosine-chart.js";
import { LayerSliders } from "/explorer/components/layer-sliders.js";
import { UsageQuote, UsageSource } from "/explorer/components/usage-quote.js";
import * as snippets from "/explorer/code-snippets.js";
import { linkTo, useTyped } from "/explorer/routing.js";

const CANDIDATES = 50; // usages requested by the layer of the index, and as many by layer 0
const SHOWN = 10;

export function NearestUsages({ text, words, position, params, navigate }) {
  const info = useInfo();
  const index = chosenIndex(info, params.index);
  const sameWord = params.same === "1";
  const body = {
    word: words[position],
    tokens: words,
    position,
    index: index.name,
    k: CANDIDATES,
    same_word: sameWord,
    layers: true,
  };
  const request = useRequest("/nearest", body);
  const toggle = (event) => navigate({ same: event.target.checked ? "1" : null }, true);
  return html`
    <section aria-labelledby="usages-title">
      <h2 id="usages-title">${t("usages.title")}</h2>
      <label class="check">
        <input type="checkbox" checked=${sameWord} onChange=${toggle} /> ${t("usages.same", { word: words[position] })}
      </label>
      <${Await} request=${request}>
        ${(data) =>
          data.usages.length
            ? html`<${RankedUsages} data=${data} query=${{ text, words, position, index, sameWord }} params=${params} navigate=${navigate} />`
            : html`<p>${t("usages.none")}</p>`}
      <//>
    </section>
  `;
}

export function NoIndex({ title, text }) {
  const lines = snippets.newIndex(useInfo().model);
  return html`<section>
    <h2>${title}</h2>
    <p>${text}</p>
    <${CodeLines} name=${t("code.cli")} text=${lines} />
  </section>`;
}

// query: text, words, position, index, sameWord.
function RankedUsages({ data, query, params, navigate }) {
  const info = useInfo();
  const { text, index } = query;
  const word = query.words[query.position];
  const indexWeights = weightsOf(index.layer, data.query.own.length);
  const [mix, setMix] = useTyped(params.mix ?? "", (next) => navigate({ mix: next }));
  const weights = parseMix(mix, indexWeights);
  const setWeights = (next) => setMix(parseMix(String(next), indexWeights) ? String(next) : "");
  const ranked = rank(data, weights, candidatesOf(data).length);
  const best = ranked.slice(0, SHOWN);
  return html`
    <${LayerSliders}
      response=${data}
      weights=${weights ?? indexWeights}
      changed=${nonZero(weights) !== null}
      indexWeights=${indexWeights}
      word=${word}
      shown=${SHOWN}
      index=${index}
      setWeights=${setWeights}
    />
    <ol class="usages">
      ${best.map((usage, newRank) => {
        const shared = { usage, newRank, text, lang: languageOf(info) };
        return html`<${Usage} key=${usage.id} ...${shared} known=${data.usages.length} />`;
      })}
    </ol>
    <${ExportButtons}
      name=${t("usages.title")}
      file=${`usages-${word}`}
      svg=${() => renderOffscreen(html`<${LayerChart} usages=${best} lang=${languageOf(info)} />`)}
      csv=${() => csvRows(ranked)}
    />
    <${Code} lines=${snippets.nearestUsages({ ...query, k: SHOWN, candidates: CANDIDATES, weights: nonZero(weights) })} />
  `;
}

// known: how many usages the index ranked. The rank of any other usage is unknown.
function Usage({ usage, text, lang, newRank, known }) {
  const { indexRank } = usage;
  const moved =
    indexRank === null ? t("usages.far", { known }) : indexRank !== newRank && t("usages.moved", { rank: indexRank + 1 });
  return html`
    <li>
      <${UsageQuote} usage=${usage} lang=${lang} />
      <div class="usage-info">
        <span class="value">${t("usages.cosine")} <b>${number(usage.cosine, 3)}</b></span>
        <${UsageSource} usage=${usage} />
        ${moved && html`<span class="moved">${moved}</span>`}
        <a href=${linkTo("compare", { a: text, b: usage.sentence })} title=${t("usages.compareName")}>
          ${t("usages.compare")}
        </a>
        <${LayerBars} layers=${usage.layers} />
      </div>
    </li>
  `;
}

function LayerBars({ layers }) {
  return html`
    <ul class="layer-bars" aria-label=${t("usages.inLayers")}>
      ${layers.map(
        (cosine, layer) => html`
          <li key=${layer} title=${t("layer.name", { layer })}>
            <span class="visually-hidden">${t("layer.name", { layer })}${" "}</span>
            <span class="layer" aria-hidden="true">${layer}</span>
            <span class="track" aria-hidden="true">
              <span style=${{ width: `${Math.max(0, cosine) * 100}%` }}></span>
            </span>
            <span class="value">${number(cosine, 2)}</span>
          </li>
        `,
      )}
    </ul>
  `;
}

// All weights at zero give no ranking: the list and the code are those of the index.
function nonZero(weights) {
  return weights?.some((weight) => weight > 0) ? weights : null;
}

function csvRows(usages) {
  const layers = usages[0]?.layers.map((_, layer) => `layer ${layer}`) ?? [];
  const head = ["cosine", "word", "sentence", "start", "stop", "document", "line", ...layers];
  return [head, ...usages.map((usage) => [...head.slice(0, 7).map((name) => usage[name]), ...usage.layers])];
}
