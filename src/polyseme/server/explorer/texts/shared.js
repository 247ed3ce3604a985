// Texts of the whole page, [English, 中文]: settings, states, what goes wrong, lines to copy.

export const SHARED = {
  "app.about": ["words in context", "语境中的词"],
  "app.views": ["Views", "视图"],
  "app.skip": ["Skip to the content", "跳到正文"],
  "app.otherLanguage": ["中文", "English"],
  "app.theme": ["Theme", "主题"],
  "app.theme.auto": ["theme: auto", "主题：自动"],
  "app.theme.light": ["theme: light", "主题：浅色"],
  "app.theme.dark": ["theme: dark", "主题：深色"],
  "app.docs": ["HTTP routes", "HTTP 接口"],
  "app.index": ["Index", "索引"],
  "app.indexes": ["Indexes", "索引"],

  "app.indexGone": [
    "The index “{asked}” of this link is not served here: {shown} is shown instead.",
    "链接所指的索引“{asked}”不在此服务器上，现改用 {shown}。",
  ],

  "view.sentence": ["Sentence", "句子"],
  "view.compare": ["Compare", "比较"],
  "view.senses": ["Senses", "义项"],
  "view.model": ["Model", "模型"],

  "state.loading": ["Loading…", "正在加载……"],
  "state.again": ["Try again", "重试"],
  "state.retry": ["It will be tried again in {seconds} s.", "{seconds} 秒后自动重试。"],
  "state.key": ["This server asks for an API key", "此服务器需要 API 密钥"],
  "state.keyHint": ["It stays in this window only.", "密钥只保留在当前窗口中。"],
  "state.useKey": ["Use this key", "使用此密钥"],
  "error.network": [
    "The server cannot be reached. Is polyseme serve still running?",
    "连不上服务器。polyseme serve 还在运行吗？",
  ],
  "error.usage": ["This cannot be answered.", "无法回答这个请求。"],
  "error.validation": ["The server refused the request.", "服务器拒绝了该请求。"],
  "error.too_large": ["This is too long for the server.", "内容太长，超出了服务器的限制。"],
  "error.busy": ["The server is busy.", "服务器正忙。"],
  "error.loading": ["The model is still loading.", "模型仍在加载。"],
  "error.draining": ["The server is shutting down.", "服务器正在关闭。"],
  "error.timeout": ["The answer took too long.", "等待结果超时。"],
  "error.unauthorized": ["The API key is missing or wrong.", "缺少 API 密钥，或密钥有误。"],
  "error.not_found": ["The server does not have this.", "服务器上没有这项内容。"],
  "error.memory": ["The server ran out of memory for this.", "服务器内存不足，无法完成该请求。"],
  "error.internal": ["Something went wrong in the server.", "服务器内部出错。"],

  "code.title": ["Python, curl, command line", "Python、curl、命令行"],
  "code.python": ["Python", "Python"],
  "code.curl": ["curl", "curl"],
  "code.cli": ["Command line", "命令行"],
  "code.copy": ["Copy", "复制"],
  "code.copyName": ["Copy: {name}", "复制：{name}"],
  "code.copied": ["Copied", "已复制"],
  "code.failed": ["Select and copy by hand", "请手动选中复制"],
  "code.noMix": [
    "The command line ranks by the layer of the index: a mix of its own is for Python and HTTP.",
    "命令行只按索引所存的层排序；自定的混合请用 Python 或 HTTP。",
  ],
  "code.noMatrix": [
    "The command line prints the cosine of the two sentences: word for word is for Python and HTTP.",
    "命令行给出两句整体的余弦；逐词的余弦请用 Python 或 HTTP。",
  ],
  "export.as": ["Save {name} as {kind}", "将“{name}”保存为 {kind}"],

  "refusal.english": ["{message}", "服务器的说明（英文）：{message}"],
  "refusal.word_missing": ["This word is not in the corpus of the index.", "索引的语料中没有这个词。"],
  "refusal.word_missing_of": [
    "Word {number} of those asked for is not in the corpora of both indexes.",
    "所查的第 {number} 个词并非两个索引的语料中都有。",
  ],
  "refusal.near": ["Near spellings:", "写法相近的词："],
  "refusal.too_few_for_senses": [
    "The word has too few usages to tell senses apart.",
    "这个词的用法太少，无法区分义项。",
  ],
  "refusal.too_few_usages": [
    "Word {number} of those asked for has {count} usages in one of the indexes; {least} are needed.",
    "所查的第 {number} 个词在其中一个索引中只有 {count} 次用法，至少需要 {least} 次。",
  ],
  "refusal.too_long": [
    "One sentence has {count} words; at most {most} are read together.",
    "其中一句有 {count} 个词，最多 {most} 个。",
  ],
  "refusal.too_long_together": [
    "The text has {count} words; at most {most} are taken at a time. Paste a part of it.",
    "文本共有 {count} 个词，一次最多 {most} 个。请只粘贴其中一部分。",
  ],
  "refusal.too_many_texts": ["{count} texts; at most {most} at a time.", "共 {count} 段文本，一次最多 {most} 段。"],
  "refusal.body_too_large": [
    "The text is larger than {most} bytes. Paste a part of it.",
    "文本超过 {most} 字节。请只粘贴其中一部分。",
  ],
  "refusal.answer_too_large": [
    "The answer would have {count} numbers; at most {most} are given.",
    "结果将有 {count} 个数值，最多 {most} 个。",
  ],
  "refusal.index_missing": ["There is no such index; there is {names}.", "没有这个索引；现有：{names}。"],
  "refusal.no_index": ["No index is served here.", "服务器没有加载索引。"],
  "refusal.no_words": [
    "The model has no vectors of words, and no index is served.",
    "模型没有词向量表，服务器也没有加载索引。",
  ],
  "refusal.no_softmax": [
    "The model has no softmax, so it cannot predict words.",
    "模型没有 softmax，无法预测词。",
  ],
  "refusal.models_differ": [
    "These indexes cannot be compared: their models differ.",
    "这两个索引来自不同的模型，无法比较。",
  ],
};
