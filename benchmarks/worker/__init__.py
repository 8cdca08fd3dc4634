"""The worker's speed on a real Apache Kafka, beside the stock Faust transport and Quix Streams."""
