// Texts of the whole page, [English, 中文]: settings, request states, errors, code to copy.

export const SHARED_TEXTS = {
  "app.about": ["contextual word vectors", "上下文词向量"],
  "app.views": ["Views", "视图"],
  "app.skip": ["Skip to main content", "跳到正文"],
  "app.otherLanguage": ["中文", "English"],
  "app.theme": ["Theme", "主题"],
  "app.theme.auto": ["Theme: auto", "主题：自动"],
  "app.theme.light": ["Theme: light", "主题：浅色"],
  "app.theme.dark": ["Theme: dark", "主题：深色"],
  "app.docs": ["HTTP API", "HTTP API"],
  "app.model": ["Model", "模型"],
  "app.firstModel": ["Use the first model of this server", "改用此服务器的第一个模型"],
  "app.index": ["Index", "索引"],
  "app.indexes": ["Indexes", "索引"],

  "app.indexMissing": [
    "This server has no index named “{requested}”. Showing “{shown}” instead.",
    "此服务器没有名为“{requested}”的索引，现改用“{shown}”。",
  ],

  "view.sentence": ["Sentence", "句子"],
  "view.compare": ["Compare", "比较"],
  "view.senses": ["Senses", "义项"],
  "view.tasks": ["Tasks", "任务"],
  "view.model": ["Model", "模型"],

  "state.loading": ["Loading…", "正在加载……"],
  "state.retry": ["Retry", "重试"],
  "state.retryIn": ["Retrying in {seconds} s.", "{seconds} 秒后自动重试。"],
  "state.key": ["This server requires an API key", "此服务器需要 API 密钥"],
  "state.keyHint": ["The key is kept in this window only.", "密钥只保留在当前窗口中。"],
  "state.useKey": ["Use key", "使用此密钥"],
  "error.network": [
    "Cannot reach the server. Is polyseme serve still running?",
    "无法连接服务器。polyseme serve 还在运行吗？",
  ],
  "error.usage": ["The request cannot be completed.", "无法完成此请求。"],
  "error.validation": ["The request is invalid.", "请求无效。"],
  "error.too_large": ["The text is too long for this server.", "文本太长，超出了服务器的限制。"],
  "error.busy": ["The server is busy.", "服务器正忙。"],
  "error.loading": ["The model is still loading.", "模型仍在加载。"],
  "error.computing": ["The server is working on it.", "服务器正在计算。"],
  "error.draining": ["The server is shutting down.", "服务器正在关闭。"],
  "error.timeout": ["The request timed out.", "请求超时。"],
  "error.unauthorized": ["The API key is missing or wrong.", "缺少 API 密钥，或密钥有误。"],
  "error.not_found": ["Not found on this server.", "服务器上没有这项内容。"],
  "error.memory": ["The server ran out of memory.", "服务器内存不足。"],
  "error.internal": ["Internal server error.", "服务器内部错误。"],

  "code.title": ["Python, curl, command line", "Python、curl、命令行"],
  "code.python": ["Python", "Python"],
  "code.curl": ["curl", "curl"],
  "code.cli": ["Command line", "命令行"],
  "code.copy": ["Copy", "复制"],
  "code.copyName": ["Copy: {name}", "复制：{name}"],
  "code.copied": ["Copied", "已复制"],
  "code.failed": ["Select and copy manually", "请手动选中并复制"],
  "code.noMix": [
    "The command line ranks by the layer of the index. For other mixes, use Python or HTTP.",
    "命令行只按索引所用的层排序。自定义的层混合请用 Python 或 HTTP。",
  ],
  "code.noMatrix": [
    "The command line prints the cosine of the two sentences. For cosines between words, use Python or HTTP.",
    "命令行只给出两个句子的余弦。词与词之间的余弦请用 Python 或 HTTP。",
  ],
  "export.as": ["Save {name} as {kind}", "将“{name}”保存为 {kind}"],

  "reason.english": ["{message}", "服务器的说明（英文）：{message}"],
  "reason.word_missing": ["This word does not occur in the corpus of the index.", "索引的语料中没有这个词。"],
  "reason.word_missing_of": [
    "Word {number} of your list does not occur in both corpora.",
    "列表中的第 {number} 个词没有同时出现在两个索引的语料中。",
  ],
  "reason.near": ["Similar spellings:", "写法相近的词："],
  "reason.too_few_for_senses": [
    "The word has too few usages to find senses.",
    "这个词的用例太少，无法划分义项。",
  ],
  "reason.too_few_usages": [
    "Word {number} of your list has {count} usages in one of the indexes; at least {minimum} are needed.",
    "列表中的第 {number} 个词在其中一个索引里只有 {count} 个用例，至少需要 {minimum} 个。",
  ],
  "reason.too_long": [
    "One sentence has {count} tokens; the limit is {limit}.",
    "其中一句有 {count} 个词，上限为 {limit} 个。",
  ],
  "reason.too_long_together": [
    "The text has {count} tokens; the limit is {limit}. Paste a shorter part.",
    "文本共有 {count} 个词，上限为 {limit} 个。请只粘贴其中一部分。",
  ],
  "reason.too_many_texts": ["{count} texts; the limit is {limit}.", "共 {count} 段文本，上限为 {limit} 段。"],
  "reason.body_too_large": [
    "The text is larger than {limit} bytes. Paste a shorter part.",
    "文本超过 {limit} 字节。请只粘贴其中一部分。",
  ],
  "reason.answer_too_large": [
    "The result would have {count} numbers; the limit is {limit}.",
    "结果将有 {count} 个数值，上限为 {limit} 个。",
  ],
  "reason.index_missing": ["No such index. Available: {names}.", "没有这个索引。现有：{names}。"],
  "reason.model_missing": ["No such model. Available: {names}.", "没有这个模型。现有：{names}。"],
  "reason.task_missing": ["No such task model. Available: {names}.", "没有这个任务模型。现有：{names}。"],
  "reason.no_index": ["This server has no index.", "服务器没有加载索引。"],
  "reason.no_words": [
    "The model has no word vectors, and this server has no index.",
    "模型没有词向量表，服务器也没有加载索引。",
  ],
  "reason.no_tokens": [
    "One of the texts contains no words, so there is nothing to compare.",
    "其中一段文本没有词，无法比较。",
  ],
  "reason.no_softmax": [
    "The model was saved without its output layer (softmax), so it cannot predict words.",
    "保存模型时没有输出层（softmax），因此无法预测词。",
  ],
  "reason.models_differ": [
    "These indexes were built with different models and cannot be compared.",
    "这两个索引由不同的模型建立，无法比较。",
  ],
};
