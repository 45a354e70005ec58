"""The claims of the demonstration that this project set out to reproduce, each with what the code measures.

evidence   where a number comes from: a run of a tab with named settings, or a function of k3core
state, pages, prefix, fleet, fitness   the claims: figures, and the verdict that follows from them
words      what is said about them, from content/claims.toml
"""

from sitegen.claims import fitness, fleet, pages, prefix, state

CLAIMS = (*state.CLAIMS, *pages.CLAIMS, *prefix.CLAIMS, *fleet.CLAIMS, *fitness.CLAIMS)
