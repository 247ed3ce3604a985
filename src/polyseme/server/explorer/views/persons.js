// The persons view: the persons of an index and who occurs with whom; a page for each of them.
//
// Parameters: index, name (of a person), passage (number of the passage whose clusters are shown, from 0).

import { html } from "/explorer/html-template.js";
import { number, t } from "/explorer/i18n.js";
import { Await, useRequest } from "/explorer/components/server-request.js";
import { Code } from "/explorer/components/code-block.js";
import { ExportButtons } from "/explorer/components/export-buttons.js";
import { IndexSelect } from "/explorer/components/form-fields.js";
import { MentionBars } from "/explorer/components/mention-bars.js";
import { NoIndex } from "/explorer/components/nearest-usages.js";
import { PersonNetwork } from "/explorer/components/person-network.js";
import { Prediction } from "/explorer/components/prediction.js";
import { chosenIndex, languageOf, useInfo } from "/explorer/components/server-info.js";
import { COLOURS } from "/explorer/components/usage-map.js";
import * as snippets from "/explorer/code-snippets.js";
import { linkTo } from "/explorer/routing.js";

const DRAWN = 30; // persons in the network
const AROUND = 10; // companions in the network of one person
const FINDS_CLUSTERS = { coref: true }; // tasks whose predictions are clusters of mentions

export function Persons({ params, navigate }) {
  const info = useInfo();
  const index = chosenIndex(info, params.index);
  const request = useRequest(index ? "/characters" : null, { index: index?.name });
  if (!index) return html`<${NoIndex} title=${t("view.persons")} text=${t("senses.noIndex")} />`;
  return html`
    ${info.indexes.length > 1 &&
    html`<div class="form">
      <${IndexSelect} info=${info} value=${index.name} onCommit=${(next) => navigate({ index: next, name: null, passage: null }, true)} />
    </div>`}
    <${Await} request=${request} loading=${t("persons.finding")}>
      ${(cast) => html`
        <${Content} cast=${cast} index=${index} params=${params} navigate=${navigate} />
        <${Code} lines=${snippets.characters({ index, name: params.name })} />
      `}
    <//>
  `;
}

// A link to the page of a word that is a person of the index.
export function PersonLink({ word, index }) {
  const request = useRequest("/characters", { index: index.name });
  if (!request.data || !findPerson(request.data, word)) return null;
  return html`<p><a href=${linkTo("persons", { name: word })}>${t("persons.page", { name: word })}</a></p>`;
}

function findPerson(cast, name) {
  return cast.persons.find((person) => person.name === name || person.aliases.includes(name));
}

function Content({ cast, index, params, navigate }) {
  if (!cast.persons.length) return html`<p>${t("persons.none")}</p>`;
  const person = params.name && findPerson(cast, params.name);
  if (person) return html`<${PersonPage} cast=${cast} person=${person} index=${index} params=${params} navigate=${navigate} />`;
  return html`
    ${params.name && html`<p class="hint" role="status">${t("persons.unknown", { name: params.name })}</p>`}
    <${Overview} cast=${cast} index=${index} />
  `;
}

const linkOf = (name) => linkTo("persons", { name });

function Overview({ cast, index }) {
  const lang = languageOf(useInfo());
  const drawn = cast.persons.slice(0, DRAWN).map((_, n) => n);
  const heads = ["name", "count", "documents", "companions", "alike"];
  const csv = () => [
    heads.map((name) => t(`persons.${name}`)),
    ...cast.persons.map((person) => [
      person.name,
      person.count,
      person.documents.length,
      person.companions.map(({ name, paragraphs }) => `${name} ${paragraphs}`).join("; "),
      person.nearest.map(({ name }) => name).join("; "),
    ]),
  ];
  return html`
    <section aria-labelledby="persons-title">
      <h2 id="persons-title">${t("persons.title", { count: cast.persons.length, index: index.name })}</h2>
      <p class="hint">${t("persons.hint")}</p>
      <div class="columns even">
        <div class="scroll" tabindex="0" role="group" aria-label=${t("view.persons")}>
          <table class="persons">
            <thead>
              <tr>${heads.map((name) => html`<th key=${name} scope="col">${t(`persons.${name}`)}</th>`)}</tr>
            </thead>
            <tbody lang=${lang}>
              ${cast.persons.map(
                ({ name, count, group, documents, companions, nearest }) => html`
                  <tr key=${name}>
                    <th scope="row">
                      <svg width="10" height="10" aria-hidden="true"><circle class=${`hue-${group % COLOURS}`} cx="5" cy="5" r="5" /></svg>${" "}
                      <a href=${linkOf(name)}>${name}</a>
                    </th>
                    <td>${number(count)}</td>
                    <td>${number(documents.length)}</td>
                    <td>${companions.slice(0, 3).map((other) => other.name).join(" · ")}</td>
                    <td>${nearest.slice(0, 3).map((other) => other.name).join(" · ")}</td>
                  </tr>
                `,
              )}
            </tbody>
          </table>
        </div>
        <div class="sticky">
          <h3>${t("persons.network")}</h3>
          <${PersonNetwork} cast=${cast} chosen=${drawn} linkOf=${linkOf} lang=${lang} label=${t("persons.network")} />
          <p class="hint">${t("persons.networkHint")}</p>
        </div>
      </div>
      <${ExportButtons} name=${t("view.persons")} file=${`persons-${index.name}`} csv=${csv} />
    </section>
  `;
}

function PersonPage({ cast, person, index, params, navigate }) {
  const lang = languageOf(useInfo());
  const { name, aliases, count, documents, companions, nearest } = person;
  const numbers = new Map(cast.persons.map((other, n) => [other.name, n]));
  const around = [numbers.get(name), ...companions.slice(0, AROUND).map((other) => numbers.get(other.name))];
  const values = { count: number(count), documents: number(documents.length), of: number(cast.documents.length) };
  const hasCompanions = companions.length > 0;
  const list = (title, rows) => html`
    <div>
      <h3>${title}</h3>
      <ul class="word-list">
        ${rows.map(([other, value]) => html`<li key=${other}><a lang=${lang} href=${linkOf(other)}>${other}</a><span class="value">${value}</span></li>`)}
      </ul>
    </div>
  `;
  return html`
    <section aria-labelledby="person-title">
      <h2 id="person-title" class="title" lang=${lang}>${name}</h2>
      ${aliases.length > 0 && html`<p lang=${lang}>${t("persons.aliases", { names: aliases.join(", ") })}</p>`}
      <p>${t("persons.summary", values)}</p>
      <p class="choices">
        <a href=${linkTo("persons", {})}>${t("persons.all")}</a> · <a href=${linkTo("senses", { word: name })}>${t("words.senses", { word: name })}</a> ·${" "}
        <a href=${linkTo("timeline", { word: name })}>${t("view.timeline")}</a>
      </p>
      <h3>${t("persons.byDocument", { name })}</h3>
      <${MentionBars} name=${name} documents=${cast.documents} counts=${documents} />
      <div class="columns even">
        <div>
          <h3>${t("persons.around", { name })}</h3>
          ${hasCompanions
            ? html`<${PersonNetwork} cast=${cast} chosen=${around} linkOf=${linkOf} focus=${name} lang=${lang} label=${t("persons.around", { name })} />`
            : html`<p>${t("persons.alone")}</p>`}
        </div>
        <div class="pair-lists">
          ${hasCompanions && list(t("persons.companions"), companions.map((other) => [other.name, number(other.paragraphs)]))}
          ${nearest.length > 0 && list(t("persons.alike"), nearest.map((other) => [other.name, number(other.cosine, 2)]))}
        </div>
      </div>
      <p class="hint">${t("persons.listsHint")}</p>
      <${Passages} person=${person} index=${index} params=${params} navigate=${navigate} lang=${lang} />
    </section>
  `;
}

// Where the person is mentioned most; with a task model for coreference, who "he" is there.
function Passages({ person, params, navigate, lang }) {
  const task = useInfo().tasks.find(({ task }) => FINDS_CLUSTERS[task]);
  const shown = /^\d+$/.test(params.passage ?? "") ? Number(params.passage) : null;
  const passage = person.passages[shown];
  const request = useRequest(task && passage ? "/predict" : null, { task: task?.name, texts: [passage?.text] });
  return html`
    <h3>${t("persons.passages", { name: person.name })}</h3>
    ${!task && html`<p class="hint">${t("persons.noCoref")}</p>`}
    <ul class="passages">
      ${person.passages.map(
        ({ text, document, line }, n) => html`
          <li key=${n}>
            ${n === shown && task
              ? html`<${Await} request=${request}>${(data) => html`<${Clusters} data=${data.predictions[0]} person=${person} text=${text} lang=${lang} />`}<//>`
              : html`<p class="quote" lang=${lang}>${text}</p>`}
            <span class="source">${document}:${line}</span>${" "}
            ${task &&
            html`<button type="button" class="small" aria-pressed=${String(n === shown)} onClick=${() => navigate({ passage: n === shown ? null : n }, true)}>
              ${t("persons.coref", { name: person.name })}
            </button>`}
          </li>
        `,
      )}
    </ul>
  `;
}

// Only the clusters that mention the person by a name.
function Clusters({ data, person, text, lang }) {
  const names = [person.name, ...person.aliases];
  const clusters = data.clusters.filter(({ mentions }) => mentions.some((mention) => names.some((name) => mention.text.includes(name))));
  const several = clusters.filter(({ mentions }) => mentions.length > 1);
  if (!several.length) return html`<p class="quote" lang=${lang}>${text}</p><p class="hint" role="status">${t("persons.noCluster", { name: person.name })}</p>`;
  return html`<${Prediction} data=${{ clusters: several }} texts=${[text]} lang=${lang} cluster=${null} choose=${() => {}} />`;
}
