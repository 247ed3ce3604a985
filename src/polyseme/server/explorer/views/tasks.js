// The tasks view: a text, or two, and what a task model predicts: roles, mentions, answers, labels, translations.
//
// Parameters: task (its name), text, other (the second text of a pair, or the text that has the answer), cluster.

import { html } from "/explorer/html-template.js";
import { t } from "/explorer/i18n.js";
import { Await, useRequest } from "/explorer/components/server-request.js";
import { Code, CodeLines } from "/explorer/components/code-block.js";
import { Select, TextField } from "/explorer/components/form-fields.js";
import { languageOf, useInfo } from "/explorer/components/server-info.js";
import { Prediction } from "/explorer/components/prediction.js";
import * as snippets from "/explorer/code-snippets.js";
import { linkTo } from "/explorer/routing.js";

const MARKS_ENTITIES = { relations: true }; // tasks whose text has two marked entities
const EXAMPLES = {
  zh: {
    one: ["天色将晚，曹操坐在河边，他想起了故乡。"],
    pairs: ["曹操大怒。", "曹操大喜。"],
    relations: ["<e1>曹丕</e1>是<e2>曹操</e2>的儿子。"],
    answers: ["谁坐在河边？", "天色将晚，曹操坐在河边，他想起了故乡。"],
  },
  en: {
    one: ["Anna met Thomas on the river bank. She told him that she was going home."],
    pairs: ["A man plays a guitar.", "Somebody is making music."],
    relations: ["The <e1>fire</e1> was caused by burning <e2>fuel</e2>."],
    answers: ["Where did Anna meet Thomas?", "Anna met Thomas on the river bank. She told him that she was going home."],
  },
};

const ENTITIES = /<e1>[^]*<\/e1>[^]*<e2>[^]*<\/e2>|<e2>[^]*<\/e2>[^]*<e1>[^]*<\/e1>/;

export function Tasks({ params, navigate }) {
  const info = useInfo();
  if (!info.tasks.length) return html`<${NoTasks} info=${info} />`;
  const task = info.tasks.find(({ name }) => name === params.task) ?? info.tasks[0];
  return html`<${Task} key=${task.name} info=${info} task=${task} params=${params} navigate=${navigate} />`;
}

function NoTasks({ info }) {
  return html`
    <div class="empty">
      <p>${t("tasks.none")}</p>
      <${CodeLines} name=${t("code.cli")} text=${snippets.newTask(info.model)} />
    </div>
  `;
}

function Task({ info, task, params, navigate }) {
  const lang = languageOf(info);
  const texts = [params.text ?? "", params.other ?? ""].slice(0, task.texts);
  const marksEntities = MARKS_ENTITIES[task.task];
  const isComplete = texts.every((text) => text.trim()) && (!marksEntities || ENTITIES.test(texts[0]));
  const question = task.texts === 1 ? texts[0] : texts;
  const request = useRequest(isComplete ? "/predict" : null, { task: task.name, texts: [question] });
  const field = (name, label, rows) => html`
    <${TextField}
      label=${label}
      value=${params[name] ?? ""}
      onCommit=${(text) => navigate({ [name]: text, cluster: null })}
      lang=${lang}
      rows=${rows}
    />
  `;
  const cluster = /^\d+$/.test(params.cluster ?? "") ? Number(params.cluster) : null;
  return html`
    <div class="form">
      <${Select}
        label=${t("tasks.model")}
        value=${task.name}
        options=${info.tasks.map(({ name, task: kind }) => [name, `${name} · ${kindName(kind)}`])}
        onCommit=${(name) => navigate({ task: name, cluster: null }, true)}
      />
    </div>
    ${task.texts === 1
      ? html`<div class="form">${field("text", t("tasks.text"), 4)}</div>`
      : html`
          <div class="form two">
            ${field("text", fieldName(task, "first"), 4)}
            ${field("other", fieldName(task, "second"), 4)}
          </div>
        `}
    ${marksEntities && html`<${EntityButtons} text=${texts[0]} onCommit=${(text) => navigate({ text })} />`}
    ${!isComplete && html`<${Empty} info=${info} task=${task} lang=${lang} />`}
    <${Await} request=${request}>
      ${(data) => html`
        <section aria-labelledby="prediction-title">
          <h2 id="prediction-title">${t("tasks.prediction")}</h2>
          <${Prediction}
            data=${data.predictions[0]}
            texts=${texts}
            lang=${lang}
            cluster=${cluster}
            choose=${(chosen) => navigate({ cluster: chosen }, true)}
          />
        </section>
        <${Code} lines=${snippets.predict({ task, question })} />
      `}
    <//>
  `;
}

function Empty({ info, task, lang }) {
  const examples = EXAMPLES[info.model.language] ?? EXAMPLES.en;
  const [text, other] = examples[task.task] ?? (task.texts === 1 ? examples.one : examples.pairs);
  return html`
    <div class="empty">
      <p>${t("tasks.empty")}</p>
      <p><a href=${linkTo("tasks", { task: task.name, text, other })} lang=${lang}>${text}</a></p>
    </div>
  `;
}

// A relation is between two marked entities: the buttons mark what is selected in the field.
function EntityButtons({ text, onCommit }) {
  const mark = (name) => {
    const { selectionStart: start, selectionEnd: stop } = document.querySelector("main textarea");
    if (start === stop) return;
    const without = (part) => part.replace(new RegExp(`</?${name}>`, "g"), "");
    const inside = text.slice(start, stop).replace(/<\/?e[12]>/g, "");
    onCommit(`${without(text.slice(0, start))}<${name}>${inside}</${name}>${without(text.slice(stop))}`);
  };
  const keepSelection = (event) => event.preventDefault();
  return html`
    <p class="choices">
      <span class="hint">${t("tasks.entities")}</span>${" "}
      ${["e1", "e2"].map(
        (name) => html`
          <button key=${name} type="button" class="small" onMouseDown=${keepSelection} onClick=${() => mark(name)}>${t("tasks.mark", { name })}</button>${" "}
        `,
      )}
    </p>
  `;
}

// The name of the field of one of two texts; a task may have texts of its own.
function fieldName(task, position) {
  return t(`tasks.${position}.${task.task}`) || t(`tasks.${position}`);
}

// What a task does; a task that the page does not know keeps its name.
function kindName(kind) {
  return t(`tasks.kind.${kind}`) || kind;
}
