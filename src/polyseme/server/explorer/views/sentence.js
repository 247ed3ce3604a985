// The sentence view: the tokens of a text, and for the chosen one its nearest usages, nearest words and substitutes.
//
// A text may have several sentences. The model reads one at a time, like the corpus of the index, so requests hold
// the tokens of the chosen word's sentence.
//
// Parameters: text, token (position in the text, from 0), index, mix (weights), same (1: usages of the same word only).

import { useState } from "preact/hooks";
import { html } from "/explorer/html-template.js";
import { number, t } from "/explorer/i18n.js";
import { Await, useRequest } from "/explorer/components/server-request.js";
import { IndexSelect, TextField } from "/explorer/components/form-fields.js";
import { chosenIndex, languageOf, useInfo } from "/explorer/components/server-info.js";
import { TokenButtons } from "/explorer/components/token-buttons.js";
import { NearestUsages } from "/explorer/components/nearest-usages.js";
import { NearestWords, Substitutes } from "/explorer/components/nearest-words.js";
import { sentenceOf } from "/explorer/text-spans.js";
import { linkTo } from "/explorer/routing.js";

const PAGE = 1500; // tokens before "show more"

// Examples are in the language of the model, not of the page.
const EXAMPLES = {
  zh: ["曹操大怒，欲斩此将。", "天色将晚，人马困乏。", "宝玉听了，心中十分欢喜。"],
  en: [
    "He sat on the bank of the river.",
    "She kept her money in the bank.",
    "The captain of the ship gave the order.",
  ],
};

export function Sentence({ params, navigate }) {
  const info = useInfo();
  const text = params.text ?? "";
  const index = chosenIndex(info, params.index);
  const request = useRequest(text.trim() ? "/tokenize" : null, { texts: [text], index: index?.name });
  const edit = (next) => navigate({ text: next, token: null });
  return html`
    <div class="form">
      <${TextField}
        label=${t("sentence.text")}
        value=${text}
        onCommit=${edit}
        placeholder=${t("sentence.placeholder")}
        lang=${languageOf(info)}
      />
      <${IndexSelect}
        info=${info}
        value=${index?.name}
        onCommit=${(index) => navigate({ index }, true)}
      />
    </div>
    ${!text.trim() && html`<${Empty} info=${info} index=${index} />`}
    <${Await} request=${request}>
      ${(data) => html`<${Tokens} text=${text} tokens=${data.tokens[0]} settled=${!request.busy} params=${params} navigate=${navigate} />`}
    <//>
  `;
}

function Empty({ info, index }) {
  const examples = EXAMPLES[info.model.language] ?? index?.examples.texts ?? EXAMPLES.en;
  return html`
    <div class="empty">
      <p>${t("sentence.empty")}</p>
      <p>${t("sentence.examples")}</p>
      <ul lang=${languageOf(info)}>
        ${examples.map((text) => html`<li key=${text}><a href=${linkTo("sentence", { text })}>${text}</a></li>`)}
      </ul>
    </div>
  `;
}

function Tokens({ text, tokens, settled, params, navigate }) {
  // While a new text is loading, the position in the address refers to that text, not to these tokens.
  const requested = params.token === undefined || !settled ? -1 : Number(params.token);
  const position = requested in tokens ? requested : null;
  if (!tokens.length) return html`<p>${t("sentence.none")}</p>`;
  return html`
    <${TokenSection} key=${text} tokens=${tokens} position=${position} navigate=${navigate} />
    ${position !== null && html`<${AboutWord} text=${text} tokens=${tokens} position=${position} params=${params} navigate=${navigate} />`}
  `;
}

// All tokens as buttons; the sentence of the chosen one is highlighted.
function TokenSection({ tokens, position, navigate }) {
  const info = useInfo();
  const [limit, setLimit] = useState(PAGE);
  const shown = tokens.slice(0, Math.max(limit, (position ?? 0) + 1));
  const remaining = tokens.length - shown.length;
  const sentences = tokens.at(-1).sentence + 1;
  const look = (i) => {
    const startsSentence = i > 0 && tokens[i].sentence !== tokens[i - 1].sentence;
    const inSentence = sentences > 1 && position !== null && tokens[i].sentence === tokens[position].sentence;
    return { class: `${startsSentence ? "starts-sentence" : ""} ${inSentence ? "in-sentence" : ""}` };
  };
  return html`
    <section aria-labelledby="tokens-title">
      <h2 id="tokens-title">${t("sentence.tokens")}</h2>
      ${sentences > 1 && html`<p class="hint">${t("sentence.several", { count: number(sentences) })}</p>`}
      <${TokenButtons}
        words=${shown.map((token) => token.text)}
        chosen=${position}
        choose=${(token) => navigate({ token }, true)}
        label=${t("sentence.tokens")}
        lang=${languageOf(info)}
        look=${look}
      />
      ${remaining > 0 && html`<button type="button" onClick=${() => setLimit(shown.length + PAGE)}>${t("sentence.more", { count: number(remaining) })}</button>`}
      ${position === null && html`<p class="hint">${t("sentence.choose")}</p>`}
    </section>
  `;
}

function AboutWord({ text, tokens, position, params, navigate }) {
  const sentence = sentenceOf(text, tokens, position);
  const words = sentence.tokens.map((token) => token.text);
  const shared = { text: sentence.text, words, position: sentence.position };
  return html`
    <div class="columns">
      <${NearestUsages} ...${shared} params=${params} navigate=${navigate} />
      <div>
        <${Substitutes} ...${shared} token=${sentence.tokens[sentence.position]} />
        <${NearestWords} word=${tokens[position].text} params=${params} />
      </div>
    </div>
  `;
}
