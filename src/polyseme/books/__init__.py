"""The characters of a book: who they are, where they occur, with whom, and one page about them.

text.corpus.documents, word_vectors, search  ->  books  ->  api.books

characters   names of persons and their aliases
mentions     where characters occur: chapters, sentences, paragraphs
cast         the persons of an index, with all this
network      who occurs with whom: pairs, groups, GraphML and CSV
pictures     timeline and network as SVG
page         one HTML page that loads nothing from elsewhere
"""
