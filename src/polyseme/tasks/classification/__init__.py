"""Classification: texts to labels (sentiment, topics, spam, intents); one label each, or several."""
