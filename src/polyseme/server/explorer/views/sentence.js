// A text in; its words out, and for the chosen one: nearest usages, nearest words, substitutes.
//
// A text may have many sentences. The model reads one at a time, as it read the corpus of the index: a word is asked
// for with the words of its own sentence.
//
// Parameters: text, token (a place in the text, from 0), index, mix (weights), same (1: usages of the same word only).

import { useState } from "preact/hooks";
import { html } from "/explorer/html-template.js";
import { number, t } from "/explorer/i18n.js";
import { Answer, useAnswer } from "/explorer/components/server-request.js";
import { IndexChoice, TextField } from "/explorer/components/form-fields.js";
import { indexOf, tongueOf, useInfo } from "/explorer/components/server-info.js";
import { Tokens } from "/explorer/components/token-buttons.js";
import { Usages } from "/explorer/components/nearest-usages.js";
import { Substitutes, Types } from "/explorer/components/nearest-words.js";
import { sentenceOf } from "/explorer/text-spans.js";
import { linkTo } from "/explorer/routing.js";

const DRAWN = 1500; // words of a text before "show more"

// Examples are in the language of the model, whatever the language of the page.
const EXAMPLES = {
  zh: ["曹操大怒，欲斩此将。", "天色将晚，人马困乏。", "宝玉听了，心中十分欢喜。"],
  en: [
    "He sat on the bank of the river.",
    "She kept her money in the bank.",
    "The captain of the ship gave the order.",
  ],
};

export function Sentence({ params, go }) {
  const info = useInfo();
  const text = params.text ?? "";
  const index = indexOf(info, params.index);
  const answer = useAnswer(text.trim() ? "/tokenize" : null, { texts: [text], index: index?.name });
  const edit = (next) => go({ text: next, token: null });
  return html`
    <div class="form">
      <${TextField}
        label=${t("sentence.text")}
        value=${text}
        commit=${edit}
        placeholder=${t("sentence.placeholder")}
        lang=${tongueOf(info)}
      />
      <${IndexChoice}
        info=${info}
        value=${index?.name}
        commit=${(index) => go({ index }, true)}
      />
    </div>
    ${!text.trim() && html`<${Empty} info=${info} index=${index} />`}
    <${Answer} of=${answer}>
      ${(data) => html`<${Words} text=${text} tokens=${data.tokens[0]} settled=${!answer.busy} params=${params} go=${go} />`}
    <//>
  `;
}

function Empty({ info, index }) {
  const examples = EXAMPLES[info.model.language] ?? index?.examples.texts ?? EXAMPLES.en;
  return html`
    <div class="empty">
      <p>${t("sentence.empty")}</p>
      <p>${t("sentence.examples")}</p>
      <ul lang=${tongueOf(info)}>
        ${examples.map((text) => html`<li key=${text}><a href=${linkTo("sentence", { text })}>${text}</a></li>`)}
      </ul>
    </div>
  `;
}

function Words({ text, tokens, settled, params, go }) {
  // While a new text is on its way, the place in the address is a place in that text, not in these words.
  const asked = params.token === undefined || !settled ? -1 : Number(params.token);
  const place = asked in tokens ? asked : null;
  if (!tokens.length) return html`<p>${t("sentence.none")}</p>`;
  return html`
    <${AllWords} key=${text} tokens=${tokens} place=${place} go=${go} />
    ${place !== null && html`<${AboutWord} text=${text} tokens=${tokens} place=${place} params=${params} go=${go} />`}
  `;
}

// The words of all sentences, as buttons; those of the chosen word's own sentence stand out.
function AllWords({ tokens, place, go }) {
  const info = useInfo();
  const [most, setMost] = useState(DRAWN);
  const drawn = tokens.slice(0, Math.max(most, (place ?? 0) + 1));
  const rest = tokens.length - drawn.length;
  const count = tokens.at(-1).sentence + 1;
  const look = (at) => {
    const first = at > 0 && tokens[at].sentence !== tokens[at - 1].sentence;
    const own = count > 1 && place !== null && tokens[at].sentence === tokens[place].sentence;
    return { class: `${first ? "begins" : ""} ${own ? "own" : ""}` };
  };
  return html`
    <section aria-labelledby="tokens-title">
      <h2 id="tokens-title">${t("sentence.tokens")}</h2>
      ${count > 1 && html`<p class="hint">${t("sentence.several", { count: number(count) })}</p>`}
      <${Tokens}
        words=${drawn.map((token) => token.text)}
        chosen=${place}
        choose=${(token) => go({ token }, true)}
        label=${t("sentence.tokens")}
        lang=${tongueOf(info)}
        look=${look}
      />
      ${rest > 0 && html`<button type="button" onClick=${() => setMost(drawn.length + DRAWN)}>${t("sentence.more", { count: number(rest) })}</button>`}
      ${place === null && html`<p class="hint">${t("sentence.choose")}</p>`}
    </section>
  `;
}

function AboutWord({ text, tokens, place, params, go }) {
  const own = sentenceOf(text, tokens, place);
  const shared = { text: own.text, words: own.tokens.map((token) => token.text), place: own.place };
  return html`
    <div class="columns">
      <${Usages} ...${shared} params=${params} go=${go} />
      <div>
        <${Substitutes} ...${shared} token=${own.tokens[own.place]} />
        <${Types} word=${tokens[place].text} params=${params} />
      </div>
    </div>
  `;
}
