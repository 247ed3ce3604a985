// Translates facts of a model card into Chinese.
//
// Only phrases that Polyseme writes are translated. Others, such as the name of a corpus, stay as they are.

import { isEnglish } from "/explorer/i18n.js";

const TRANSLATIONS = [
  [/^yes$/, "有"],
  [/^(no|none)$/, "无"],
  [/([\d.,]+) million without the softmax/, (_, count) => `${million(count)}（不含 softmax）`],
  [/([\d,]+) without the softmax/, "$1（不含 softmax）"],
  [/^([\d,]+) values$/, "$1 维"],
  [/^([\d,]+) words$/, "$1 个词"],
  [/([\d,]+) tokens, ([\d,]+) words in the vocabulary/, "$1 个词，词表 $2 个词"],
  [/forward ([\d.,]+), backward ([\d.,]+), mean ([\d.,]+)/, "前向 $1，后向 $2，平均 $3"],
  [/([\d.]+%) of the held-out text/, "占留出文本的 $1"],
  [/, (\w+) softmax$/, (_, kind) => `，${{ sampled: "采样", full: "完整", adaptive: "自适应" }[kind] ?? kind} softmax`],
  [/word table of (\d+)/, "$1 维词表"],
  [/ and char-CNN/, "加char-CNN"],
  [/char-CNN over (\w+), at most (\d+) a word, (\d+) filters, (\w+), highways: (\d+)/, "字符卷积（$1，每词至多 $2 个，$3 个滤波器，$4，$5 层 highway）"],
  [/, projected$/, "，经投影"],
  [/^(\d+) \(token layer and (\d+) of (.*)\)$/, "$1（词层，加 $2 层 $3）"],
  [/(\d+) cells/, " $1 个单元"],
  [/ projected to (\d+)/, "，投影到 $1 维"],
  [/, cell clip ([\d.]+)/, "，记忆截断 $1"],
  [/, output clip ([\d.]+)/, "，输出截断 $1"],
  [/, residual/, "，残差"],
  [/The weights (?:are under|have) the licence of Polyseme, Apache 2\.0\./, "权重采用 Polyseme 的许可证，即 Apache 2.0。"],
];

export function factText(value) {
  if (isEnglish()) return value;
  return TRANSLATIONS.reduce((text, [pattern, chinese]) => text.replace(pattern, chinese), value);
}

// Chinese counts in units of ten thousand: 7.9 million is 790 万.
function million(count) {
  return `${(Number(count.replaceAll(",", "")) * 100).toLocaleString("zh", { maximumFractionDigits: 0 })} 万`;
}
