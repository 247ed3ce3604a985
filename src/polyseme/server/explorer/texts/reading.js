// Texts of the concordance, of reading, of links and of saved files, [English, 中文].

export const READING_TEXTS = {
  "view.concordance": ["Concordance", "用例"],

  "concordance.empty": [
    "Type a word to read every one of its usages in context, and to see which words it keeps company with.",
    "输入一个词，逐条阅读它在上下文中的全部用例，并查看常与它同现的词。",
  ],
  "concordance.noIndex": [
    "A concordance lists the usages of a word in a text of yours. Index the text and serve it:",
    "这里列出一个词在您的文本中的全部用例。请先为文本建立索引，再启动服务：",
  ],
  "concordance.title": ["{word}: {count} usages", "{word}：{count} 个用例"],
  "concordance.one": ["{word}: 1 usage", "{word}：1 个用例"],
  "concordance.near": ["with {collocate} near", "附近有“{collocate}”"],
  "concordance.all": ["Show all usages", "显示全部用例"],
  "concordance.sort": ["Order", "排序"],
  "concordance.sort.document": ["as in the text", "按原文顺序"],
  "concordance.sort.left": ["by the words on the left", "按左邻词"],
  "concordance.sort.right": ["by the words on the right", "按右邻词"],
  "concordance.sort.sense": ["by sense", "按义项"],
  "concordance.sort.similarity": ["by similarity to a usage", "按与某个用例的相似度"],
  "concordance.chooseUsage": [
    "Choose a usage with ≈, and the others are sorted by how similar they are to it.",
    "点按某一行的 ≈，其余各行就按与它的相似度排列。",
  ],
  "concordance.documents": ["Documents", "文档"],
  "concordance.documentsHint": ["all, or 1-20, a title, year=1900", "全部；或 1-20、标题、year=1900"],
  "concordance.lines": ["Usages of {word}", "“{word}”的用例"],
  "concordance.similar": ["Sort by similarity to this usage", "按与这个用例的相似度排序"],
  "concordance.read": ["Read around it", "阅读上下文"],
  "concordance.more": ["Show {count} more", "再显示 {count} 条"],
  "concordance.order": [
    "Sorted by the three words on that side: letters alphabetically, Chinese characters mostly by pinyin.",
    "按该侧的三个词排序：字母按字母顺序，汉字大体按拼音。",
  ],
  "concordance.senses": ["Senses of {word}", "“{word}”的义项"],
  "reason.no_lines": [
    "No usage fits: check the documents and the words.",
    "没有符合条件的用例，请检查文档和词。",
  ],
  "reason.usage_missing": [
    "The index has changed since this link was made: it has no such usage.",
    "建立此链接后索引已改变，其中没有这个用例。",
  ],

  "collocates.title": ["Words nearby", "搭配词"],
  "collocates.hint": [
    "Within {window} words in the same sentence, more often than by chance. LL: log-likelihood; above 15.1, p < 0.0001.",
    "同一句中相距不超过 {window} 个词，且多于偶然。LL 为对数似然，大于 15.1 时 p < 0.0001。",
  ],
  "collocates.none": ["No word stands near it more often than by chance.", "没有同现多于偶然的词。"],
  "collocates.word": ["word", "词"],
  "collocates.count": ["near", "同现"],
  "collocates.score": ["LL", "LL"],
  "collocates.senses": ["senses", "义项"],
  "collocates.lines": ["Show the {count} usages with {word} nearby", "显示附近有“{word}”的 {count} 个用例"],
  "collocates.bySense": ["Near which sense?", "与哪个义项同现？"],
  "collocates.oneSense": ["{word} has one group of usages, so there is nothing to tell apart.", "“{word}”的用例只有一组，无从区分。"],
  "collocates.more": ["Show more", "显示更多"],

  "frequency.title": ["Usages by document", "各文档的用例数"],
  "frequency.hint": ["Bars: usages per 10,000 words.", "长条表示每一万词中的用例数。"],
  "frequency.row": ["{count} usages, {rate} per 10,000 words", "{count} 个用例，每一万词 {rate} 个"],
  "frequency.only": ["Only {name}", "只看 {name}"],
  "frequency.more": ["Show all {count} documents", "显示全部 {count} 篇文档"],

  "reading.title": ["{document}, line {line}", "{document}，第 {line} 行"],
  "reading.earlier": ["Earlier text", "上文"],
  "reading.later": ["Later text", "下文"],
  "reading.close": ["Close", "关闭"],
  "reading.incomplete": [
    "This index holds selected words only: sentences without one of them are missing here.",
    "此索引只收部分词，不含这些词的句子在这里缺失。",
  ],
  "reading.open": ["Read {place} in the text", "在原文中阅读 {place}"],

  "export.failed": ["Saving failed. Try again.", "保存失败，请重试。"],

  "stored.kept": [
    "The text is long, so this link holds only a key to it: it opens in this browser, not elsewhere. To share the result, save the page.",
    "文本较长，链接中只存了它的编号，只能在本浏览器中打开。要与他人分享结果，请保存页面。",
  ],
  "stored.missing": [
    "The text of this link is kept in the browser that made the link, and this one does not have it.",
    "此链接的文本保存在创建链接的浏览器中，当前浏览器里没有。",
  ],

  "page.save": ["Save page as a file", "把页面存为文件"],
  "page.saveHint": ["One HTML file that opens anywhere", "一个 HTML 文件，随处可以打开"],
  "page.excel": ["CSV files for Excel", "CSV 供 Excel 打开"],
  "page.excelHint": [
    "Begins CSV files with a byte order mark, without which Excel garbles Chinese. Some programs do not expect it.",
    "在 CSV 文件开头写入字节顺序标记（BOM），否则 Excel 中的汉字会成乱码。有些程序不需要它。",
  ],
  "page.madeWith": ["Saved from Polyseme {version}, model {model}, on {date}", "由 Polyseme {version} 保存，模型 {model}，{date}"],

  "words.usages": ["All usages of {word}", "“{word}”的全部用例"],
  "mix.folded": ["Layer mix: {mix}", "层的混合：{mix}"],
  "senses.allUsages": ["Read all {count} usages, sorted by sense", "按义项阅读全部 {count} 个用例"],
  "own.title": ["Search a text of your own", "检索自己的文本"],
  "own.text": [
    "Index a text and serve it, and this page shows its usages of the word:",
    "为一份文本建立索引并启动服务，这里就会显示其中的用例：",
  ],
  "reason.word_unknown": ["The model has no vector of this word.", "模型没有这个词的向量。"],
};
