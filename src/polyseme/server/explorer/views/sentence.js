// A text in; its words out, and for the chosen one: nearest usages, nearest words, substitutes.
//
// Parameters: text, token (a place from 0), index, mix (weights), same (1: usages of the same word only).

import { html } from "/explorer/html.js";
import { t } from "/explorer/i18n.js";
import { Answer, useAnswer } from "/explorer/parts/answer.js";
import { IndexChoice, TextField } from "/explorer/parts/fields.js";
import { indexOf, tongueOf, useInfo } from "/explorer/parts/info.js";
import { Tokens } from "/explorer/parts/tokens.js";
import { Usages } from "/explorer/parts/usages.js";
import { Substitutes, Types } from "/explorer/parts/words.js";
import { linkTo } from "/explorer/state.js";

// Examples are in the language of the model, whatever the language of the page.
const EXAMPLES = {
  zh: ["玄德拜关羽为将，赐以兵马。", "将酒来，我与你吃三杯。", "宝玉听了，心中不觉悲切起来。"],
  en: [
    "He sat on the bank of the river.",
    "She kept her money in the bank.",
    "The captain of the ship gave the order.",
  ],
};

export function Sentence({ params, go }) {
  const info = useInfo();
  const text = params.text ?? "";
  const answer = useAnswer(text.trim() ? "/tokenize" : null, { texts: [text] });
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
        value=${indexOf(info, params.index)?.name}
        commit=${(index) => go({ index }, true)}
      />
    </div>
    ${!text.trim() && html`<${Empty} info=${info} index=${indexOf(info, params.index)} />`}
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
  const info = useInfo();
  const words = tokens.map((token) => token.text);
  // While a new text is on its way, the place in the address is a place in that text, not in these words.
  const asked = params.token === undefined || !settled ? -1 : Number(params.token);
  const place = asked in words ? asked : null;
  if (!words.length) return html`<p>${t("sentence.none")}</p>`;
  return html`
    <section aria-labelledby="tokens-title">
      <h2 id="tokens-title">${t("sentence.tokens")}</h2>
      <${Tokens}
        words=${words}
        chosen=${place}
        choose=${(token) => go({ token }, true)}
        label=${t("sentence.tokens")}
        lang=${tongueOf(info)}
      />
      ${place === null && html`<p class="hint">${t("sentence.choose")}</p>`}
    </section>
    ${
      place !== null &&
      html`
        <div class="columns">
          <${Usages} text=${text} words=${words} place=${place} params=${params} go=${go} />
          <div>
            <${Substitutes} text=${text} token=${tokens[place]} words=${words} place=${place} />
            <${Types} word=${words[place]} params=${params} />
          </div>
        </div>
      `
    }
  `;
}
