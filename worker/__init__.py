"""The stream job: Faust app and agent, pipeline, state, transport and command line."""
