// A word in a sentence in; the nearest usages of the corpus out, ranked live by the mix of layers.

import { drawnAside } from "/explorer/file-export.js";
import { html } from "/explorer/html-template.js";
import { number, t } from "/explorer/i18n.js";
import { parseMix, rank, weightsOf } from "/explorer/layer-mix.js";
import { Answer, useAnswer } from "/explorer/components/server-request.js";
import { Code, Lines } from "/explorer/components/code-block.js";
import { Exports } from "/explorer/components/export-buttons.js";
import { indexOf, tongueOf, useInfo } from "/explorer/components/server-info.js";
import { LayerChart } from "/explorer/components/layer-cosine-chart.js";
import { Mixer } from "/explorer/components/layer-sliders.js";
import { Quote, Source } from "/explorer/components/usage-quote.js";
import * as snippets from "/explorer/code-snippets.js";
import { linkTo, useTyped } from "/explorer/routing.js";

const ASKED = 50; // usages by the layer of the index, and as many by layer 0: to read them all takes 0.1 s
const SHOWN = 10;

export function Usages({ text, words, place, params, go }) {
  const info = useInfo();
  const index = indexOf(info, params.index);
  const same = params.same === "1";
  const body = {
    word: words[place],
    tokens: words,
    place,
    index: index?.name,
    k: ASKED,
    same_word: same,
    layers: true,
  };
  const answer = useAnswer(index && "/nearest", body);
  const toggle = (event) => go({ same: event.target.checked ? "1" : null }, true);
  if (!index) return html`<${NoIndex} text=${t("usages.noIndex")} title=${t("usages.title")} />`;
  return html`
    <section aria-labelledby="usages-title">
      <h2 id="usages-title">${t("usages.title")}</h2>
      <label class="check">
        <input type="checkbox" checked=${same} onChange=${toggle} /> ${t("usages.same", { word: words[place] })}
      </label>
      <${Answer} of=${answer}>
        ${(data) =>
          data.usages.length
            ? html`<${Ranked} data=${data} asked=${{ text, words, place, index, same }} params=${params} go=${go} />`
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
    <${Lines} name=${t("code.cli")} text=${lines} />
  </section>`;
}

// asked: text, words, place, index, same.
function Ranked({ data, asked, params, go }) {
  const info = useInfo();
  const { text, index } = asked;
  const word = asked.words[asked.place];
  const usual = weightsOf(index.layer, data.query.own.length);
  const [mix, setMix] = useTyped(params.mix ?? "", (next) => go({ mix: next }));
  const weights = parseMix(mix, usual);
  const change = (next) => setMix(parseMix(String(next), usual) ? String(next) : "");
  const best = rank(data, weights, SHOWN);
  return html`
    <${Mixer}
      answer=${data}
      weights=${weights ?? usual}
      moved=${mixedOf(weights) !== null}
      usual=${usual}
      word=${word}
      shown=${SHOWN}
      index=${index}
      change=${change}
    />
    <ol class="usages">
      ${best.map((usage, place) => {
        const shared = { usage, place, text, lang: tongueOf(info) };
        return html`<${Found} key=${usage.at} ...${shared} known=${data.usages.length} />`;
      })}
    </ol>
    <${Exports}
      name=${t("usages.title")}
      file=${`usages-${word}`}
      svg=${() => drawnAside(html`<${LayerChart} usages=${best} lang=${tongueOf(info)} />`)}
      csv=${() => rows(best)}
    />
    <${Code} lines=${snippets.usages({ ...asked, k: SHOWN, asked: ASKED, weights: mixedOf(weights) })} />
  `;
}

// known: how many of its usages the index has ranked; what is farther has no rank there that anybody knows.
function Found({ usage, text, lang, place, known }) {
  const { before } = usage;
  const was = before === null ? t("usages.far", { known }) : before !== place && t("usages.moved", { rank: before + 1 });
  return html`
    <li>
      <${Quote} usage=${usage} lang=${lang} />
      <div class="about">
        <span class="value">${t("usages.cosine")} <b>${number(usage.cosine, 3)}</b></span>
        <${Source} usage=${usage} />
        ${was && html`<span class="moved">${was}</span>`}
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
            <span class="unseen">${t("layer.name", { layer })}${" "}</span>
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

// Nothing but zeros is no mix: the list is the server's, and so are the lines.
function mixedOf(weights) {
  return weights?.some((weight) => weight > 0) ? weights : null;
}

function rows(usages) {
  const layers = usages[0]?.layers.map((_, layer) => `layer ${layer}`) ?? [];
  const head = ["cosine", "word", "sentence", "start", "stop", "document", "line", ...layers];
  return [head, ...usages.map((usage) => [...head.slice(0, 7).map((name) => usage[name]), ...usage.layers])];
}
